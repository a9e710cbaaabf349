"""An agent can't answer its own question: neither by a command in the sandbox nor by a file tool."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.features import may_use
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.questions.queue import Asking, QuestionQueue
from gripfast.host.shell.board import Board, RunningShells
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells
from plain_user import environment, give, plain_python

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


TESTS = Path(__file__).parent.parent


@pytest.fixture
def home() -> Iterator[Path]:
    """The home of a user, with a workspace, where a plain user can get to."""
    with tempfile.TemporaryDirectory(prefix="gripfast-approval-", dir="/var/tmp") as name:
        place = Path(os.path.realpath(name))
        (place / "work").mkdir()
        yield place


def tried(who: str, level: str, home: Path, root: Path) -> dict[str, Any]:
    """What came of it when commands at a sandbox level tried to answer the questions about themselves."""
    python = plain_python() if who == "plain user" else [sys.executable]
    if who == "plain user":
        give(home, home / "work")
    env = environment(home)
    env |= {"PYTHONPATH": os.pathsep.join([env["PYTHONPATH"], str(TESTS)]), "TMPDIR": str(home)}
    words = [*python, "-P", str(TESTS / "edges" / "self_approval.py"), level, str(root)]
    done = subprocess.run(words, env=env, cwd="/", capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if found is None:
        pytest.skip(f"{level} does not work here for the {who}")
    return found


NOBODY = {"cp": None, "ln": None, "mv": None, "approve": None}


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are Linux's")
@pytest.mark.parametrize("who", ["user of the tests", "plain user"])
@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_a_command_in_the_sandbox_cant_answer_nor_open_the_console(who: str, level: str, home: Path) -> None:
    found = tried(who, level, home, home / "work")
    printed = found["printed"]
    assert found["answers"] == NOBODY
    assert "told-to-nobody" not in printed
    assert found["key"] not in printed and "key=" not in printed
    assert "there is no question" in printed  # `gripfast approve` ran, and saw none
    for way in ("openly", "under_way", "unseen"):
        assert f"{way} 403 an agent's commands may not use this console;" in printed
    assert "gone 20 times\n" in printed
    assert found["opened"] == "opening the console\n"  # the person's link is not used up


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap and Landlock are Linux's")
@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_a_command_cant_answer_where_the_home_is_its_workspace(level: str, home: Path) -> None:
    found = tried("user of the tests", level, home, home)
    assert found["answers"] == NOBODY
    assert "told-to-nobody" not in found["printed"] and found["key"] not in found["printed"]


def test_without_a_sandbox_a_command_can_answer_as_the_guide_says(home: Path) -> None:
    """So what is tried above would succeed if nothing held it."""
    found = tried("user of the tests", "none", home, home / "work")
    assert found["answers"] == dict.fromkeys(NOBODY, "yes")
    assert "told-to-nobody" in found["printed"] and found["key"] in found["printed"]
    guide = (TESTS.parent / "docs" / "guides" / "approvals.md").read_text(encoding="utf-8")
    assert "`none`" in guide.partition("## Who can answer")[2]


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
