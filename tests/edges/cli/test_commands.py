"""The command line as people and scripts meet it."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result

from holdfast.builtin.session import TOOLS
from holdfast.call.hooks import Question
from holdfast.edges.cli import main, screen
from holdfast.edges.profiles import PROFILES, pick, price
from holdfast.edges.reference import markdown
from holdfast.messages import ToolCall

HOLDFAST = [sys.executable, "-m", "holdfast"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (root / "inner").mkdir()
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(root)
    return root


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, words, input=stdin, prog_name="holdfast")


def test_a_named_session_remembers_what_was_read_and_planned(project: Path) -> None:
    edit = '{"file_path": "a.txt", "old_string": "two", "new_string": "TWO"}'
    assert run("call", "Read", '{"file_path": "a.txt"}', "--session", "s").exit_code == 0
    assert "NOT_READ" in run("call", "Edit", edit, "--session", "other").stderr
    assert "NOT_READ" in run("call", "Edit", edit).stderr
    assert run("call", "Edit", edit, "--session", "s").exit_code == 0
    run("call", "write_todos", '{"todos": [{"content": "rest"}]}', "--session", "s")
    assert "rest" in run("call", "done", "--session", "s").stdout


def test_a_named_session_notices_what_changed_between_its_calls(project: Path) -> None:
    run("call", "Read", '{"file_path": "a.txt"}', "--session", "s")
    (project / "a.txt").write_text("changed\n", encoding="utf-8")
    answer = run("call", "Write", '{"file_path": "a.txt", "content": "mine"}', "--session", "s")
    assert answer.exit_code == 1
    assert "CONFLICT" in answer.stderr


def test_a_named_session_keeps_the_working_directory(project: Path) -> None:
    run("call", "Bash", '{"command": "cd inner"}', "--session", "s")
    assert "project/inner" in run("call", "Bash", '{"command": "pwd"}', "--session", "s").stdout
    assert "project/inner" not in run("call", "Bash", '{"command": "pwd"}', "--session", "t").stdout


def test_a_named_session_can_read_the_outputs_of_its_earlier_calls(project: Path) -> None:
    answer = run("call", "Bash", '{"command": "seq 100000"}', "--session", "s", "--json")
    ref = json.loads(answer.stdout)["output_ref"]["id"]
    window = json.dumps({"ref_id": ref, "offset": 54320, "limit": 1})
    assert "54321" in run("call", "tool_output_cache", window, "--session", "s").stdout
    assert run("call", "tool_output_cache", window, "--session", "t").exit_code == 1


def test_a_broken_state_file_is_a_session_that_begins(project: Path, tmp_path: Path) -> None:
    run("call", "Read", '{"file_path": "a.txt"}', "--session", "s")
    [kept] = (tmp_path / "holdfast" / "sessions").glob("s-*.json")
    assert kept.stat().st_mode & 0o077 == 0
    kept.write_text('{"version": 1, "reads": [7', encoding="utf-8")
    assert run("call", "Read", '{"file_path": "a.txt"}', "--session", "s").exit_code == 0


@pytest.mark.parametrize("words", [
    ("call", "Read", "{}", "--session", "../x"), ("call", "Read", "{}", "--root", "missing"), ("nope",),
    ("tools", "--tools", "Raed"), ("tools", "--profile", "none"),
    ("init", "claude", "--profile", "none"), ("call", "Read", "{}", "--config", "missing.toml"),
])  # fmt: skip
def test_bad_usage_is_told_and_exits_2(project: Path, words: tuple[str, ...]) -> None:
    answer = run(*words)
    assert answer.exit_code == 2
    assert "Error: " in answer.stderr


def test_a_near_name_is_offered(project: Path) -> None:
    assert "did you mean Read?" in run("tools", "--tools", "Raed").stderr
    assert "did you mean Read?" in run("tools", "--tools", "Reed").stderr
    assert "did you mean `Read` or " in run("call", "Reed").stderr
    assert "did you mean `Read`?" in run("check", "Reed").stderr


def test_who_changes_a_file_without_a_session_is_told_how_to_have_one(project: Path) -> None:
    write = '{"file_path": "a.txt", "content": ""}'
    assert "--session NAME" in run("call", "Write", write).stderr
    assert "--session NAME" not in run("call", "Write", write, "--session", "s").stderr


OWN_TOOL = """
from holdfast import tool
print("loading")

@tool
def {name}(text: str{kind}) -> str:
    "Shouts."
    print("shouting")
    return text.upper()

