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
from typing import Any

import anyio
import click
import pytest
from click.testing import CliRunner, Result

from gripfast.builtin.session import open_session
from gripfast.builtin.tools import (
    CODING_TOOLS,
    LISP_TOOLS,
    OUTPUT_CACHE_TOOLS,
    READ_FILE_TOOLS,
    TOOLS,
    TREE_TOOLS,
)
from gripfast.call.hooks import Answered, Question
from gripfast.edges.cli import main, screen
from gripfast.edges.cli.clients import CLIENTS
from gripfast.edges.profiles import PROFILES, pick, price
from gripfast.edges.reference import markdown
from gripfast.host.files.scope import Scope
from gripfast.host.program import own
from gripfast.host.program.places import own_command
from gripfast.host.shell import sandbox as sandboxes
from gripfast.host.shell.quarantine import take_out
from gripfast.host.shell.sandbox import Sandbox
from gripfast.messages import ToolCall

GRIPFAST = [sys.executable, "-m", "gripfast"]


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
    return CliRunner().invoke(main, words, input=stdin, prog_name="gripfast")


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
    [kept] = (tmp_path / "gripfast" / "sessions").glob("s-*.json")
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
    assert "did you mean `Read`?" in run("tools", "--tools", "Raed").stderr
    assert "did you mean `Read`?" in run("tools", "--tools", "Reed").stderr
    assert "did you mean `Read` or " in run("call", "Reed").stderr
    assert "did you mean `Read`?" in run("check", "Reed").stderr


def test_who_changes_a_file_without_a_session_is_told_how_to_have_one(project: Path) -> None:
    write = '{"file_path": "a.txt", "content": ""}'
    assert "--session NAME" in run("call", "Write", write).stderr
    assert "--session NAME" not in run("call", "Write", write, "--session", "s").stderr


def test_who_starts_a_command_in_the_background_is_told_that_it_ended_with_the_call(project: Path) -> None:
    told = "The command has ended with this call"
    assert told in run("call", "Bash", '{"command": "sleep 300", "run_in_background": true}').stderr
    assert told not in run("call", "Bash", '{"command": "true"}').stderr


