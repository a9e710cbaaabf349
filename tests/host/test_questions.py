"""The queue of questions: one answer for one question, whatever races, crashes or comes too late."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gripfast.host.questions import notify
from gripfast.host.questions.queue import Asking, NoQuestion, QuestionQueue

ASKING = Asking("s1", "/work", "Bash", "no rule matches it", "command: rm -rf x", {"always": "exactly this call"})


@pytest.fixture
def queue(tmp_path: Path) -> QuestionQueue:
    return QuestionQueue(tmp_path / "state" / "questions")


def test_the_list_is_in_order_and_numbers_are_never_given_twice(queue: QuestionQueue) -> None:
    ids = [queue.ask(ASKING).id for _ in range(12)]
    assert ids == [f"Q{number}" for number in range(1, 13)]
    assert [question.id for question in queue.waiting()] == ids
    for name in os.listdir(queue.directory):
        if name.startswith("Q"):
            os.unlink(queue.directory / name)
    assert queue.ask(ASKING).id == "Q13"
    (queue.directory / "number").write_text("\0\0", encoding="utf-8")
    assert queue.ask(ASKING).id == "Q14"


@pytest.mark.parametrize(
    "id", ["Q9", "", "Q", "Q0", "Q01", "7", "../Q1", "Q1/../Q1", "Q1\n", "number", "Q" + "9" * 50]
)
def test_an_unknown_id_is_refused(queue: QuestionQueue, id: str) -> None:
    queue.ask(ASKING)
    with pytest.raises(NoQuestion):
        queue.answer(id, "yes", by="terminal")


ASK_AND_WAIT = """
import sys, pathlib
from gripfast.host.questions.queue import Asking, QuestionQueue
asked = QuestionQueue(pathlib.Path(sys.argv[1])).ask(Asking("s", "/r", "Bash", "why", "command: ls"))
print(asked.id, flush=True)
sys.stdin.read()
"""


def test_a_question_is_over_when_its_server_was_killed(queue: QuestionQueue) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", ASK_AND_WAIT, str(queue.directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        id = server.stdout.readline().decode().strip()
        assert [question.id for question in queue.waiting()] == [id]
        assert queue.waiting()[0].pid == server.pid
    finally:
        server.kill()
        server.communicate()
    assert queue.waiting() == []
    with pytest.raises(NoQuestion, match="server is gone"):
        queue.answer(id, "yes", by="terminal")
    assert queue.answered(id) is None


def test_only_this_user_can_look_into_the_queue(queue: QuestionQueue) -> None:
    asked = queue.ask(ASKING)
    queue.answer(asked.id, "yes", by="terminal")
    assert stat.S_IMODE(queue.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(entry.stat().st_mode) for entry in queue.directory.iterdir()} == {0o600}


def test_what_is_no_question_is_passed_over(queue: QuestionQueue) -> None:
    asked = queue.ask(ASKING)
    broken = {"Q50.json": "{", "Q51.json": "[]", "Q52.json": '{"id": "Q52"}', "Q53.json": '{"id": "Q1"}', "x": ""}
    for name, text in broken.items():
        (queue.directory / name).write_text(text, encoding="utf-8")
    os.symlink(queue.directory / f"{asked.id}.json", queue.directory / "Q54.json")
    os.mkfifo(queue.directory / "Q55.json")
    assert queue.waiting() == [asked]
    with pytest.raises(NoQuestion):
        queue.answer("Q54", "yes", by="terminal")


def test_a_broken_answer_is_never_a_yes(queue: QuestionQueue) -> None:
    asked = queue.ask(ASKING)
    (queue.directory / f"{asked.id}.answer").write_text('{"verdict": "yes"}', encoding="utf-8")
    answer = queue.answered(asked.id)
    assert answer is not None
    assert answer.is_over


def test_an_empty_machine_has_no_questions(tmp_path: Path) -> None:
    queue = QuestionQueue(tmp_path / "none" / "questions")
    assert queue.waiting() == []
    assert queue.stamp() == (0, 0)
    with pytest.raises(NoQuestion):
        queue.find("Q1")
    assert not (tmp_path / "none").exists()


def test_tidying_removes_what_is_long_over_and_nothing_else(queue: QuestionQueue) -> None:
    old, new = queue.ask(ASKING), queue.ask(ASKING)
    queue.answer(old.id, "yes", by="terminal")
    leftovers = [f"{old.id}.json", f"{old.id}.answer", ".0123456789abcdef", "server-1-000000000000"]
    for name in leftovers:
        (queue.directory / name).touch()
        os.utime(queue.directory / name, (1, 1))
    queue.tidy()
    assert not [name for name in leftovers if (queue.directory / name).exists()]
    assert queue.waiting() == [new]
    assert json.loads((queue.directory / f"{new.id}.json").read_text(encoding="utf-8"))["id"] == new.id


@pytest.mark.parametrize("program", ["notify-send", "osascript"])
def test_a_notification_is_arguments_and_never_code(
    queue: QuestionQueue, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    def find(name: str, *_: object, **__: object) -> str:
        return f"/usr/bin/{name}" if name == program else ""

    ran: list[list[str]] = []
    done = threading.Event()

    def run(command: list[str], **_: object) -> None:
        ran.append(command)
        done.set()

    monkeypatch.setattr(notify, "find_program", find)
    monkeypatch.setattr(notify.subprocess, "run", run)
    asked = queue.ask(Asking("s", '/work"; do shell script "x', "Bash", "<b>why</b>\x1b", "command: ls", who="ann"))
    notify.notify_desktop(asked)
    assert done.wait(60)
    (command,) = ran
    assert command[0] == f"/usr/bin/{program}"
    assert asked.id in command[-2]
    assert command[-1].startswith("ann: Bash in /work")
    assert "\x1b" not in command[-1]
    assert ("<b>" in command[-1]) == (program == "osascript")  # the other one reads markup


def test_a_prepared_question_is_like_any_other_and_nothing_stays(queue: QuestionQueue) -> None:
    queue.ask(ASKING)
    for _ in range(3):
        queue.prepare()
        queue.prepare()
        asked = queue.ask(ASKING)
        assert queue.find(asked.id) == asked
    queue.prepare()
    assert [path for path in queue.directory.iterdir() if path.name.startswith(".")]
    queue.close()
    assert not [path for path in queue.directory.iterdir() if path.name.startswith(".")]
    assert [one.id for one in queue.waiting()] == ["Q1", "Q2", "Q3", "Q4"]
    assert {path.stat().st_mode & 0o777 for path in queue.directory.iterdir()} == {0o600}


def test_a_prepared_file_that_was_removed_meanwhile_loses_no_question(queue: QuestionQueue) -> None:
    queue.ask(ASKING)
    queue.prepare()
    for path in queue.directory.glob(".*"):
        path.unlink()
    assert queue.ask(ASKING).id == "Q2"
    assert len(queue.waiting()) == 2
