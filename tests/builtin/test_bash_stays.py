"""A command that still runs when its call has to answer goes on in the background, and is not run again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import pytest

from gripfast.builtin.keys import ANSWER_BY
from gripfast.builtin.session import WorkspaceSession, open_session
from gripfast.call.hooks import Question
from gripfast.call.rules import Permissions
from gripfast.call.run import run_call
from gripfast.clock import monotonic
from gripfast.host.files.scope import Scope
from gripfast.host.shell import shells
from gripfast.messages import ToolCall, ToolMessage

pytestmark = pytest.mark.anyio

WAITS = "echo run >> runs; echo begun; while [ ! -e go ]; do sleep 0.02; done; echo finished; echo end >> runs"


async def bash(session: WorkspaceSession, command: str, seconds: float, **arguments: object) -> ToolMessage:
    call = ToolCall("1", "Bash", {"command": command, **arguments})
    return await run_call(session, call, deps={ANSWER_BY.id: monotonic() + seconds})


async def begun(root: Path) -> None:
    with anyio.fail_after(60):
        while not (root / "runs").exists():
            await anyio.sleep(0.01)


def runs(root: Path) -> list[str]:
    return (root / "runs").read_text(encoding="utf-8").split()


async def rest(session: WorkspaceSession, name: str) -> str:
    """What BashOutput shows until the shell has ended."""
    shown = ""
    with anyio.fail_after(60):
        while "has ended" not in shown:
            shown += (await session.call("BashOutput", {"bash_id": name})).text
    return shown


async def test_a_command_goes_on_and_its_end_can_be_fetched(tmp_path: Path) -> None:
    async with open_session(Scope.workspace(str(tmp_path))) as session:
        answer = await bash(session, WAITS, 3)
        assert not answer.is_error
        assert answer.text.startswith("begun\n[still running")
        assert 'BashOutput(bash_id="bash_1")' in answer.text
        (tmp_path / "go").touch()
        shown = await rest(session, "bash_1")
    assert "finished" in shown and "exit code 0" in shown
    assert runs(tmp_path) == ["run", "end"]


async def test_the_same_command_again_waits_and_does_not_run_twice(tmp_path: Path) -> None:
    async with open_session(Scope.workspace(str(tmp_path))) as session:
        await bash(session, WAITS, 0)
        await begun(tmp_path)
        again = await bash(session, WAITS, 0.1)
        assert "it was not run again" in again.text and "bash_1 is running" in again.text
        (tmp_path / "go").touch()
        last = await bash(session, WAITS, 60)
        assert "finished" in last.text and "[bash_1 has ended with exit code 0]" in last.text
        assert last.exit_code == 0
        assert runs(tmp_path) == ["run", "end"]
        fresh = await bash(session, WAITS, 60)  # its end was told: this is a new run
    assert fresh.text.startswith("begun\nfinished")
    assert runs(tmp_path) == ["run", "end", "run", "end"]


async def test_after_its_end_was_shown_the_same_command_runs_anew(tmp_path: Path) -> None:
    async with open_session(Scope.workspace(str(tmp_path))) as session:
        await bash(session, WAITS, 0)
        (tmp_path / "go").touch()
        await rest(session, "bash_1")
        assert "not run again" not in (await bash(session, WAITS, 60)).text
    assert runs(tmp_path) == ["run", "end", "run", "end"]


async def test_only_the_same_command_of_the_last_minute_attaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    async with open_session(Scope.workspace(str(tmp_path))) as session:
        await bash(session, "sleep 300", 0)
        assert "bash_2" in (await bash(session, "sleep 301", 0)).text
        await bash(session, "cd sub", 60)
        assert "bash_3" in (await bash(session, "sleep 300", 0)).text
        monkeypatch.setattr(shells, "ATTACH_SECONDS", -1.0)
        assert "bash_4" in (await bash(session, "sleep 300", 0)).text


async def test_without_a_time_to_answer_a_command_is_waited_for(tmp_path: Path) -> None:
    async with open_session(Scope.workspace(str(tmp_path))) as session:
        answer = await session.call("Bash", {"command": "sleep 0.3; echo done"})
    assert answer.text == "done\n"


async def test_its_timeout_still_holds_and_it_can_be_killed(tmp_path: Path) -> None:
    async with open_session(Scope.workspace(str(tmp_path))) as session:
        await bash(session, "sleep 300", 0, timeout=200)
        assert "timed out" in await rest(session, "bash_1")
        await bash(session, "echo here; sleep 301", 0)
        killed = await session.call("KillBash", {"bash_id": "bash_2"})
        assert "stopped" in killed.text


async def test_output_that_nobody_reads_does_not_hold_the_command_up(tmp_path: Path) -> None:
    flood = "head -c 5000000 /dev/zero | tr '\\0' x; echo; touch done"
    async with open_session(Scope.workspace(str(tmp_path))) as session:
        await bash(session, f"sleep 0.2; {flood}", 0)
        with anyio.fail_after(60):
            while not (tmp_path / "done").exists():
                await anyio.sleep(0.02)
        shown = await rest(session, "bash_1")
    assert re.search("x{1000}", shown)


async def test_what_it_changes_later_is_in_the_record_of_its_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with open_session(Scope.workspace(str(work)), record=True) as session:
        await bash(session, "while [ ! -e go ]; do sleep 0.02; done; echo late > late.txt", 0)
        (work / "go").touch()
        await rest(session, "bash_1")
        await session.call("Bash", {"command": "true"})
        call = session.record.call(1)
    assert str(work / "late.txt") in {change.path for change in call.changes}


async def test_a_call_that_nobody_was_asked_about_never_runs_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was let through because it only waits for the command before; that minute ends before it gets there."""
    asked: list[Question] = []

    async def yes(question: Question) -> bool:
        asked.append(question)
        return True

    def late(*_: object) -> None:
        if len(asked) == 1 and (tmp_path / "go").exists():
            monkeypatch.setattr(shells, "ATTACH_SECONDS", -1.0)

    options: dict[str, Any] = {"permissions": Permissions("ask"), "ask": yes, "before": [late]}
    async with open_session(Scope.workspace(str(tmp_path)), **options) as session:
        await bash(session, WAITS, 0)
        await begun(tmp_path)
        (tmp_path / "go").touch()
        again = await bash(session, WAITS, 60)
        assert "it was not run again" in again.text
        assert runs(tmp_path) == ["run", "end"]
        assert len(asked) == 1
        await bash(session, WAITS, 60)
    assert len(asked) == 2
