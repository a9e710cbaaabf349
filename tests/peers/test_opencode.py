"""The real opencode, with a model that plays a script, finds the server and uses its tools."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from peers.around import GRIPFAST, package
from scripted_model import Script, scripted_model


def shown(result: dict[str, Any]) -> str:
    content = result["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def run_opencode(model: Script, project: Path, home: Path, server: dict[str, Any] | None = None) -> None:
    """Has opencode play the script to its end."""
    opencode = package("opencode-ai").parent / ".bin" / "opencode"
    if server is None:
        server = {"type": "local", "command": [*GRIPFAST, "serve", "--root", str(project)], "timeout": 120000}
    provider = {"options": {"baseURL": f"{model.url}/v1", "apiKey": "scripted"}}
    config = {"autoupdate": False, "provider": {"anthropic": provider}, "mcp": {"gripfast": server}}
    (project / "opencode.json").write_text(json.dumps(config), encoding="utf-8")
    done = subprocess.run(
        [str(opencode), "run", "--model", "anthropic/claude-sonnet-4-5", "go"],
        cwd=project, capture_output=True, text=True, timeout=240, check=False, stdin=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
    )  # fmt: skip
    assert "FINISHED" in done.stdout, done.stdout + done.stderr


def test_opencode_reads_edits_searches_and_runs(project: Path, tmp_path: Path) -> None:
    calls = (
        ("gripfast_Read", {"file_path": "a.txt"}),
        ("gripfast_Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}),
        ("gripfast_Grep", {"pattern": "T.O", "output_mode": "content"}),
        ("gripfast_Bash", {"command": "wc -l < a.txt"}),
    )
    with scripted_model(*calls) as model:
        run_opencode(model, project, tmp_path)
    read, edit, grep, bash = map(shown, model.results)
    assert read.startswith("     1\tone")
    assert "1 replacement" in edit
    assert "a.txt:2:TWO" in grep
    assert "3" in bash


def test_opencode_applies_a_patch_and_a_failing_one_changes_nothing(project: Path, tmp_path: Path) -> None:
    good = "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+TWO\n*** Add File: b.txt\n+hello\n*** End Patch"
    half = "*** Begin Patch\n*** Add File: c.txt\n+x\n*** Delete File: missing.txt\n*** End Patch"
    calls = (
        ("gripfast_Read", {"file_path": "a.txt"}),
        ("gripfast_apply_patch", {"patch": half}),
        ("gripfast_apply_patch", {"patch": good}),
    )
    with scripted_model(*calls) as model:
        run_opencode(model, project, tmp_path)
    _, failed, applied = map(shown, model.results)
    assert "so nothing was written" in failed
    assert "M a.txt +1 -1\nA b.txt +1 -0" in applied
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\nTWO\nthree\n"
    assert (project / "b.txt").read_text(encoding="utf-8") == "hello\n" and not (project / "c.txt").exists()


def from_init(project: Path, *options: str) -> dict[str, Any]:
    """The entry that `gripfast init` writes."""
    subprocess.run([*GRIPFAST, "init", "opencode", "--write", *options], cwd=project, check=True, timeout=60)
    return json.loads((project / "opencode.json").read_text(encoding="utf-8"))["mcp"]["gripfast"]


def test_opencode_uses_what_init_writes(project: Path, tmp_path: Path, http_server: tuple[str, str]) -> None:
    url, token = http_server
    remote = from_init(project, "--http", url, "--token", token)
    (project / "opencode.json").unlink()
    local = from_init(project, "--command", shlex.join(GRIPFAST), "--root", str(project))
    for server in (remote, local):
        with scripted_model(("gripfast_Read", {"file_path": "a.txt"})) as model:
            run_opencode(model, project, tmp_path, {**server, "timeout": 120000})
        assert shown(model.results[0]).startswith("     1\tone")
