"""The real Claude Code, with a model that plays a script, finds the server and uses its tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from peers.around import GRIPFAST, package
from scripted_model import Script, scripted_model
from trees import tree_of


def shown(result: dict[str, Any]) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def run_claude(model: Script, project: Path, home: Path, names: list[str]) -> None:
    """Has Claude Code play the script to its end, allowed to use these tools."""
    claude = package("@anthropic-ai/claude-code") / "bin" / "claude.exe"
    server = {"type": "stdio", "command": GRIPFAST[0], "args": [*GRIPFAST[1:], "serve", "--root", str(project)]}
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"gripfast": server}}), encoding="utf-8")
    done = subprocess.run(
        [str(claude), "-p", "go", "--mcp-config", str(config), "--strict-mcp-config",
         "--allowedTools", ",".join(names)],
        cwd=project, capture_output=True, text=True, timeout=300, check=False, stdin=subprocess.DEVNULL,
        env={
            "PATH": os.environ["PATH"], "HOME": str(home), "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "scripted", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ENABLE_TOOL_SEARCH": "false",
            "MCP_TIMEOUT": "120000",
        },
    )  # fmt: skip
    assert "FINISHED" in done.stdout, done.stdout + done.stderr


def test_claude_code_reads_edits_searches_and_runs(project: Path, tmp_path: Path) -> None:
    calls = (
        ("mcp__gripfast__Read", {"file_path": "a.txt"}),
        ("mcp__gripfast__Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}),
        ("mcp__gripfast__Grep", {"pattern": "T.O", "output_mode": "content"}),
        ("mcp__gripfast__Bash", {"command": "wc -l < a.txt"}),
        ("mcp__gripfast__read_file", {"path": "a.txt"}),
    )
    with scripted_model(*calls) as model:
        run_claude(model, project, tmp_path, [name for name, _ in calls])
    assert {name for name, _ in calls} <= set(model.tools)
    read, edit, grep, bash, read_file = map(shown, model.results)
    assert read.startswith("     1\tone")
    assert "1 replacement" in edit
    assert "a.txt:2:TWO" in grep
    assert "3" in bash
    assert json.loads(read_file)["content"] == "one\nTWO\nthree\n"
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\nTWO\nthree\n"


LINES = (
    "sed -i s/one/ONE/ a.txt; echo new > new.txt; mkdir -p made/deep; echo d > made/deep/f",
    "rm keep.bin; chmod 700 run.sh; ln -sfn b.txt link",
    "mv sub moved; echo more >> moved/inner.txt; rmdir empty",
    "printf 'a\\0b' > a.txt; rm made/deep/f; echo again > new.txt; truncate -s 1 b.txt",
    "echo 1 > gen1.txt; echo 2 > gen2.txt; cp new.txt copy.txt; rm gen1.txt",
)


def test_what_claude_code_did_by_commands_alone_is_undone_without_git(tmp_path: Path) -> None:
    """Every byte, mode and link comes back, and what somebody else changed meanwhile stays."""
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (project / "empty").mkdir()
    texts = {"a.txt": "one\n", "b.txt": "two\n", "sub/inner.txt": "in\n", "run.sh": "#!/bin/sh\n"}
    for name, text in texts.items():
        (project / name).write_text(text)
    (project / "keep.bin").write_bytes(bytes(range(256)))
    (project / "link").symlink_to("a.txt")
    before = tree_of(project)
    with scripted_model(*(("mcp__gripfast__Bash", {"command": line}) for line in LINES)) as model:
        run_claude(model, project, tmp_path, ["mcp__gripfast__Bash"])
    assert len(model.results) == len(LINES)
    assert not (project / "keep.bin").exists() and (project / "copy.txt").exists(), model.results
    (project / "b.txt").write_text("theirs\n")
    (project / "theirs.txt").write_text("theirs\n")
    undone = subprocess.run(
        [*GRIPFAST, "undo", "--all", "--root", str(project)], capture_output=True, text=True, check=False,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert undone.returncode == 3, undone.stdout + undone.stderr
    assert "b.txt: refused: it was changed by somebody else" in undone.stderr
    after = tree_of(project)
    assert after.pop("theirs.txt")[2] == after.pop("b.txt")[2] == b"theirs\n"
    del before["b.txt"]
    assert after == before
