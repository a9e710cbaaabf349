"""An agent can't answer its own question: neither by a command in the sandbox nor by a file tool."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from console_link import console_link
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


THIEF = """
import re, sys, urllib.request
link, pid = sys.argv[1:]
for address in (link, link + "/api/questions", link + "?key=" + "x" * 43):
    try:
        print("came in:", urllib.request.urlopen(address, timeout=20).status)
    except OSError as refused:
        print("refused:", refused)
for name in ("environ", "cmdline"):
    try:
        print(open(f"/proc/{pid}/{name}", "rb").read())
    except OSError as refused:
        print("refused:", refused)
try:
    spots = [map(lambda word: int(word, 16), line.split()[0].split("-")) for line in open(f"/proc/{pid}/maps")]
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for start, end in spots:
            try:
                memory.seek(start)
                print(*re.findall(b"key=[-_A-Za-z0-9]{43}", memory.read(end - start)))
            except (OSError, OverflowError, ValueError):
                pass
except OSError as refused:
    print("refused:", refused)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are Linux's")
@pytest.mark.parametrize("name", ["bwrap", "landlock"])
async def test_a_command_in_the_sandbox_cant_open_the_console(queue: QuestionQueue, work: Path, name: str) -> None:
    level = sandbox(name)
    state = shlex.quote(str(queue.directory.parent))
    (work / "thief.py").write_text(THIEF, encoding="utf-8")
    printed = b""

    async def feed(data: bytes) -> None:
        nonlocal printed
        printed += data

    command = [sys.executable, "-P", "-m", "gripfast", "console"]
    with subprocess.Popen(command, cwd=work, stderr=subprocess.PIPE, text=True) as console:
        assert console.stderr is not None
        link = console_link(console.stderr.readline())
        page, _, key = link.partition("?key=")
        async with Shells(Scope.workspace(str(work)), sandbox=level) as shells:
            await shells.run(f"{shlex.quote(os.path.realpath(sys.executable))} thief.py {page} {console.pid}", feed)
            await shells.run(f"cat {state}/* {state}/*/*; ls {state}", feed)
        console.terminate()
    text = printed.decode(errors="replace")
    assert "refused" in text  # it ran
    assert "came in" not in text
    assert key not in text and "key=" not in text
