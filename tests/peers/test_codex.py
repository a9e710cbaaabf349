"""The real Codex, with a model that plays a script, finds the server and uses its tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from peers.around import GRIPFAST, node, package
from scripted_model import Script, scripted_model

PROVIDER = """\
model = "scripted"
model_provider = "scripted"
analytics.enabled = false
features.plugins = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""
WAITED_FOR = ("-c", "mcp_servers.gripfast.startup_timeout_sec=120")
APPROVED = ("-c", 'mcp_servers.gripfast.default_tools_approval_mode="approve"')
READ = ("mcp__gripfast.Read", {"file_path": "a.txt"})
EDIT = ("mcp__gripfast.Edit", {"file_path": "a.txt", "old_string": "two", "new_string": "TWO"})
GREP = ("mcp__gripfast.Grep", {"pattern": "T.O", "output_mode": "content"})
BASH = ("mcp__gripfast.Bash", {"command": "wc -l < a.txt"})
READ_FILE = ("mcp__gripfast.read_file", {"path": "a.txt"})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "codex"
    made.mkdir()
    return made


def run_codex(model: Script, home: Path, project: Path, entry: list[str], *settings: str) -> None:
    """Has `gripfast init` put `entry` into Codex's configuration, then Codex play the script to its end."""
    codex = package("@openai/codex") / "bin" / "codex.js"
    config = home / "config.toml"
    config.write_text(PROVIDER.format(url=model.url), encoding="utf-8")
    init = [*GRIPFAST, "init", "codex", *entry, "--file", str(config), "--write"]
    subprocess.run(init, cwd=project, capture_output=True, timeout=60, check=True)
    done = subprocess.run(
        [node(), str(codex), "exec", "--skip-git-repo-check", *WAITED_FOR, *settings, "go"],
        cwd=project, capture_output=True, text=True, timeout=240, check=False, stdin=subprocess.DEVNULL,
        env={
            "PATH": os.environ["PATH"], "HOME": str(home.parent), "CODEX_HOME": str(home), "SCRIPTED_KEY": "scripted",
        },
    )  # fmt: skip
    assert "FINISHED" in done.stdout, done.stdout + done.stderr


def shown(result: dict[str, Any]) -> str:
    """What the model gets of one answer, without the time that Codex puts before it."""
    output = result["output"]
    text = output if isinstance(output, str) else "\n".join(block["text"] for block in output)
    time, label, answer = text.split("\n", 2)
    assert time.startswith("Wall time: "), text
    assert label == "Output:", text
    return answer


def test_codex_reads_edits_searches_and_runs(project: Path, home: Path) -> None:
    calls = (READ, EDIT, GREP, BASH, READ_FILE)
    with scripted_model(*calls) as model:
        run_codex(model, home, project, ["--root", str(project), "--profile", "full"], *APPROVED)
    assert {name for name, _ in calls} <= set(model.tools)
    read, edit, grep, bash, read_file = map(shown, model.results)
    assert read == "     1\tone\n     2\ttwo\n     3\tthree"
    assert edit.startswith("edited `a.txt`: 1 replacement")
    assert grep.startswith("a.txt:2:TWO\n")
    assert bash == "3\n"
    assert json.loads(read_file)["content"] == "one\nTWO\nthree\n"
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\nTWO\nthree\n"


def test_codex_unasked_runs_only_what_the_server_says_only_reads(project: Path, home: Path) -> None:
    with scripted_model(READ, EDIT, GREP, BASH, READ_FILE) as model:
        run_codex(model, home, project, ["--root", str(project), "--profile", "full"])
    read, edit, grep, bash, read_file = map(shown, model.results)
    assert read.startswith("     1\tone")
    assert "requires approval" in edit
    assert grep.startswith("No matches")
    assert "requires approval" in bash
    assert json.loads(read_file)["content"] == "one\ntwo\nthree\n"
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\ntwo\nthree\n"


def test_codex_shows_its_model_why_a_call_was_refused(project: Path, home: Path) -> None:
    with scripted_model(("mcp__gripfast.Read", {"file_path": "/etc/passwd"})) as model:
        run_codex(model, home, project, ["--root", str(project)])
    assert "SANDBOX_VIOLATION: `/etc/passwd` is outside the workspace" in shown(model.results[0])


def test_codex_calls_a_server_over_http(project: Path, home: Path, http_server: tuple[str, str]) -> None:
    url, token = http_server
    with scripted_model(READ, READ_FILE) as model:
        run_codex(model, home, project, ["--http", url, "--token", token])
    read, read_file = map(shown, model.results)
    assert read.startswith("     1\tone")
    assert json.loads(read_file)["content"] == "one\ntwo\nthree\n"


GOOD_PATCH = """\
*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+TWO
*** Add File: new/b.txt
+hello
*** End Patch"""
HALF_PATCH = """\
*** Begin Patch
*** Add File: c.txt
+x
*** Update File: a.txt
@@
-no such line
+y
*** End Patch"""


def test_codex_applies_patches_through_the_profile_that_init_chooses(project: Path, home: Path) -> None:
    half, good = (("mcp__gripfast.apply_patch", {"patch": patch}) for patch in (HALF_PATCH, GOOD_PATCH))
    with scripted_model(READ, half, good) as model:
        run_codex(model, home, project, ["--root", str(project)], *APPROVED)
    assert "mcp__gripfast.apply_patch" in model.tools and "mcp__gripfast.Edit" not in model.tools
    _, failed, applied = map(shown, model.results)
    assert "a part of the patch can't be applied, so nothing was written" in failed
    assert applied.startswith("M a.txt +1 -1\nA new/b.txt +1 -0\n")
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\nTWO\nthree\n"
    assert (project / "new" / "b.txt").read_text(encoding="utf-8") == "hello\n"
    assert not (project / "c.txt").exists()
