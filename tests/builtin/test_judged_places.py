"""What was judged, and shown to a person, is what is opened: a link that is turned meanwhile leads nowhere."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gripfast.builtin.session import open_session
from gripfast.call.decision import PermissionRule
from gripfast.call.hooks import Answer, Question
from gripfast.call.rules import Permissions
from gripfast.host.files.scope import Scope

pytestmark = pytest.mark.anyio

NOT_SECRETS = Permissions("allow", [PermissionRule("*", "secret/**", "deny")])


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    for name in ("open", "secret"):
        (folder / name).mkdir(parents=True)
        (folder / name / "a.txt").write_text(f"{name}\n")
    (folder / "link").symlink_to("open")
    return folder


def turned(folder: Path, target: str) -> None:
    (folder / "next").symlink_to(target)
    (folder / "next").rename(folder / "link")


async def test_a_link_that_is_turned_while_somebody_reads_the_question_is_a_conflict(work: Path) -> None:
    async def slow(question: Question) -> Answer:
        assert "open/a.txt" in question.shown()
        turned(work, "secret")
        return True

    rules = Permissions("ask")
    async with open_session(Scope.workspace(work), permissions=rules, ask=slow, sandbox="off") as session:
        answer = await session.call("Read", {"file_path": "link/a.txt"})
        assert answer.error is not None
        assert answer.error.code == "CONFLICT"
        written = await session.call("Write", {"file_path": "link/b.txt", "content": "x"})
        assert written.is_error
    assert not (work / "secret" / "b.txt").exists()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "link/a.txt"}),
        ("Grep", {"pattern": ".", "path": "link", "output_mode": "content"}),
        ("Glob", {"pattern": "*", "path": "link"}),
        ("Write", {"file_path": "link/new.txt", "content": "x"}),
    ],
)
async def test_a_link_that_is_turned_after_it_was_judged_leads_nowhere(
    work: Path, tool: str, arguments: dict[str, str]
) -> None:
    def turning(*_: object) -> None:
        turned(work, "secret")

    async with open_session(
        Scope.workspace(work), permissions=NOT_SECRETS, before=[turning], sandbox="off"
    ) as session:
        answer = await session.call(tool, arguments)
    assert answer.error is not None
    assert answer.error.code == "CONFLICT"
    assert not (work / "secret" / "new.txt").exists()


async def test_a_denied_place_is_never_read_however_fast_the_link_turns(work: Path) -> None:
    stop = threading.Event()
    calls = (
        ("Read", {"file_path": "link/a.txt"}),
        ("Grep", {"pattern": ".", "path": "link", "output_mode": "content"}),
    )

    def spin() -> None:
        while not stop.is_set():
            turned(work, "secret")
            turned(work, "open")

    thread = threading.Thread(target=spin)
    async with open_session(Scope.workspace(work), permissions=NOT_SECRETS, sandbox="off") as session:
        thread.start()
        try:
            for tool, arguments in calls:
                answers = [(await session.call(tool, arguments)).text for _ in range(150)]
                assert not any("secret\n" in answer or answer.endswith("secret") for answer in answers)
        finally:
            stop.set()
            thread.join()
        for tool, arguments in calls:  # the link rests at `open` now, so the same calls would have shown a content
            assert "open" in (await session.call(tool, arguments)).text


async def test_what_the_scope_refuses_is_not_asked_about(work: Path) -> None:
    asked: list[str] = []

    async def ask(question: Question) -> Answer:
        asked.append(question.tool.name)
        return True

    async with open_session(Scope.workspace(work), permissions=Permissions("ask"), ask=ask, sandbox="off") as session:
        for tool, arguments in (
            ("Read", {"file_path": "/etc/hostname"}),
            ("Write", {"file_path": ".git/config", "content": "x"}),
            ("Write", {"file_path": "../x", "content": "x"}),
        ):
            answer = await session.call(tool, arguments)
            assert answer.error is not None
            assert answer.error.code == "SANDBOX_VIOLATION", arguments
    assert asked == []


async def test_a_yes_is_for_the_directory_that_was_shown(work: Path) -> None:
    """The working directory stands in the question; when it has changed by the time of the yes, nothing runs."""
    shown: list[str] = []

    async def ask(question: Question) -> Answer:
        shown.append(question.shown())
        if "other" in question.shown():
            await session.call("Bash", {"command": "cd open"})
        return True

    rules = Permissions("ask", [PermissionRule("Bash", "cd *", "allow")])
    async with open_session(Scope.workspace(work), permissions=rules, ask=ask, sandbox="off") as session:
        assert not (await session.call("Bash", {"command": "touch here"})).is_error
        answer = await session.call("Bash", {"command": "touch other"})
    assert f"working directory: {work}" in shown[0]
    assert "the working directory has changed" in answer.text
    assert not list(work.rglob("other"))