again = {name}
"""


def test_what_a_tool_of_ones_own_prints_is_not_in_the_answer(project: Path) -> None:
    (project / "mine.py").write_text(OWN_TOOL.format(name="shout", kind=""), encoding="utf-8")
    answer = run("call", "shout", '{"text": "a"}', "--with", "mine.py")
    assert answer.stdout == "A\n"
    assert answer.stderr == "loading\nshouting\n"
    assert json.loads(run("tools", "--with", "mine.py", "--format", "openai").stdout)


@pytest.mark.parametrize(("code", "words"), [
    ("x = 1", "mine.py has no tool at its top level"),
    (OWN_TOOL.format(name="shout", kind=", other"), "mine.py: `shout` can't be a tool: `other` has no type"),
    (OWN_TOOL.format(name="Read", kind=""), "two tools are named `Read`"),
])  # fmt: skip
@pytest.mark.parametrize("command", [("tools",), ("call", "Read", "{}"), ("serve",)])
def test_tools_that_can_not_be_added_are_told_before_anything_starts(
    project: Path, command: tuple[str, ...], code: str, words: str
) -> None:
    (project / "mine.py").write_text(code, encoding="utf-8")
    answer = run(*command, "--with", "mine.py")
    assert answer.exit_code == 2
    assert words in answer.stderr


def test_an_output_that_ends_its_last_line_gets_no_empty_one(project: Path) -> None:
    assert run("call", "Bash", '{"command": "echo one"}').stdout == "one\n"
    assert "one\r\n\r\n" not in on_a_terminal(project, "call", "Bash", '{"command": "echo one"}')


def test_the_list_of_commands_is_whole_sentences() -> None:
    assert "..." not in run("--help").stdout.split("Commands:")[1]


def test_only_the_named_tools_can_be_called(project: Path) -> None:
    answer = run("call", "Write", '{"file_path": "b", "content": ""}', "--tools", "Read,Grep")
    assert answer.exit_code == 1
    assert not (project / "b").exists()
    assert "TOOL_NOT_FOUND" in answer.stderr


def test_no_tool_of_the_read_only_profile_can_change_anything() -> None:
    assert {tool.traits.effect for tool in pick(TOOLS, "read-only")} == {"read"}


def test_every_name_in_a_profile_is_a_tool() -> None:
    names = {tool.name for tool in TOOLS}
    assert {name for wanted in PROFILES.values() for name in wanted or ()} <= names


# What a model pays, in tokens, to be told of the tools. Raise one only for words worth it.
MOST_TOKENS = {
    "full": 2850,
    "agent": 2250,
    "read-only": 1700,
    "seed-000": 275,
    "seed-001": 135,
    "seed-002": 200,
    "seed-003": 360,
    "seed-004": 1570,
}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_costs_no_more_than_its_price(profile: str) -> None:
    assert 0 < price(pick(TOOLS, profile)) <= MOST_TOKENS[profile]


def test_cost_tells_every_tool_and_profile(project: Path) -> None:
    rows = dict(line.split("\t", 1) for line in run("tools", "--cost").stdout.splitlines() if line)
    assert set(PROFILES) | {tool.name for tool in TOOLS} == set(rows)


def test_the_reference_is_what_the_definitions_say() -> None:
    reference = Path(__file__).parent.parent.parent.parent / "docs" / "reference" / "tools.md"
    assert reference.read_text(encoding="utf-8") == markdown(TOOLS), "run scripts/docs"


@pytest.mark.parametrize("command", [(), ("call",), ("serve",), ("tools",), ("init",), ("doctor",), ("check",)])
def test_help_teaches_every_command(command: tuple[str, ...]) -> None:
    answer = run(*command, "--help")
    assert answer.exit_code == 0
    assert "holdfast" in answer.stdout


def test_init_prints_what_a_client_wants_and_writes_it_when_told(project: Path) -> None:
    printed = json.loads(run("init", "cursor", "--root", ".").stdout)
    assert printed["mcpServers"]["holdfast"]["args"][-2:] == ["--root", str(project)]
    assert not (project / ".cursor").exists()
    assert run("init", "cursor", "--root", ".", "--write").exit_code == 0
    assert json.loads((project / ".cursor" / "mcp.json").read_text(encoding="utf-8")) == printed
    again = run("init", "cursor", "--write")
    assert again.exit_code == 1
    assert "already has a server named holdfast" in again.stderr


def test_doctor_tells_what_this_machine_offers(project: Path) -> None:
    findings = {one["what"]: one for one in json.loads(run("doctor", "--json").stdout)}
    assert findings["files"]["state"] in ("good", "fair")
    assert findings["ripgrep"]["state"] == "good"
    assert findings["Bash sandbox"]["words"].split(":")[0] in ("bwrap", "landlock", "none")


def test_doctor_warns_where_an_agent_could_change_the_server_itself(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> dict[str, str]:
        return next(one for one in json.loads(run("doctor", "--json").stdout) if one["what"] == "its own code")

    assert said()["state"] == "good"
    monkeypatch.setattr(sys, "prefix", str(project / ".venv"))
    assert said()["state"] == "fair"
    assert str(project / ".venv") in said()["words"]


def test_completion_gives_a_line_for_the_shell_and_the_names_of_tools(project: Path) -> None:
    assert "_HOLDFAST_COMPLETE=bash_source" in run("completion", "bash").stdout
    asked = {"_HOLDFAST_COMPLETE": "bash_complete", "COMP_WORDS": "holdfast call re", "COMP_CWORD": "2"}
    command = [sys.executable, "-c", "from holdfast.edges.cli import main; main(prog_name='holdfast')"]
    done = subprocess.run(
        command, env={**os.environ, **asked}, capture_output=True, text=True, timeout=60, check=False
    )
    assert {"plain,Read", "plain,read_file"} <= set(done.stdout.split())


def on_a_terminal(project: Path, *words: str, typed: str = "") -> str:
    """What a person sees: both streams on a pseudo-terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*HOLDFAST, *words], cwd=project, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    if typed:
        os.write(ours, typed.encode())
    seen = b""
    try:
        while chunk := os.read(ours, 4096):
            seen += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    process.wait(60)
    return seen.decode()


