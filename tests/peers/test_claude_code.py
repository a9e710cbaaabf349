"""The real Claude Code, with a model that plays a script, finds the server and uses its tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from peers.around import GRIPFAST, package
from scripted_model import Script, scripted_model


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
