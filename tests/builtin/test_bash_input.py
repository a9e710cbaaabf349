"""Input to a running shell: through a pipe or a terminal, to one that reads and one that doesn't; who may send it."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from attacks.shell import fresh_mark, gone
from gripfast.builtin.rulesets import rule_set
from gripfast.builtin.session import WorkspaceSession, open_session
from gripfast.call.cache import OutputCache
from gripfast.call.hooks import Answer, Question
from gripfast.call.rules import PermissionRule, Permissions
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def session_in(root: Path, **options: Any) -> AsyncGenerator[WorkspaceSession]:
    given: dict[str, Any] = {"sandbox": "off", "cache": OutputCache(), **options}
    with anyio.fail_after(90):
        async with open_session(Scope.workspace(root), **given) as session:
            yield session


async def start(session: WorkspaceSession, command: str, **arguments: Any) -> str:
    message = await session.call("Bash", {"command": command, "run_in_background": True, **arguments})
    assert not message.is_error, message.text
    return message.text[1:].split()[0]


async def until(session: WorkspaceSession, shell: str, wanted: str, shown: str = "") -> str:
    """What it prints until a text is among it."""
    while wanted not in shown:
        shown += (await session.call("BashOutput", {"bash_id": shell, "wait_ms": 5000})).text
    return shown


async def type_in(session: WorkspaceSession, shell: str, text: str, wanted: str = "") -> str:
    message = await session.call("BashInput", {"bash_id": shell, "text": text})
    assert not message.is_error, message.text
    return await until(session, shell, wanted, message.text)


async def test_a_terminal_holds_a_conversation_with_an_interpreter(tmp_path: Path) -> None:
    async with session_in(tmp_path) as session:
        shell = await start(session, 'python3 -iqc \'print("re" + "ady", flush=True)\'', tty=True)
        await until(session, shell, ">>>")
        assert "\r" not in await type_in(session, shell, "print(6 * 7)\n", "42\n")
        await type_in(session, shell, "import time; print('sl' + 'eeps'); time.sleep(600)\n", "sleeps")
        await type_in(session, shell, "\x03", "KeyboardInterrupt")
        await type_in(session, shell, "\x04", "has ended")


@pytest.mark.parametrize("how", ["tty", "stdin"])
async def test_a_question_is_answered(how: str, tmp_path: Path) -> None:
    async with session_in(tmp_path) as session:
        shell = await start(session, "printf 'sure? '; read answer; echo got-$answer; exit 3", **{how: True})
        await until(session, shell, "sure?")
        shown = await type_in(session, shell, "y\n", "[exit code 3]")
        assert "got-y" in shown


async def test_a_pipe_is_ended_and_interrupted_by_the_keys_that_do_it(tmp_path: Path) -> None:
    async with session_in(tmp_path) as session:
        cat = await start(session, "cat; echo done", stdin=True)
        assert (await type_in(session, cat, "one\n", "one")).startswith("one\n")
        shown = await type_in(session, cat, "two\n\x04", "exit code 0")
        assert "two\ndone" in shown
        sleeper = await start(session, "echo up; exec sleep 600", stdin=True)
        await until(session, sleeper, "up")
        await type_in(session, sleeper, "\x03", "killed by SIGINT")


async def test_who_does_not_read_gets_what_fits_and_nobody_waits(tmp_path: Path) -> None:
    async with session_in(tmp_path) as session:
        shell = await start(session, "sleep 600", stdin=True)
        shown = await type_in(session, shell, "x" * 500_000)
        assert "bytes of the text were not sent" in shown and "is running" in shown
        terminal = await start(session, "stty -echo; echo up; sleep 600", tty=True)
        await until(session, terminal, "up")
        shown = await type_in(session, terminal, ("x" * 4000 + "\n") * 200)
        assert "bytes of the text were not sent" in shown and "is running" in shown


@pytest.mark.parametrize(
    ("arguments", "text", "fault"),
    [
        ({}, "x", "CONFLICT: this shell reads no input: it was started with neither tty nor stdin"),
        ({"tty": True}, "x" * 5000, "INVALID_ARGUMENT: a terminal takes lines of at most 4095 bytes"),
        ({"stdin": True}, "x" * 2_000_000, "INVALID_ARGUMENT: `text` has 2000000 bytes"),
        ({"stdin": True}, "\ud800", "INVALID_ARGUMENT"),
        ({"stdin": True}, "", "INVALID_ARGUMENT"),
    ],
)
async def test_what_can_not_be_sent_is_said(arguments: Any, text: str, fault: str, tmp_path: Path) -> None:
    async with session_in(tmp_path) as session:
        shell = await start(session, "sleep 600", **arguments)
        message = await session.call("BashInput", {"bash_id": shell, "text": text})
        assert message.is_error and fault in message.text
        assert "is running" in (await session.call("BashOutput", {"bash_id": shell})).text


async def test_a_shell_that_has_ended_or_never_was_takes_nothing(tmp_path: Path) -> None:
    async with session_in(tmp_path) as session:
        shell = await start(session, "true", stdin=True)
        await until(session, shell, "has ended")
        ended = await session.call("BashInput", {"bash_id": shell, "text": "x\n"})
        assert ended.is_error and f"CONFLICT: {shell} has ended" in ended.text
        assert "NOT_FOUND" in (await session.call("BashInput", {"bash_id": "bash_9", "text": "x"})).text
        closed = await start(session, "sleep 600", stdin=True)
        await type_in(session, closed, "\x04")
        message = await session.call("BashInput", {"bash_id": closed, "text": "x"})
        assert "CONFLICT: the input of this shell is closed" in message.text


async def test_a_command_of_the_foreground_has_a_terminal_if_it_asks(tmp_path: Path) -> None:
    async with session_in(tmp_path) as session:
        look = "test -t 0 && test -t 1 && echo yes > /dev/tty; stty size; printf '\\033[31mred\\033[0m\\n'"
        assert (await session.call("Bash", {"command": look, "tty": True})).text == "yes\n40 120\nred\n"
        assert "yes" not in (await session.call("Bash", {"command": look})).text
        message = await session.call("Bash", {"command": "true", "stdin": True})
        assert message.is_error and "only for run_in_background" in message.text


async def test_terminals_leave_no_process_and_no_descriptor(tmp_path: Path) -> None:
    mark = fresh_mark()
    async with session_in(tmp_path) as session:
        await session.call("Bash", {"command": "true"})
        before = len(os.listdir("/proc/self/fd"))
        for how in ("tty", "stdin") * 3:
            shell = await start(
                session, f"sleep 600 & echo {mark}; (setsid sleep 600 &) ; cat # {mark}", **{how: True}
            )
            await until(session, shell, mark)
            await session.call("KillBash", {"bash_id": shell})
        assert len(os.listdir("/proc/self/fd")) <= before + 1  # the file that keeps what they printed
        shell = await start(session, f"sleep 600; : {mark}", tty=True)
    assert await gone(mark) == []


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
async def test_a_terminal_works_in_the_sandbox(level: str, tmp_path: Path) -> None:
    sandbox = Sandbox("landlock") if level == "landlock" and landlock_version() else choose("auto")
    if sandbox.level != level:
        pytest.skip(f"{level} does not work here: {sandbox.faults}")
    with anyio.fail_after(60):
        async with Shells(Scope.workspace(tmp_path), sandbox=sandbox) as shells:
            shell = await shells.start("read -r a < /dev/tty; echo got-$a; read -r b", stdin="tty")
            assert await shells.type_in(shell, "y\n") == 0
            shown = b""
            while b"got-y" not in shown:
                await shells.news(shell, 5000)
                shown += b"".join(shell.news())
            await shells.type_in(shell, "\x03")
            await shells.news(shell, 30_000)


# ---- who may ----


async def decided(tmp_path: Path, permissions: Permissions | None, answers: list[Answer] | None) -> list[bool]:
    """Whether each of three inputs was taken, the first two by one shell. `answers` are those of a person, if any."""

    async def ask(question: Question) -> Answer:
        assert answers is not None
        return True if question.tool.name == "Bash" else answers.pop(0)

    person = None if answers is None else ask
    async with session_in(tmp_path, permissions=permissions, ask=person) as session:
        names = [await start(session, "cat", stdin=True) for _ in range(2)]
        sent = [(names[0], "one\n"), (names[0], "two\n"), (names[1], "three\n")]
        messages = [await session.call("BashInput", {"bash_id": name, "text": text}) for name, text in sent]
        refused = [message.text for message in messages if message.is_error]
        assert all("Permission denied" in text for text in refused), refused
        return [not message.is_error for message in messages]


HOLDING = {
    "read-only": rule_set("read-only"),
    "workspace": rule_set("workspace"),
    "trusted": rule_set("trusted"),
    "a denied command": Permissions("allow", [PermissionRule("effect:run", "git push *", "deny")]),
    "a command asked about, by the tool's name": Permissions("allow", [PermissionRule("Bash", "rm *", "ask")]),
    "a narrower layer": Permissions("allow", narrowed_by=(rule_set("trusted"),)),
    "everything allowed, by a rule": Permissions("deny", [PermissionRule("*", "*", "allow")]),
}


@pytest.mark.parametrize("name", HOLDING)
async def test_rules_that_hold_anything_back_let_nobody_feed_a_command_unasked(name: str, tmp_path: Path) -> None:
    """Else `bash` would be told line by line, or in halves of a line, what the rules ask about."""
    assert await decided(tmp_path, HOLDING[name], None) == [False, False, False]


async def test_rules_that_hold_nothing_back_let_input_through(tmp_path: Path) -> None:
    rules = [None, Permissions("allow"), Permissions("allow", [PermissionRule("effect:write", "*.lock", "ask")])]
    for permissions in rules:
        assert await decided(tmp_path, permissions, None) == [True, True, True]
    named = Permissions("allow", [PermissionRule("BashInput", "*", "allow"), *rule_set("trusted").rules])
    assert await decided(tmp_path, named, None) == [True, True, True]


async def test_a_person_says_yes_once_or_always_to_one_shell(tmp_path: Path) -> None:
    trusted = rule_set("trusted")
    assert await decided(tmp_path, trusted, [True, False, True]) == [True, False, True]
    assert await decided(tmp_path, trusted, ["always", False]) == [True, True, False]


async def test_the_question_shows_all_that_would_be_sent(tmp_path: Path) -> None:
    shown: list[str] = []

    async def ask(question: Question) -> Answer:
        shown.append(question.shown())
        return False

    async with session_in(tmp_path, permissions=rule_set("trusted"), ask=ask) as session:
        shell = await start(session, "cat", stdin=True)
        await session.call("BashInput", {"bash_id": shell, "text": "x" * 6000 + "\x1b[8mrm -rf ~\n"})
    assert "x" * 6000 + "\\x1b[8mrm -rf ~" in shown[0]
    assert '"Always" covers BashInput to bash_1, whatever is sent' in shown[0]


async def test_the_record_lists_what_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    async with session_in(tmp_path / "work", record=True) as session:
        shell = await start(session, "read name; echo hi > $name; sleep 600", stdin=True)
        await session.call("BashInput", {"bash_id": shell, "text": "made\n"})
        while not (tmp_path / "work/made").exists():
            await anyio.sleep(0.02)
        await session.call("KillBash", {"bash_id": shell})
        calls = session.record.calls()
    assert [call.tool for call in calls[:2]] == ["Bash", "BashInput"]
    assert "made" in calls[1].arguments


async def test_nobody_is_asked_about_a_shell_that_reads_nothing(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def ask(question: Question) -> Answer:
        asked.append(question)
        return True

    rules = Permissions("allow", [PermissionRule("BashInput", "*", "ask")])
    async with session_in(tmp_path, permissions=rules, ask=ask) as session:
        deaf = await start(session, "sleep 600")
        message = await session.call("BashInput", {"bash_id": deaf, "text": "y\n"})
        assert "CONFLICT: this shell reads no input" in message.text and not asked
        assert "NOT_FOUND" in (await session.call("BashInput", {"bash_id": "bash_9", "text": "y\n"})).text
        assert not asked
        hears = await start(session, "cat", stdin=True)
        assert "y" in await type_in(session, hears, "y\n", "y")
        assert len(asked) == 1


async def test_the_answer_to_ctrl_c_says_that_the_command_has_ended(tmp_path: Path) -> None:
    """The terminal prints `^C`, which is no answer of the command's."""
    async with session_in(tmp_path) as session:
        shell = await start(session, "echo up; trap 'sleep 0.6; exit 7' INT; while :; do sleep 0.1; done", tty=True)
        await until(session, shell, "up")
        message = await session.call("BashInput", {"bash_id": shell, "text": "\u0003", "wait_ms": 20_000})
    assert "[exit code 7]" in message.text and "is running" not in message.text


async def test_arguments_that_dont_go_together_are_refused_before_anybody_is_asked(tmp_path: Path) -> None:
    asked: list[str] = []

    async def ask(question: Question) -> Answer:
        asked.append(question.reason)
        return True

    odd: list[dict[str, Any]] = [
        {"outside_sandbox": "why", "run_in_background": True},
        {"outside_sandbox": "why", "dry_run": True},
        {"outside_sandbox": "why", "stdin": True},
    ]
    async with session_in(tmp_path, permissions=rule_set("trusted"), ask=ask) as session:
        for arguments in odd:
            message = await session.call("Bash", {"command": "true", **arguments})
            assert message.error is not None and message.error.code == "INVALID_ARGUMENT", message.text
    assert asked == []