def test_on_a_terminal_numbers_are_dim_and_json_is_laid_out(project: Path) -> None:
    assert "\x1b[2m     1" in on_a_terminal(project, "call", "Read", '{"file_path": "a.txt"}')
    assert '"path"' in on_a_terminal(project, "call", "read_file", '{"path": "a.txt"}')


def test_in_a_pipe_everything_is_plain(project: Path) -> None:
    done = subprocess.run(
        [*HOLDFAST, "call", "Read", '{"file_path": "a.txt"}'], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "     1\tone\n     2\ttwo\n"
    assert done.stderr == ""


def test_on_a_terminal_a_person_is_asked(project: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[permissions]\ndefault_action = "ask"\n', encoding="utf-8")
    write = ("call", "Write", '{"file_path": "new.txt", "content": "x"}', "--config", str(rules))
    assert "nobody to ask" in run(*write).stderr
    assert "Run it?" in on_a_terminal(project, *write, typed="n\n")
    assert not (project / "new.txt").exists()
    on_a_terminal(project, *write, typed="y\n")
    assert (project / "new.txt").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_written_over_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(screen, "PATIENCE", 0.001)
    seen: list[str] = []

    def think(*_: object, **__: object) -> str:
        seen.append(terminal.getvalue())
        time.sleep(0.2)
        seen.append(terminal.getvalue())
        return "n"

    monkeypatch.setattr(screen.click, "prompt", think)
    bash = next(tool for tool in TOOLS if tool.name == "Bash")
    call = ToolCall("1", "Bash", {"command": "ls"})
    question = Question(call, bash, bash.arguments.parse(call.arguments), "a reason", may_remember=False)
    ask = screen.asker()
    assert ask is not None
    with screen.waiting("Bash"):
        assert anyio.run(ask, question) is False
    assert seen[0] == seen[1]


def test_who_may_not_read_outside_is_told_that_a_root_is_needed(project: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[permissions]\nrule_set = "workspace"\n', encoding="utf-8")
    answer = run("call", "Read", '{"file_path": "/etc/hostname"}', "--config", str(rules))
    assert "nobody to ask: make the directory it is in a root as well" in answer.stderr


HOSTILE = "safe\x1b]0;title\x07\x1b[2Kgone\rnew \u202eturned\n"


def test_a_file_can_not_speak_to_the_terminal_it_is_shown_on(project: Path) -> None:
    (project / "hostile.txt").write_text(HOSTILE, encoding="utf-8", newline="")
    for tool, name in (("Read", "file_path"), ("read_file", "path"), ("lisp-read-file", "path")):
        seen = on_a_terminal(project, "call", tool, json.dumps({name: "hostile.txt"}))
        assert "safe" in seen and "gone" in seen, seen
        assert not any(act in seen for act in ("\x1b]0", "\x07", "\x1b[2K", "\u202e", "gone\rnew")), seen


def test_in_a_pipe_a_file_is_given_as_it_is(project: Path) -> None:
    (project / "hostile.txt").write_text(HOSTILE, encoding="utf-8", newline="")
    call = [*HOLDFAST, "call", "Read", '{"file_path": "hostile.txt"}']
    done = subprocess.run(call, capture_output=True, timeout=60, check=False)
    assert done.stdout.decode() == f"     1\t{HOSTILE}"


def test_a_person_is_asked_in_the_same_words_as_everywhere(project: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[permissions]\ndefault_action = "ask"\n', encoding="utf-8")
    arguments = json.dumps({"command": "echo \x1b[2K\u202e", "description": "harmless\nRun it? y"})
    seen = on_a_terminal(project, "call", "Bash", arguments, "--config", str(rules), typed="n\n")
    assert "command: echo \\u001b[2K\\u202e" in seen
    assert "description: harmless\\nRun it? y" in seen
    assert '"Always" covers Bash with exactly this command.' in seen
