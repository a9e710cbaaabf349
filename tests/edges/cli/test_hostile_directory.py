"""Started inside a hostile workspace: nothing of ours is imported from there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from gripfast.edges import cli
from gripfast.edges.cli.main import main
from gripfast.host.program.load import load_module
from gripfast.text.unseen import is_unshown

TOOL = """
from gripfast import tool
@tool
def hello() -> str:
    '''Says hello.'''
    return "hello"
"""
NAMES = ("tomllib", "json", "pydantic", "mcp", "redis", "rich", "difflib", "pypdf", "regex", "tree_sitter")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A directory whose files are named like modules that the program imports, some of them only when needed."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    (tmp_path / "my_tools.py").write_text(TOOL)
    return tmp_path


def _run(hostile: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=hostile, capture_output=True, text=True, timeout=60, input="", check=False)


def test_a_module_named_like_one_of_ours_is_not_imported_when_tools_are_added_from_the_current_directory(
    hostile: Path,
) -> None:
    script = "from gripfast.edges.cli import main; main()"
    done = _run(hostile, "-P", "-c", script, "serve", "--with", "my_tools")
    assert done.returncode == 0, done.stderr
    done = _run(hostile, "-P", "-c", script, "call", "hello", "--with", "my_tools", "--json")
    assert json.loads(done.stdout)["content"] == "hello"
    assert not (hostile / "ran").exists()


def test_started_as_a_module_it_imports_nothing_later_from_where_it_was_started(hostile: Path) -> None:
    for name in NAMES:  # what is imported before the first line of ours runs can't be kept out
        if name not in ("mcp", "rich", "redis", "pypdf"):
            (hostile / f"{name}.py").unlink()
    done = _run(hostile, "-m", "gripfast", "serve")
    assert done.returncode == 0, done.stderr
    assert not (hostile / "ran").exists()


def test_the_current_directory_is_not_left_on_the_path(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hostile)
    before = list(sys.path)
    assert load_module("my_tools").hello.name == "hello"
    assert sys.path == before
    del sys.modules["my_tools"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc")
@pytest.mark.parametrize("command", [["serve"], ["serve", "--http", "nowhere"], ["call", "done"]], ids=" ".join)
def test_the_environment_of_the_server_is_hidden_from_the_commands_it_runs(hostile: Path, command: list[str]) -> None:
    look = "import atexit, ctypes, sys; atexit.register(lambda: print(ctypes.CDLL(None).prctl(3), file=sys.stderr))"
    done = _run(hostile, "-P", "-c", f"{look}; from gripfast.edges.cli import main; main()", *command)
    assert done.stderr.splitlines()[-1] == "0"


HIDDEN = '"a\\u001b]0;owned\\u0007\\u009b31m\\u202e\\U000E0041"'
HOSTILE_FILES = [
    f"{HIDDEN} = 1",
    f"encoding = {HIDDEN}",
    f'deny = [{HIDDEN[:-1]}["]',
    f"[permissions]\ndefault_action = {HIDDEN}",
    f"[permissions]\nrule = [{{tool = {HIDDEN}, action = 'deny'}}]",
    f"[permissions]\nrule = [{{tool = 'Bash', action = 'deny', pattern = {HIDDEN}}}]",
    f"[permissions]\nrule = [{{tool = 'Read', action = 'deny', pattern = {HIDDEN.replace(chr(92) + 'u001b', '')}}}]",
    """[permissions]\nrule = [{tool = 'Read', action = 'deny', pattern = "x\\u202e\\U000E0041"}]""",
    f"[programs.{HIDDEN}]\noptions = ['-x']",
    "\x1b]0;owned\x07 = = \u202e\U000e0041",
]


@pytest.mark.parametrize("text", HOSTILE_FILES)
@pytest.mark.parametrize(
    "command",
    [
        ["call", "Read", '{"file_path": "x"}'],
        ["call", "Read", '{"file_path": "x"}', "--json"],
        ["check", "Read", '{"file_path": "x"}'],
        ["check", "--rules"],
        ["check", "--rules", "--json"],
    ],
    ids=" ".join,
)
def test_a_workspaces_configuration_can_not_act_on_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, command: list[str]
) -> None:
    (tmp_path / ".gripfast.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, command)
    printed = done.stdout + done.stderr
    assert printed
    assert not [char for char in printed if is_unshown(char) and char != "\n"]


def test_only_two_modules_of_the_command_line_print() -> None:
    """Whatever else prints goes through one of them, and so through the escaper."""
    home = Path(cli.__file__).parent
    printing = {path.name for path in home.glob("*.py") if re.search(r"click\.s?echo\(", path.read_text("utf-8"))}
    assert printing == {"say.py", "screen.py"}