OWN_TOOL = """
from gripfast import tool
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


def test_every_profile_a_tool_declares_is_a_profile() -> None:
    assert {profile for tool in TOOLS for profile in tool.traits.profiles} == {*PROFILES} - {"full"}


def test_a_profile_has_the_tools_that_declare_it() -> None:
    names = {profile: {tool.name for tool in pick(TOOLS, profile)} for profile in PROFILES}
    cache = {"tool_output_cache", "tool_output_cache_grep"}
    working = {"Read", "Write", "Edit", "Glob", "Grep", "Bash", "BashOutput", "KillBash", *cache}
    assert names["full"] == {tool.name for tool in TOOLS}
    assert names["agent"] == {*working, "outline", "write_todos", "done"}
    assert names["codex"] == {*working - {"Write", "Edit"}, "apply_patch", "tree"}
    assert names["read-only"] == {"Read", "Glob", "Grep", "read_file", "tree", "outline", "lisp-read-file", *cache}
    assert names["lisp"] == {*names["read-only"], "Edit", "Write"} - {"outline"}


def test_a_profile_that_is_not_there_is_answered_with_the_ones_that_are(project: Path) -> None:
    answer = run("tools", "--profile", "seed-004")
    assert answer.exit_code == 2
    assert all(profile in answer.stderr for profile in PROFILES)


def test_the_fixed_sets_open_a_session_with_exactly_their_tools(project: Path) -> None:
    session = open_session(Scope.workspace(project), builtin=CODING_TOOLS)
    assert list(session.tools) == ["Read", "Write", "Edit", "Glob", "Grep", "Bash", "BashOutput", "KillBash"]
    others = [LISP_TOOLS, READ_FILE_TOOLS, TREE_TOOLS, OUTPUT_CACHE_TOOLS]
    assert [[tool.name for tool in tools] for tools in others] == [
        ["lisp-read-file"],
        ["read_file"],
        ["tree"],
        ["tool_output_cache", "tool_output_cache_grep"],
    ]


# What a model pays, in tokens, to be told of the tools. Raise one only for words worth it.
MOST_TOKENS = {
    "full": 3200,
    "agent": 2040,
    "read-only": 1635,
    "codex": 1590,
    "lisp": 1860,
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
    assert "gripfast" in answer.stdout


def test_init_gives_codex_its_own_profile_unless_another_is_named() -> None:
    assert '"--profile", "codex"' in run("init", "codex").stdout
    assert '"--profile", "agent"' in run("init", "codex", "--profile", "agent").stdout
    assert "--profile" not in run("init", "claude").stdout


def test_init_prints_what_a_client_wants_and_writes_it_when_told(project: Path) -> None:
    printed = json.loads(run("init", "cursor", "--root", ".").stdout)
    assert printed["mcpServers"]["gripfast"]["args"][-2:] == ["--root", str(project)]
    assert not (project / ".cursor").exists()
    assert run("init", "cursor", "--root", ".", "--write").exit_code == 0
    assert json.loads((project / ".cursor" / "mcp.json").read_text(encoding="utf-8")) == printed
    again = run("init", "cursor", "--write")
    assert again.exit_code == 1
    assert "already has a server named gripfast" in again.stderr


SHARED_FILES = {
    "claude": ".mcp.json", "cursor": ".cursor/mcp.json", "gemini": ".gemini/settings.json",
    "opencode": "opencode.json", "vscode": ".vscode/mcp.json",
}  # fmt: skip
OWN_FILES = {
    "codex": ".codex/config.toml",
    "windsurf": ".codeium/windsurf/mcp_config.json", "zed": ".config/zed/settings.json",
}  # fmt: skip


def test_init_knows_whose_file_each_client_has() -> None:
    assert {*SHARED_FILES, *OWN_FILES} == set(CLIENTS)


@pytest.mark.parametrize("client", SHARED_FILES)
def test_a_file_of_the_project_names_no_path_of_this_machine(project: Path, client: str) -> None:
    done = run("init", client, "--write")
    assert done.exit_code == 0
    written = (project / SHARED_FILES[client]).read_text(encoding="utf-8")
    assert '"gripfast"' in written and '"serve"' in written
    assert sys.prefix not in written and str(project) not in written
    assert "--command" in done.stderr  # says what to do where `gripfast` is not on the PATH


@pytest.mark.parametrize("client", OWN_FILES)
def test_your_own_file_names_what_is_installed(project: Path, monkeypatch: pytest.MonkeyPatch, client: str) -> None:
    home = project / "home"
    monkeypatch.setenv("HOME", str(home))
    done = run("init", client, "--write")
    assert done.exit_code == 0 and "--command" not in done.stderr
    assert json.dumps(own_command()[0]) in (home / OWN_FILES[client]).read_text(encoding="utf-8")


@pytest.mark.parametrize("client", [*SHARED_FILES, *OWN_FILES])
def test_init_writes_the_command_it_is_given(project: Path, client: str) -> None:
    done = run("init", client, "--command", "uvx --from 'gripfast[mcp]' gripfast", "--file", "own")
    words = '"uvx", "--from", "gripfast[mcp]", "gripfast", "serve"'.split(", ")
    written = "".join(done.stdout.split())
    assert all(word in written for word in words) and "ignored" not in done.stderr
    assert "PATH" not in done.stderr
    assert run("init", client, "--command", " ").exit_code == run("init", client, "--command", "'").exit_code == 2


def test_opencode_zed_and_windsurf_get_the_entries_they_read() -> None:
    entries: dict[str, Any] = {}
    for client, keys in {"opencode": ["mcp"], "zed": ["context_servers"], "windsurf": ["mcpServers"]}.items():
        for words in ((), ("--http", "https://a.example/mcp", "--token", "T")):
            found = json.loads(run("init", client, "--command", "gripfast", *words).stdout)
            entries[f"{client} {len(words)}"] = found[keys[0]]["gripfast"]
    headers = {"Authorization": "Bearer T"}
    assert entries == {
        "opencode 0": {"type": "local", "command": ["gripfast", "serve"]},
        "opencode 4": {"type": "remote", "url": "https://a.example/mcp", "headers": headers},
        "zed 0": {"command": "gripfast", "args": ["serve"]},
        "zed 4": {"url": "https://a.example/mcp", "headers": headers},
        "windsurf 0": {"command": "gripfast", "args": ["serve"]},
        "windsurf 4": {"serverUrl": "https://a.example/mcp", "headers": headers},
    }


def test_a_token_in_a_file_of_the_project_is_warned_about(project: Path) -> None:
    done = run("init", "cursor", "--http", "http://127.0.0.1:1/mcp", "--token", "T" * 20, "--write")
    assert "don't commit it" in done.stderr


def test_doctor_tells_what_this_machine_offers(project: Path) -> None:
    findings = {one["what"]: one for one in json.loads(run("doctor", "--json").stdout)}
    assert findings["files"]["state"] in ("good", "fair")
    assert findings["ripgrep"]["state"] == "good"
    assert findings["Bash sandbox"]["words"].split(":")[0] in ("bwrap", "landlock", "none")


def test_doctor_tries_the_store_that_is_configured(project: Path, tmp_path: Path) -> None:
    assert "store" not in {one["what"] for one in json.loads(run("doctor", "--json").stdout)}
    own = tmp_path / "own.toml"
    own.write_text(f'store = "unix://:a-password@{tmp_path}/none.sock"\n', encoding="utf-8")
    done = run("doctor", "--json", "--config", str(own))
    found = next(one for one in json.loads(done.stdout) if one["what"] == "store")
    assert (found["state"], found["words"]) == ("bad", "the shared store failed: Redis can't be reached")
    assert done.exit_code == 1 and "a-password" not in done.stdout


def test_doctor_looks_at_the_workspace_it_is_given(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / ".gripfast.toml").write_text('network = "off"\n', encoding="utf-8")
    words = {one["what"]: one["words"] for one in json.loads(run("doctor", "--json", "--root", str(other)).stdout)}
    assert "network" in words["configuration"] or str(other) in words["configuration"]
    assert run("doctor", "--root", str(other / "none")).exit_code == 2


def test_doctor_warns_where_an_agent_could_change_the_server_itself(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> dict[str, str]:
        return next(one for one in json.loads(run("doctor", "--json").stdout) if one["what"] == "its own code")

    assert said()["state"] == "good"
    monkeypatch.setattr(own, "_code", lambda: (str(project / ".venv"),))
    monkeypatch.setattr(sandboxes, "_best", lambda: Sandbox("bwrap"))
    assert said()["state"] == "good"
    assert str(project / ".venv") in said()["words"]
    monkeypatch.setattr(sandboxes, "_best", lambda: Sandbox("none"))
    assert said()["state"] == "fair"
    assert str(project / ".venv") in said()["words"]


def test_serve_refuses_to_start_where_commands_could_change_its_own_code(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_code", lambda: (str(project / ".venv"),))
    monkeypatch.setattr(sandboxes, "_best", lambda: Sandbox("none"))
    refused = run("serve")
    assert refused.exit_code == 2
    assert "--own-code-in-reach" in refused.stderr
    assert str(project / ".venv") in refused.stderr
    for accepted in (["--own-code-in-reach"], ["--tools", "Read,Write"]):
        assert "own code" not in run("serve", *accepted, "--http", "not-an-address").stderr


def test_quarantine_lists_shows_and_releases(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    assert "nothing" in run("quarantine").stdout
    (project / ".envrc").write_text("echo evil")
    item = take_out(str(project / ".envrc"), "a protected name that a command made")
    assert item is not None
    listed = run("quarantine").stdout
    assert item.id in listed and ".envrc" in listed
    assert run("quarantine", "list").stdout == listed
    assert json.loads(run("quarantine", "list", "--json").stdout) == json.loads(run("quarantine", "--json").stdout)
    assert "echo evil" in run("quarantine", "show", item.id).stdout
    run("quarantine", "release", item.id)
    assert (project / ".envrc").read_text() == "echo evil"
    assert "no quarantined items" in run("quarantine", "show", item.id).stderr


def test_clean_empties_the_caches_of_commands(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    cached = project / "cache" / "gripfast" / "commands" / ".npm"
    cached.mkdir(parents=True)
    (cached / "x").write_bytes(b"x" * 2_000_000)
    assert "removed 1.9 MB" in run("clean").stdout
    assert not cached.exists()


def test_completion_gives_a_line_for_the_shell_and_the_names_of_tools(project: Path) -> None:
    assert "_GRIPFAST_COMPLETE=bash_source" in run("completion", "bash").stdout
    asked = {"_GRIPFAST_COMPLETE": "bash_complete", "COMP_WORDS": "gripfast call re", "COMP_CWORD": "2"}
    command = [sys.executable, "-c", "from gripfast.edges.cli import main; main(prog_name='gripfast')"]
    done = subprocess.run(
        command, env={**os.environ, **asked}, capture_output=True, text=True, timeout=60, check=False
    )
    assert {"plain,Read", "plain,read_file"} <= set(done.stdout.split())


def on_a_terminal(project: Path, *words: str, typed: str = "") -> str:
    """What a person sees: both streams on a pseudo-terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*GRIPFAST, *words], cwd=project, stdin=theirs, stdout=theirs, stderr=theirs)
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


