"""An agent can't answer its own question: neither by a command in the sandbox nor by a file tool."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.features import may_use
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.questions.queue import Asking, QuestionQueue
from gripfast.host.shell.board import Board, RunningShells
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

pytestmark = pytest.mark.anyio
ANSWER = '{"verdict": "yes", "by": "terminal", "because": "", "at": 1}'


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QuestionQueue:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return QuestionQueue()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    return root


def sandbox(name: str) -> Sandbox:
    if name == "landlock" and not (may_use("landlock") and landlock_version()):
        pytest.skip("no Landlock here")
    if name == "bwrap" and choose("auto").level != "bwrap":
        pytest.skip("no bubblewrap here")
    return choose("auto") if name == "bwrap" else Sandbox("landlock")


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are Linux's")
@pytest.mark.parametrize("name", ["bwrap", "landlock"])
async def test_a_command_in_the_sandbox_cant_answer(queue: QuestionQueue, work: Path, name: str) -> None:
    level = sandbox(name)
    asked = queue.ask(Asking("s", str(work), "Bash", "why", "command: x"))
    place = shlex.quote(str(queue.directory))
    attempts = (
        f"echo {shlex.quote(ANSWER)} > answer; cp answer {place}/{asked.id}.answer",
        f"ln answer {place}/{asked.id}.answer",
        f"mv answer {place}/{asked.id}.answer",
        f"XDG_STATE_HOME={shlex.quote(str(queue.directory.parent.parent))} "
        f"{shlex.quote(sys.executable)} -m gripfast approve {asked.id}",
        f"cat {place}/{asked.id}.json",
    )
    printed = b""

    async def feed(data: bytes) -> None:
        nonlocal printed
        printed += data

    async with Shells(Scope.workspace(str(work)), sandbox=level) as shells:
        for attempt in attempts:
            await shells.run(attempt, feed)
    assert queue.answered(asked.id) is None
    assert [question.id for question in queue.waiting()] == [asked.id]
    assert b"command: x" not in printed


async def test_a_file_tool_cant_answer_even_where_everything_is_a_root(queue: QuestionQueue, work: Path) -> None:
    asked = queue.ask(Asking("s", str(work), "Bash", "why", "command: x"))
    answer = str(queue.directory / f"{asked.id}.answer")
    scope = Scope((str(work.parent),), (str(work.parent),))
    async with open_session(scope, require_read=False) as session:
        written = await session.call("Write", {"file_path": answer, "content": ANSWER})
        read = await session.call("Read", {"file_path": str(queue.directory / f"{asked.id}.json")})
    assert written.is_error and read.is_error
    assert queue.answered(asked.id) is None


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are Linux's")
@pytest.mark.parametrize("name", ["bwrap", "landlock"])
async def test_a_command_in_the_sandbox_cant_see_or_end_a_background_shell(
    queue: QuestionQueue, work: Path, name: str
) -> None:
    level = sandbox(name)
    board = Board("another session", "/elsewhere")
    board.begins("bash_1", "the other command")
    (shell,) = RunningShells().all()
    place = shlex.quote(str(queue.directory.parent / "running"))
    printed = b""

    async def feed(data: bytes) -> None:
        nonlocal printed
        printed += data

    async with Shells(Scope.workspace(str(work)), sandbox=level) as shells:
        for attempt in (f"touch {place}/{shell.id}.end", f"cat {place}/*", f"rm -rf {place}"):
            await shells.run(attempt, feed)
    assert not board.wants_end("bash_1")
    assert RunningShells().all() == [shell]
    assert b"the other command" not in printed
    board.close()
