"""Bash, BashOutput and KillBash through a session: the words a model reads."""

from __future__ import annotations

import errno
import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from attacks.shell import fresh_mark, gone
from gripfast.builtin import keys
from gripfast.builtin.endings import taken_out
from gripfast.builtin.rulesets import rule_set
from gripfast.builtin.session import open_session
from gripfast.builtin.tools import TOOLS
from gripfast.call.cache import OutputCache
from gripfast.call.hooks import Question
from gripfast.call.rules import Permissions
from gripfast.call.run import Session
from gripfast.edges.profiles import pick
from gripfast.host.files import watch
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from gripfast.host.files.watch import Watch
from gripfast.host.kernel.inotify import Inotify
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.quarantine import Quarantined
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells
from gripfast.messages import ToolMessage


@asynccontextmanager
async def session_in(root: Path, **options: Any) -> AsyncGenerator[Session]:
    given: dict[str, Any] = {"sandbox": "off", "cache": OutputCache(), **options}
    async with open_session(Scope.workspace(root), **given) as session:
        yield session


async def bash(session: Session, command: str, **arguments: Any) -> str:
    message = await session.call("Bash", {"command": command, **arguments})
    return message.text


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        with anyio.fail_after(60):
            await main()

    anyio.run(bounded)


ANSWERS = {
    "success is its output": ("echo a; echo b >&2", "a\nb\n"),
    "silence is said": ("true", "[no output]"),
    "a failure names its code": ("echo a; exit 3", "a\n[exit code 3]"),
    "a silent failure is only its code": ("false", "[exit code 1]"),
    "death by signal is named": ("kill -9 $$", "[killed by SIGKILL]"),
    "a killed child is named": (
        "exec 2>/dev/null; sh -c 'kill -9 $$'; exit $?",
        "[exit code 137: a process in it was killed by SIGKILL]",
    ),
    "colours are gone": ("printf '\\e[31mred\\e[0m \\e]0;title\\a\\xe2\\x80\\xaeend\\n'", "red end\n"),
    "a rewritten line is its last state": ("printf '10%%\\r50%%\\r100%%\\ndone\\n'", "100%\ndone\n"),
    "bytes that are no text are shown as such": ("printf 'a\\xffb\\n'", "a\ufffdb\n"),
    "a character printed in two halves is whole": ("printf '\\xe3\\x81'; sleep 0.2; printf '\\x82\\n'", "あ\n"),
    "a new directory is stated": ("mkdir -p d/e; cd d/e", "[working directory: d/e]"),
    "input is empty": ("cat; read x || echo none", "none\n"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answer(name: str, tmp_path: Path) -> None:
    command, expected = ANSWERS[name]

    async def main() -> None:
        async with session_in(tmp_path) as session:
            assert await bash(session, command) == expected

    run(main)


def test_the_directory_is_stated_only_when_it_changed(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            await bash(session, "mkdir d; cd d")
            assert await bash(session, "cd . && basename $PWD") == "d\n"
            assert await bash(session, "cd ..") == "[working directory: .]"

    run(main)


def test_a_timeout_gives_the_output_so_far_and_ends_everything(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        async with session_in(tmp_path) as session:
            text = await bash(session, f"echo before; setsid sleep 987.{mark} & sleep 987.{mark}", timeout=500)
            assert text.startswith("before\n[timed out after 0.5 s (timeout=500 is in milliseconds): ")
            assert await gone(mark) == []

    run(main)


def test_what_is_left_running_is_said_and_ends_with_the_session(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        async with session_in(tmp_path) as session:
            text = await bash(session, f"sleep 987.{mark} & echo started")
            assert text.startswith("started\n[left running until the session ends: ")
            assert mark in text
        assert await gone(mark) == []

    run(main)


def test_a_flood_shows_head_and_tail_and_keeps_all_under_its_ref(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_session(Scope.workspace(tmp_path), sandbox="off") as session:
            message = await session.call("Bash", {"command": "seq 100000; exit 2"})
            assert message.text.startswith("1\n2\n3\n")
            assert message.text.endswith("99999\n100000\n[exit code 2]")
            assert len(message.text.encode()) <= 64 * 1024
            assert message.output_ref is not None
            assert message.output_ref.line_count == 100_000
            window = await session.call(
                "tool_output_cache", {"ref_id": message.output_ref.id, "offset": 49_999, "limit": 1}
            )
            assert " 50000\t50000" in window.text

    run(main)


def test_created_changed_and_deleted_files_are_reported(tmp_path: Path) -> None:
    for name in ("kept", "edited", "removed"):
        (tmp_path / name).write_text(name)

    async def main() -> None:
        async with session_in(tmp_path) as session:
            text = await bash(session, "echo x > new; echo x >> edited; rm removed; chmod 600 kept; cat kept")
            assert text == "kept\n[files: created new; changed edited; deleted removed]"
            text = await bash(session, "touch $(seq 50)")
            assert "created 1, 10, " in text
            assert text.endswith(" and 30 more]")
            text = await bash(session, "mkdir -p build/a build/b src; touch build/{a,b}/{1..50} src/new.c")
            assert text == "[files: created src/new.c, build/ (100 files)]"

    run(main)


def test_instructions_for_agents_that_a_command_changed_are_named_apart(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            text = await bash(session, "mkdir z; touch $(seq 50) z/AGENTS.md")
            assert text.endswith("\n[agents read these files as instructions; tell the user: z/AGENTS.md]")

    run(main)


def test_a_file_that_a_command_changed_can_be_edited_without_reading_it_again(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("one\n")

    async def main() -> None:
        async with session_in(tmp_path) as session:
            await session.call("Read", {"file_path": "code.py"})
            assert "changed code.py" in await bash(session, "echo two >> code.py")
            edit = {"file_path": "code.py", "old_string": "two", "new_string": "three"}
            assert not (await session.call("Edit", edit)).is_error

    run(main)


def test_a_change_by_somebody_else_before_the_command_stays_a_conflict(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("one\n")

    async def main() -> None:
        async with session_in(tmp_path) as session:
            await session.call("Read", {"file_path": "code.py"})
            (tmp_path / "code.py").write_text("theirs\n")
            await bash(session, "echo two >> code.py")
            message = await session.call("Write", {"file_path": "code.py", "content": "mine\n"})
            assert message.error is not None
            assert message.error.code == "CONFLICT"

    run(main)


def test_where_nothing_can_be_watched_the_list_is_still_true_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "SLOW_WALK", 0.0)
    monkeypatch.setattr(keys, "Watch", functools.partial(Watch, notify=_no_inotify))
    for number in range(300):
        (tmp_path / f"{number}").write_text("x")

    async def main() -> None:
        async with session_in(tmp_path) as session:
            text = await bash(session, "echo y >> 7; touch new")
            assert text.startswith("[files: created new; changed 7]\n[files: the workspace can't be watched")
            assert await bash(session, "rm new") == "[files: deleted new]"

    run(main)


def _no_inotify() -> Inotify:
    raise OSError(errno.EMFILE, "too many")


def test_a_background_shell_is_followed_filtered_and_killed(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        async with session_in(tmp_path) as session:
            text = await bash(session, f"printf 'one\\ntwo\\n'; sleep 987.{mark}", run_in_background=True)
            assert text == '[bash_1 started; BashOutput(bash_id="bash_1") shows what it prints]'
            assert await looked(session, "two") == "one\ntwo\n[bash_1 is running; wait_ms waits for more]"
            assert (
                await session.call("BashOutput", {"bash_id": "bash_1"})
            ).text == "[bash_1 is running; wait_ms waits for more]"
            again = await session.call("BashOutput", {"bash_id": "bash_1", "offset": 0, "filter": "^t"})
            assert again.text == (
                "two\n[bash_1 is running; wait_ms waits for more]\n"
                '[1 of 2 lines shown; without filter: BashOutput(bash_id="bash_1", offset=0)]'
            )
            killed = await session.call("KillBash", {"bash_id": "bash_1"})
            assert killed.text == "[bash_1]\n[stopped: the command and everything it started were ended]"
            assert await gone(mark) == []

    run(main)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("echo a; sleep 0.3; echo b; sleep 0.3; echo ready; sleep 987.{}", "ready\n[bash_1 is running;"),
        ("printf rea; sleep 0.3; printf dy; sleep 987.{}", "ready\n[bash_1 is running;"),
        ("echo a; sleep 0.3; echo b # {}", "[bash_1 has ended with exit code 0]"),
    ],
)
def test_with_a_filter_a_look_waits_for_a_line_that_matches(tmp_path: Path, command: str, shown: str) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            await bash(session, command.format(fresh_mark()), run_in_background=True)
            message = await session.call("BashOutput", {"bash_id": "bash_1", "filter": "^ready$", "wait_ms": 100_000})
            assert message.text.startswith(shown)

    run(main)


def test_a_look_says_which_lines_it_left_out_and_how_to_see_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            await bash(session, "printf '1\\n2\\n3\\n4'", run_in_background=True)

            async def look(**arguments: object) -> str:
                return (await session.call("BashOutput", {"bash_id": "bash_1", **arguments})).text

            end = "[bash_1 has ended with exit code 0]"
            while end not in await look(wait_ms=100_000):
                pass
            assert await look(offset=-2) == f"3\n4\n{end}"
            assert await look(offset=-9) == f"1\n2\n3\n4\n{end}"
            assert await look(offset=99) == f"{end}\n[it has printed 4 lines; offset 99 is past the end]"
            all_lines = 'without filter: BashOutput(bash_id="bash_1", offset=1)]'
            assert await look(offset=1, filter="zebra") == f"{end}\n[none of 3 lines shown; {all_lines}"
            assert await look(offset=1, filter="3") == f"3\n{end}\n[1 of 3 lines shown; {all_lines}"
            assert await look(offset=1) == f"2\n3\n4\n{end}"
            assert await look() == end

    run(main)


def test_a_hint_names_no_argument_that_the_definition_leaves_out(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_session(Scope.workspace(tmp_path), builtin=pick(TOOLS, "agent")) as session:
            await session.call("Bash", {"command": f"sleep 987.{fresh_mark()}", "run_in_background": True})
            assert (await session.call("BashOutput", {"bash_id": "bash_1"})).text == "[bash_1 is running]"
            refused = await session.call("Bash", {"command": "ls", "dry_run": True, "run_in_background": True})
            assert refused.text.endswith("a dry run does not take run_in_background; leave out one or the other")

    run(main)


@pytest.mark.parametrize(("own", "mode"), [(None, "copy"), ("symlink", "symlink")])
def test_in_a_sandbox_uv_copies_from_its_cache_unless_the_user_says_otherwise(
    tmp_path: Path, own: str | None, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not choose("auto").confines:
        pytest.skip("no sandbox works here")
    monkeypatch.delenv("UV_LINK_MODE", raising=False)
    if own is not None:
        monkeypatch.setenv("UV_LINK_MODE", own)

    async def main() -> None:
        async with session_in(tmp_path, sandbox="auto") as session:
            assert await bash(session, "echo $UV_LINK_MODE") == f"{mode}\n"

    run(main)


def test_a_refused_worktree_beside_the_workspace_names_the_place_and_the_setting(outside: str) -> None:
    if choose("auto").level != "bwrap":
        pytest.skip("bubblewrap does not work here")
    project = Path(outside, "shop")
    project.mkdir()
    made = "git init -q . && git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x"
    subprocess.run(["bash", "-c", made], cwd=project, check=True)

    async def main() -> None:
        async with session_in(project, sandbox="auto") as session:
            text = await bash(session, "git worktree add ../shop-wt -b wt")
            assert (
                f'shop-wt/.git: it is outside the workspace; the user can allow it with writable = ["{outside}"]'
                in text
            )

    run(main)


@pytest.mark.parametrize("command", ["rm -f .pre-commit-config.yaml", "echo x > .pre-commit-config.yaml"])
def test_what_the_sandbox_would_refuse_is_asked_about_only_outside_it(
    tmp_path: Path, command: str, asked: Any
) -> None:
    if choose("auto").level != "bwrap":
        pytest.skip("bubblewrap does not work here")
    file = tmp_path / ".pre-commit-config.yaml"
    file.write_text("repos: []\n")
    questions, yes = asked

    async def main() -> None:
        rules = rule_set("trusted")
        async with session_in(tmp_path, sandbox="auto", permissions=rules, ask=yes) as session:
            refused = await session.call("Bash", {"command": command})
            assert refused.is_error and 'unprotect = [".pre-commit-config.yaml"]' in refused.text
            assert questions == [] and file.read_text() == "repos: []\n"
            outside = await session.call("Bash", {"command": command, "outside_sandbox": "the user wants it"})
            assert not outside.is_error and len(questions) == 1

    run(main)
    assert not file.exists() or file.read_text() == "x\n"


def test_a_line_that_matches_and_was_shown_is_found_again_from_its_offset(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            await bash(session, f"echo ready; sleep 987.{fresh_mark()}", run_in_background=True)
            await looked(session, "ready")
            arguments = {"bash_id": "bash_1", "filter": "ready"}
            again = await session.call("BashOutput", {**arguments, "offset": 0, "wait_ms": 100_000})
            assert again.text.startswith("ready\n")
            assert (await session.call("BashOutput", {**arguments, "wait_ms": 50})).text.startswith("[bash_1 is run")

    run(main)


def test_a_command_whose_session_is_closed_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        messages: list[ToolMessage] = []

        async def wait(session: Session) -> None:
            messages.append(await session.call("Bash", {"command": f"touch started; sleep 987.{mark}"}))

        async with session_in(tmp_path) as session, anyio.create_task_group() as group:
            group.start_soon(wait, session)
            while not (tmp_path / "started").exists():
                await anyio.sleep(0.02)
            await session.close()
        (message,) = messages
        assert "[the session was closed: the command and everything it started were ended]" in message.text
        assert await gone(mark) == []

    run(main)


def test_a_protected_file_that_git_could_not_change_is_named(tmp_path: Path) -> None:
    """Committed as it is, it would undo the other branch's change."""
    if choose("auto").level != "bwrap":
        pytest.skip("only bubblewrap keeps the file as it is")
    (tmp_path / ".pre-commit-config.yaml").write_text("one\n")
    set_up = """git init -q -b main . && git config user.email a@b && git config user.name a && git add .
    git commit -qm one
    echo 'git switch -q more' > switch.sh && mkdir -p .github/workflows && echo one > .github/workflows/ci.yml
    git add . && git commit -qm ci && git switch -qc more && echo two > .github/workflows/ci.yml
    git commit -qam two && git switch -q main
    git switch -qc other && echo two > .pre-commit-config.yaml && git add .
    git commit -qm two && git switch -q main"""
    subprocess.run(["bash", "-ec", set_up], cwd=tmp_path, check=True)

    async def main() -> None:
        async with session_in(tmp_path, sandbox="auto") as session:
            assert "git could not" not in await bash(session, "git status --short; touch a; git add a")
            text = await bash(session, "git switch -q other 2>/dev/null; date")
            assert text.count("git could not") == 1
            assert "[git could not change .pre-commit-config.yaml: protected" in text
            assert (tmp_path / ".pre-commit-config.yaml").read_text() == "one\n"
            assert "run this as a line of its own: git checkout -- .pre-commit-config.yaml]" in text
            assert "git could not" not in await bash(session, "git checkout -- .pre-commit-config.yaml")
            assert (tmp_path / ".pre-commit-config.yaml").read_text() == "two\n"
            assert "git could not" not in await bash(session, "git switch -q main 2>/dev/null")
            text = await bash(session, "git merge -q other; date")  # stops without moving the index
            assert text.count("git could not change .pre-commit-config.yaml: protected") == 1
            assert "see git status" in text and "the sandbox refused" not in text and "git stash -u" in text
            await bash(session, "git stash -u")
            assert "git could not" not in await bash(session, "git merge -q other")
            assert (tmp_path / ".pre-commit-config.yaml").read_text() == "two\n"
            subprocess.run(["git", "switch", "-qf", "main"], cwd=tmp_path, check=True)
            assert "as a line of its own: git checkout -- " in await bash(session, "sh switch.sh 2>/dev/null; true")

    run(main)


async def looked(session: Session, until: str) -> str:
    """Looks until a word has come; all of what the looks gave, with the last state."""
    text = ""
    while until not in text:
        await anyio.sleep(0.02)
        message = await session.call("BashOutput", {"bash_id": "bash_1"})
        text = text.removesuffix("[bash_1 is running; wait_ms waits for more]") + message.text
    return text


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("Bash", {"command": ""}, "INVALID_ARGUMENT"),
        ("Bash", {"command": "echo \0"}, "INVALID_ARGUMENT"),
        ("Bash", {"command": "true", "timeout": 600_001}, "INVALID_ARGUMENT"),
        ("Bash", {"command": "true", "timeout": 0}, "INVALID_ARGUMENT"),
        ("BashOutput", {"bash_id": "bash_7"}, "NOT_FOUND"),
        ("BashOutput", {"bash_id": "bash_7", "filter": "("}, "INVALID_REGEX"),
        ("KillBash", {"bash_id": "bash_7"}, "NOT_FOUND"),
    ],
)
def test_bad_input_is_an_error_with_a_code(tool: str, arguments: dict[str, Any], code: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            message = await session.call(tool, arguments)
            assert message.error is not None
            assert message.error.code == code

    run(main)


def test_a_filter_that_explodes_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gripfast.builtin.bash_output._MATCH_SECONDS", 0.2)

    async def main() -> None:
        async with session_in(tmp_path) as session:
            await bash(session, f"echo {'a' * 40}b", run_in_background=True)
            await looked(session, "b\n")
            message = await session.call("BashOutput", {"bash_id": "bash_1", "offset": 0, "filter": "(a|a)+(a|aa)+$"})
            assert message.error is not None
            assert message.error.code == "TIMEOUT"

    run(main)


def test_the_model_is_told_what_holds_its_commands(tmp_path: Path) -> None:
    async def main() -> None:
        for mode in ("off", "auto"):
            async with session_in(tmp_path, sandbox=mode) as session:
                assert choose(mode).description in session.tools["Bash"].description

    run(main)


REFUSED = {
    "attributes": ("echo x > .git/info/attributes; true", ".git/info/attributes: git would run", '["' + '.git"]'),
    "what git follows": (
        "mkdir .git/remotes/x || true",
        ".git/remotes/x: git would run",
        "git -c NAME=VALUE",
    ),
    "a protected name": (
        "cd sub; echo x > ../.vscode/tasks.json",
        ".vscode/tasks.json: other programs",
        'unprotect = [".vscode"]',
    ),
    "outside": ("mkdir OUTSIDE/deep; true", "OUTSIDE/deep: it is outside", 'writable = ["OUTSIDE"]'),
    "python": ('python3 -c \'open("OUTSIDE/x", "w")\'', "OUTSIDE/x: it is outside", 'writable = ["OUTSIDE"]'),
    "a path beside": (
        "echo failed to open OUTSIDE/y; echo; echo Read-only file system",
        "OUTSIDE/y: it is",
        "writable",
    ),
    "much output": ("touch OUTSIDE/x; seq 200000", "OUTSIDE/x: it is outside", 'writable = ["OUTSIDE"]'),
}


@pytest.fixture
def outside() -> Generator[str]:
    """A directory that is not in /tmp, which is private to commands."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield os.path.realpath(folder)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_write_says_where_why_and_what_would_allow_it(name: str, tmp_path: Path, outside: str) -> None:
    if choose("auto").level != "bwrap":
        pytest.skip("bubblewrap does not work here")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for folder in (".vscode", "sub", ".git/remotes"):
        (tmp_path / folder).mkdir()
    (tmp_path / ".vscode" / "tasks.json").write_text("{}")
    (tmp_path / ".git/info/attributes").write_text("")
    command, *expected = (text.replace("OUTSIDE", outside) for text in REFUSED[name])

    async def main() -> None:
        async with session_in(tmp_path, sandbox="auto") as session:
            note = next(
                line for line in (await bash(session, command)).splitlines() if "[the sandbox refused" in line
            )
            assert all(text in note for text in expected), note

    run(main)


def test_under_landlock_too_a_refused_write_is_explained(tmp_path: Path, outside: str) -> None:
    if landlock_version() == 0:
        pytest.skip("this kernel has no Landlock")

    async def main() -> None:
        landlock = Sandbox("landlock")
        async with Shells(Scope.workspace(tmp_path), sandbox=landlock) as shells:
            ended = await shells.run(f"touch {outside}/x; echo done", nothing)
            assert [(one.path, one.why, one.folder) for one in ended.refused] == [
                (f"{outside}/x", "outside", outside)
            ]

    run(main)


async def nothing(_: bytes) -> None:
    """Takes output that no test looks at."""


@pytest.mark.parametrize(
    "command",
    ["echo 'x: Permission denied'; false", "chmod 0 a; cat a", "echo Permission denied: a", "ls"],
)
def test_what_the_sandbox_did_not_refuse_is_not_blamed_on_it(command: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")

    async def main() -> None:
        async with session_in(tmp_path, sandbox="auto") as session:
            assert "sandbox" not in await bash(session, command)

    run(main)


@pytest.fixture
def asked() -> tuple[list[Question], Callable[[Question], Awaitable[bool]]]:
    """Somebody who says yes, and what they were asked."""
    questions: list[Question] = []

    async def yes(question: Question) -> bool:
        questions.append(question)
        return True

    return questions, yes


def test_a_protected_name_is_written_after_a_yes_and_each_time_asked(tmp_path: Path, asked: Any) -> None:
    questions, yes = asked

    async def main() -> None:
        for name, permissions in (("a", None), ("b", Permissions("ask"))):
            place = f".vscode/{name}.json"
            async with session_in(tmp_path, permissions=permissions, ask=yes) as session:
                for content in ("{}", "[]"):
                    written = await session.call("Write", {"file_path": place, "content": content})
                    assert not written.is_error, written.text
                assert (tmp_path / place).read_text() == "[]"
        assert ["other programs run" in one.reason for one in questions] == [True] * 4
        assert not any(one.widths() for one in questions)

    run(main)


def test_what_the_rules_deny_is_not_asked(tmp_path: Path, asked: Any) -> None:
    questions, yes = asked

    async def main() -> None:
        async with session_in(tmp_path, permissions=rule_set("read-only"), ask=yes) as session:
            assert (await session.call("Write", {"file_path": ".vscode/x", "content": ""})).is_error
        assert not questions

    run(main)


@pytest.mark.parametrize("place", [".git/hooks/x", ".gripfast.toml", ".vscode/../.git/config", "objects/x", ".GIT/x"])
def test_nobody_is_asked_about_gits_own_files_and_ours(place: str, tmp_path: Path, asked: Any) -> None:
    questions, yes = asked
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path)], check=True)
    (tmp_path / ".git/hooks").mkdir(parents=True)

    async def main() -> None:
        async with session_in(tmp_path, ask=yes) as session:
            message = await session.call("Write", {"file_path": place, "content": "x"})
            assert message.error is not None
            assert message.error.code == "SANDBOX_VIOLATION"
        assert not questions

    run(main)


def test_without_somebody_to_ask_a_protected_name_is_refused_with_the_setting(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path, permissions=rule_set("trusted")) as session:
            text = (await session.call("Write", {"file_path": ".vscode/x", "content": ""})).text
            assert 'unprotect = [".vscode"]' in text
        assert not (tmp_path / ".vscode").exists()

    run(main)


def test_outside_the_sandbox_runs_only_what_a_person_said_yes_to(tmp_path: Path, outside: str, asked: Any) -> None:
    questions, yes = asked
    call = {"command": f"touch {outside}/x", "outside_sandbox": "to try it"}

    async def main() -> None:
        async with session_in(tmp_path, sandbox="auto", ask=yes) as session:
            assert "outside_sandbox" in session.tools["Bash"].definition.parameters["properties"]
            assert not (await session.call("Bash", call)).is_error
            assert os.listdir(outside) == ["x"]
            assert (await session.call("Bash", call)).text == "[no output]"
        assert [("to try it" in one.reason, one.widths()) for one in questions] == [(True, {})] * 2
        for options in ({}, {"permissions": rule_set("trusted")}, {"ask": no}):
            async with session_in(tmp_path, sandbox="auto", **options) as session:
                refused = await session.call("Bash", {**call, "command": f"touch {outside}/y"})
                assert refused.error is not None
                shown = session.tools["Bash"].definition.parameters["properties"]
                assert ("outside_sandbox" in shown) == ("ask" in options)
        assert os.listdir(outside) == ["x"]

    run(main)


async def no(_: Question) -> bool:
    return False


def test_an_answer_shows_as_much_as_was_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path, max_output=2000) as session:
            lengths = [len(await bash(session, "seq 100000", max_output=size)) for size in (None, 1000, 20_000)]
            assert [length // 1000 for length in lengths] in ([2, 1, 20], [1, 1, 19], [1, 0, 19], [2, 1, 19])

    run(main)


def test_a_look_at_a_background_shell_can_wait(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            await bash(session, "while [ ! -e go ]; do sleep 0.05; done; echo gone", run_in_background=True)

            async def look() -> None:
                message = await session.call("BashOutput", {"bash_id": "bash_1", "wait_ms": 50_000})
                assert message.text.startswith("gone")

            async with anyio.create_task_group() as group:
                group.start_soon(look)
                (tmp_path / "go").touch()

    run(main)


def test_a_program_that_is_not_on_path_is_named_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"scripts": {"lint": "true"}}')
    for folder in ("web/node_modules/.bin", "api/.venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for program in ("web/node_modules/.bin/mybundler", "api/.venv/bin/mytest"):
        (tmp_path / program).write_text("#!/bin/sh\necho ran")
        (tmp_path / program).chmod(0o755)

    async def main() -> None:
        async with session_in(tmp_path, sandbox="auto") as session:
            text = await bash(session, "cd web; mybundler --x; lint; nothing-like-this")
            assert "[mybundler is not on PATH; use node_modules/.bin/mybundler]" in text
            assert "[lint is not on PATH; use npm --prefix .. run lint]" in text
            assert "[nothing-like-this" not in text
            assert "use .venv/bin/mytest]" in await bash(session, "cd ../api; mytest")

    run(main)


def test_a_patch_typed_into_a_shell_is_told_which_tool_takes_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            text = await bash(session, "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF")
            assert "apply_patch is a tool" in text
            assert "is a tool" not in await bash(session, "apply_pat")

    run(main)


def test_the_projects_environment_is_used_as_soon_as_it_is_there(tmp_path: Path) -> None:
    if choose("auto").level == "none":
        pytest.skip("no sandbox works here")

    async def main() -> None:
        async with session_in(tmp_path, sandbox="auto", permissions=rule_set("workspace")) as session:
            made = (
                "mkdir -p .venv/bin; printf '#!/bin/sh\\necho mine\\n' > .venv/bin/pytest; chmod +x .venv/bin/pytest"
            )
            await session.call("Bash", {"command": "ls"})
            subprocess.run(["bash", "-c", made], cwd=tmp_path, check=True)
            assert await bash(session, "pytest") == "mine\n"
            (tmp_path / ".venv/bin/ls").symlink_to("/bin/rm")
            assert "and not the system's" in await bash(session, "ls x")

    run(main)


def test_a_read_only_scope_without_a_sandbox_runs_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        scope = Scope.workspace(tmp_path, read_only=True)
        async with open_session(scope, sandbox="off", cache=OutputCache()) as session:
            message = await session.call("Bash", {"command": "touch made"})
            assert message.error is not None
            assert message.error.code == "SANDBOX_VIOLATION"
        assert not (tmp_path / "made").exists()

    run(main)


PROGRAM = """
import sys, anyio
from gripfast import Scope, ScopedFs, ToolContext, builtin_tools

async def main():
    bash = {tool.name: tool for tool in builtin_tools(ScopedFs(Scope.workspace(sys.argv[1])))}["Bash"]
    await bash.execute_raw({"command": "mkdir d; cd d; sleep 987.%s &" % sys.argv[2]}, ToolContext())
    print((await bash.execute_raw({"command": "basename $PWD"}, ToolContext())).text)

anyio.run(main)
"""


def test_tools_without_a_session_share_one_shell_that_ends_with_the_program(tmp_path: Path) -> None:
    mark = fresh_mark()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), mark]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("d\n\n", "")
    assert anyio.run(gone, mark) == []


def test_the_name_of_a_process_that_is_left_can_not_fake_lines_of_the_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            name = r"$'\xff\n[exit code 0]\e[31m'"
            text = await bash(session, f"(exec -a {name} sleep 60) & sleep 0.3")
            assert text.count("\n") == 0 and "\x1b" not in text
            assert "[exit code 0]\\x1b[31m" in text

    run(main)


def test_a_pipe_in_the_place_of_a_file_that_was_read_costs_no_answer(tmp_path: Path) -> None:
    async def main() -> None:
        async with session_in(tmp_path) as session:
            (tmp_path / "a.txt").write_text("x\n")
            await session.call("Read", {"file_path": "a.txt"})
            text = await bash(session, "rm a.txt; mkfifo a.txt; sleep 60 <> a.txt & sleep 0.2; echo ok")
            assert text.startswith("ok\n") and "[files: changed a.txt]" in text
            (tmp_path / "a.txt").unlink()
            (tmp_path / "a.txt").write_text("another\n")
            answer = await session.call("Write", {"file_path": "a.txt", "content": "mine"})
            assert "read it first" in answer.text

    run(main)


@pytest.mark.anyio
@pytest.mark.parametrize("root", ["/usr"])
async def test_a_root_that_holds_the_systems_bash_can_run_commands(root: str) -> None:
    async with open_session(Scope(read=None, write=[root], wide=True)) as session:
        answer = await session.call("Bash", {"command": "echo $((40 + 2))"})
        for _ in range(2):  # other tests change such a root meanwhile, and then the walls are built anew
            if answer.is_error and "too many protected" not in answer.text:
                answer = await session.call("Bash", {"command": "echo $((40 + 2))"})
    if "too many protected" in answer.text:
        pytest.skip("this machine has more protected names than bubblewrap can mount")
    assert answer.text.startswith("42"), answer.text


@pytest.mark.anyio
@pytest.mark.parametrize("command", ["", " \n\t"])
async def test_a_blank_command_is_refused_before_anybody_is_asked(tmp_path: Path, command: str) -> None:
    asked: list[str] = []

    async def ask(question: Question) -> bool:
        asked.append(question.reason)
        return True

    rules = Permissions("ask")
    async with open_session(Scope.workspace(tmp_path), permissions=rules, ask=ask, cache=OutputCache()) as session:
        answer = await session.call("Bash", {"command": command})
    assert answer.error is not None and answer.error.message == "`command`: is blank; give a command"
    assert (answer.error.code, asked) == ("INVALID_ARGUMENT", [])


@pytest.mark.anyio
async def test_control_characters_in_an_output_are_counted_when_they_are_left_out(tmp_path: Path) -> None:
    async with open_session(Scope.workspace(tmp_path), cache=OutputCache()) as session:
        answer = await session.call("Bash", {"command": "printf 'a\\0\\001b\\033[31mred\\033[0m\\r\\n'"})
        assert answer.text == "abred\n[2 control characters left out]"
        assert (await session.call("Bash", {"command": "printf '\\a50%%\\rdone\\b\\n'"})).text == "done\n"


@pytest.mark.anyio
async def test_a_shell_that_had_ended_is_told_with_its_exit_code_when_it_is_killed(tmp_path: Path) -> None:
    async with open_session(Scope.workspace(tmp_path), cache=OutputCache()) as session:
        for code in (0, 7):
            started = await session.call("Bash", {"command": f"exit {code}", "run_in_background": True})
            name = started.text.split()[0].removeprefix("[")
            await session.call("BashOutput", {"bash_id": name, "wait_ms": 20_000})
            with anyio.fail_after(60):
                while f"exit code {code}" not in (await session.call("BashOutput", {"bash_id": name})).text:
                    await anyio.sleep(0.05)
            killed = await session.call("KillBash", {"bash_id": name})
            assert killed.text.startswith(f"[{name} had already ended") and f"\n[exit code {code}]" in killed.text


@pytest.mark.parametrize(
    ("reason", "note"),
    [
        (
            "settings that may run programs: core.pager",
            "[settings taken out of .git/config: core.pager (they may run programs); the user can put it back",
        ),
        ("a hook", "[taken out of the workspace: .git/config (a hook); the user can put it back"),
    ],
)
def test_settings_taken_out_of_a_file_are_not_told_as_the_whole_file(tmp_path: Path, reason: str, note: str) -> None:
    item = Quarantined("1a2b", f"{tmp_path}/.git/config", reason, 0.0)
    (said,) = taken_out([item], ScopedFs(Scope.workspace(tmp_path)))
    assert said == f"{note} with: gripfast quarantine release 1a2b]"