def test_on_a_terminal_the_folds_of_an_outline_are_dim_and_the_files_of_a_map_bold(project: Path) -> None:
    body = "".join(f"    x = {number}\n" for number in range(50))
    (project / "box.py").write_text(f"def run():\n{body}\n\ndef stop():\n{body}", encoding="utf-8")
    assert "\x1b[2;36m… 2–51" in on_a_terminal(project, "call", "outline", '{"path": "box.py"}')
    assert "\x1b[1mbox.py (104 lines)" in on_a_terminal(project, "call", "outline", '{"path": "."}')


def test_in_a_pipe_everything_is_plain(project: Path) -> None:
    done = subprocess.run(
        [*GRIPFAST, "call", "Read", '{"file_path": "a.txt"}'], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "     1\tone\n     2\ttwo\n"
    assert done.stderr == ""


def test_on_a_terminal_a_long_diff_is_shown_whole_on_demand(project: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[permissions]\ndefault_action = "ask"\n', encoding="utf-8")
    content = "".join(f"line {number}\\n" for number in range(100))
    write = ("call", "Write", f'{{"file_path": "new.txt", "content": "{content}"}}', "--config", str(rules))
    first, whole, rest = on_a_terminal(project, *write, typed="d\ny\n").split("Run it?")
    assert "+line 30" in first and "+line 99" not in first and "d: show all of the diff" in first
    assert "+line 99" in whole
    assert "created `new.txt`" in rest
    assert (project / "new.txt").read_text(encoding="utf-8").endswith("line 99\n")


def test_on_a_terminal_a_person_is_asked(project: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[permissions]\ndefault_action = "ask"\n', encoding="utf-8")
    write = ("call", "Write", '{"file_path": "new.txt", "content": "x"}', "--config", str(rules))
    assert "nobody to ask" in run(*write).stderr
    seen = on_a_terminal(project, *write, typed="n\n")
    assert "Run it?" in seen and "+x" in seen.partition("Run it?")[0]  # with its diff
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
    monkeypatch.setattr(screen, "PROGRESS_SECONDS", 0.001)
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
        assert anyio.run(ask, question) == Answered(False, "terminal")
    assert seen[0] == seen[1]


def test_what_the_scope_refuses_is_refused_at_once_and_not_asked_about(project: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[permissions]\nrule_set = "workspace"\n', encoding="utf-8")
    answer = run("call", "Read", '{"file_path": "/etc/hostname"}', "--config", str(rules))
    assert "SANDBOX_VIOLATION" in answer.stderr
    assert "nobody to ask" not in answer.stderr


HOSTILE = "safe\x1b]0;title\x07\x1b[2Kgone\rnew \u202eturned\n"


def test_a_file_can_not_speak_to_the_terminal_it_is_shown_on(project: Path) -> None:
    (project / "hostile.txt").write_text(HOSTILE, encoding="utf-8", newline="")
    for tool, name in (("Read", "file_path"), ("read_file", "path"), ("lisp-read-file", "path")):
        seen = on_a_terminal(project, "call", tool, json.dumps({name: "hostile.txt"}))
        assert "safe" in seen and "gone" in seen, seen
        assert not any(act in seen for act in ("\x1b]0", "\x07", "\x1b[2K", "\u202e", "gone\rnew")), seen


def test_in_a_pipe_a_file_is_given_as_it_is(project: Path) -> None:
    (project / "hostile.txt").write_text(HOSTILE, encoding="utf-8", newline="")
    call = [*GRIPFAST, "call", "Read", '{"file_path": "hostile.txt"}']
    done = subprocess.run(call, capture_output=True, timeout=60, check=False)
    assert done.stdout.decode() == f"     1\t{HOSTILE}"


def test_a_person_is_asked_in_the_same_words_as_everywhere(project: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[permissions]\ndefault_action = "ask"\n', encoding="utf-8")
    arguments = json.dumps({"command": "echo \x1b[2K\u202e", "description": "harmless\nRun it? y"})
    seen = on_a_terminal(project, "call", "Bash", arguments, "--config", str(rules), typed="n\n")
    assert "command: echo \\x1b[2K\\u202e" in seen
    assert "description: harmless\\nRun it? y" in seen
    assert '"Always" covers Bash with exactly this command.' in seen


@pytest.mark.parametrize("http", [(), ("--http", "127.0.0.1:0")])
def test_serve_refuses_a_root_it_can_not_use_before_it_starts(
    project: Path, tmp_path: Path, http: tuple[str, ...]
) -> None:
    (project / "file.txt").write_text("x", encoding="utf-8")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / ".gripfast.toml").write_text("profile = [", encoding="utf-8")
    for root, words in (
        (project / "nowhere", "nowhere"),
        (project / "file.txt", "file.txt"),
        (broken, ".gripfast.toml"),
    ):
        result = run("serve", *http, "--root", str(root), stdin="")
        assert result.exit_code == 2, result.output
        assert words in result.stderr
        assert result.stdout == ""


@pytest.mark.parametrize(("line", "code"), [("exit 7", 7), ("true", 0), ("kill -9 $$", 137)])
def test_call_bash_ends_with_the_exit_code_of_the_command(project: Path, line: str, code: int) -> None:
    assert run("call", "Bash", json.dumps({"command": line}), "--rules", "none").exit_code == code


def test_a_tool_is_shown_with_its_arguments_and_an_example(project: Path) -> None:
    shown = run("tools", "Grep").stdout
    assert "head_limit" in shown and "gripfast call Grep" in shown and "Glob" not in shown
    assert run("call", "Grep", "--help").stdout == shown
    assert "Call TOOL with" in run("call", "--help").stdout
    assert run("tools", "Gerp").exit_code == 2


def test_plain_words_are_the_arguments_in_their_order_or_by_name(project: Path) -> None:
    assert run("call", "Read", "a.txt").stdout == run("call", "Read", '{"file_path": "a.txt"}').stdout
    assert run("call", "Read", "a.txt", "limit=1").stdout.startswith("     1\tone\n[lines 1 to 1")
    assert run("call", "Read", "limit=1", "a.txt", "offset=1").stdout.startswith("     2\ttwo")
    wrong = run("call", "KillBash", "one", "two")
    assert wrong.exit_code == 2
    assert "'two' is one word too many" in wrong.stderr


def test_json_from_a_pipe_is_taken_without_a_dash(project: Path) -> None:
    piped = subprocess.run(
        [*GRIPFAST, "call", "Read"], input='{"file_path": "a.txt"}', capture_output=True, text=True, timeout=60
    )
    assert piped.stdout.startswith("     1\tone"), piped.stderr


def test_init_twice_changes_nothing_and_is_no_error(project: Path) -> None:
    first = run("init", "cursor", "--write", "--file", "mcp.json")
    assert first.exit_code == 0
    written = Path("mcp.json").read_text(encoding="utf-8")
    again = run("init", "cursor", "--write", "--file", "mcp.json")
    assert again.exit_code == 0
    assert "nothing to change" in again.stderr
    assert Path("mcp.json").read_text(encoding="utf-8") == written
    other = run("init", "cursor", "--write", "--file", "mcp.json", "--profile", "agent")
    assert other.exit_code == 1


def test_on_a_terminal_a_tree_is_drawn(project: Path) -> None:
    shown = on_a_terminal(project, "call", "tree", '{"path": ".", "entry_kind": "all"}')
    assert "├── inner/" in shown and "└── a.txt" in shown
    assert '"children"' not in shown


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    context = click.Context(main)
    shown = " ".join(main.get_help(context).split())
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        assert f"{name} {command.get_short_help_str(200)}" in shown


def test_help_and_completion_of_commands_import_no_pydantic() -> None:
    code = "import sys; from gripfast.edges.cli import main; sys.argv[0] = 'gripfast'\n"
    code += "try: main(prog_name='gripfast')\nfinally: sys.stderr.write(str('pydantic' in sys.modules))"
    for words, completing in ((["--help"], ""), ([], "bash_complete")):
        environment = {**os.environ, "COMP_WORDS": "gripfast ", "COMP_CWORD": "1"}
        environment |= {"_GRIPFAST_COMPLETE": completing} if completing else {}
        command = [sys.executable, "-P", "-c", code, *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.stderr == "False"
        assert "doctor" in done.stdout
