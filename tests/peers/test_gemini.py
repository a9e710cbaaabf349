"""The real Gemini CLI, with a model that plays a script, finds the server and uses its tools."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from peers.around import GRIPFAST, node, package
from scripted_model import Script, scripted_model

# Without a choice of its own, it takes another address than Google's for a gateway, and signs in differently.
SETTINGS = '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}'


def shown(result: dict[str, Any]) -> str:
    """What the model gets of one answer, without the marks that Gemini CLI puts around what comes from outside."""
    lines = result["response"]["output"].split("\n")
    assert (lines[0], lines[-1]) == ("<untrusted_context>", "</untrusted_context>")
    return "\n".join(lines[1:-1])


def run_gemini(model: Script, project: Path, home: Path) -> None:
    """Has `gripfast init` put the server into the project's settings, then Gemini CLI play the script to its end."""
    gemini = package("@google/gemini-cli") / "bundle" / "gemini.js"
    init = [*GRIPFAST, "init", "gemini", "--command", shlex.join(GRIPFAST), "--root", str(project), "--write"]
    subprocess.run(init, cwd=project, capture_output=True, timeout=60, check=True)
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(SETTINGS, encoding="utf-8")
    trusted = json.dumps({str(project): "TRUST_FOLDER"})  # before that, it ignores a project's settings
    (home / ".gemini" / "trustedFolders.json").write_text(trusted, encoding="utf-8")
    done = subprocess.run(
        [node(), str(gemini), "-p", "go", "-m", "gemini-2.5-flash", "--approval-mode", "yolo"],
        cwd=project, capture_output=True, text=True, timeout=240, check=False, stdin=subprocess.DEVNULL,
        env={
            "PATH": os.environ["PATH"], "HOME": str(home), "GEMINI_API_KEY": "scripted",
            "GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_TELEMETRY_ENABLED": "false",
        },
    )  # fmt: skip
    assert "FINISHED" in done.stdout, done.stdout + done.stderr


def test_gemini_reads_edits_searches_and_runs(project: Path, tmp_path: Path) -> None:
    calls = (
        ("mcp_gripfast_Read", {"file_path": "a.txt"}),
        ("mcp_gripfast_Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}),
        ("mcp_gripfast_Grep", {"pattern": "T.O", "output_mode": "content"}),
        ("mcp_gripfast_Bash", {"command": "wc -l < a.txt"}),
    )
    with scripted_model(*calls) as model:
        run_gemini(model, project, tmp_path)
    assert {name for name, _ in calls} <= set(model.tools)
    read, edit, grep, bash = map(shown, model.results)
    assert read == "     1\tone\n     2\ttwo\n     3\tthree"
    assert edit.startswith("edited `a.txt`: 1 replacement")
    assert grep.startswith("a.txt:2:TWO\n")
    assert bash.endswith("3\n")  # below an empty block: it can't take a number for an answer
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\nTWO\nthree\n"
