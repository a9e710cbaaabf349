"""`gripfast approvals`, `approve` and `deny`: what they print, which key does what, and their exit codes."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gripfast.edges.cli import main
from gripfast.host.questions.queue import Asking, QuestionQueue, Verdict

GRIPFAST = [sys.executable, "-m", "gripfast"]
DIFF = "--- a.txt\n+++ a.txt\n" + "\n".join(f"+line {number}" for number in range(60))


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QuestionQueue:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return QuestionQueue()


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words, prog_name="gripfast")


def ask(queue: QuestionQueue, shown: str = "command: make deploy", diff: str = "") -> str:
    widths = {"always": "exactly this command", "always_leading": "`make …`"}
    text = f"{shown}\n{diff}" if diff else shown
    return queue.ask(Asking("session-1", "/work/app", "Bash", "no rule", text, widths, diff, "codex")).id


def test_questions_are_listed_with_everything_that_will_run(queue: QuestionQueue) -> None:
    assert "no question waits" in run("approvals").stdout
    id = ask(queue, diff=DIFF)
    listed = run("approvals").stdout
    for text in (id, "Bash", "/work/app", "codex", "command: make deploy", "+line 59"):
        assert text in listed


def test_a_client_can_give_itself_no_name_that_looks_like_another_person_or_question(queue: QuestionQueue) -> None:
    name = "codex\nQ9  Read  0 s ago  /work/app  session 12345678  asked by bob\x1b[2K"
    id = queue.ask(Asking("session-1", "/work/\napp", "Bash", "no rule", "command: ls", client=name, who="ann")).id
    head, *rest = run("approvals").stdout.splitlines()
    assert head.startswith(f"{id}  Bash  ") and "asked by ann with codex\\nQ9" in head and "\x1b" not in head
    assert rest == ["    command: ls"]
    (listed,) = json.loads(run("approvals", "--json").stdout)
    assert (listed["who"], listed["client"]) == ("ann", name)


def test_the_json_list_has_the_fields_programs_rely_on(queue: QuestionQueue) -> None:
    id = ask(queue)
    (listed,) = json.loads(run("approvals", "--json").stdout)
    fields = {"id", "session", "root", "tool", "reason", "shown", "asked_at", "expires_at"}
    assert fields <= set(listed)
    assert (listed["id"], listed["session"], listed["root"], listed["tool"]) == (id, "session-1", "/work/app", "Bash")
    assert listed["asked_at"] < listed["expires_at"]
    assert "owner" not in listed


def test_an_answer_counts_once(queue: QuestionQueue) -> None:
    id = ask(queue)
    assert run("approve", id).exit_code == 0
    for again in (["approve", id], ["approve", id, "--always"], ["deny", id]):
        assert run(*again).exit_code == 3
    answer = queue.answered(id)
    assert answer is not None
    assert (answer.verdict, answer.by) == ("yes", "terminal")


def test_always_and_no_with_a_reason(queue: QuestionQueue) -> None:
    first, second = ask(queue), ask(queue)
    assert run("approve", first, "--always").exit_code == 0
    assert run("deny", second, "--because", "not on Fridays").exit_code == 0
    answers = [queue.answered(first), queue.answered(second)]
    assert [answer and (answer.verdict, answer.because) for answer in answers] == [
        ("always", ""),
        ("no", "not on Fridays"),
    ]


def test_an_unknown_or_ended_question_is_exit_code_1(queue: QuestionQueue) -> None:
    over = ask(queue)
    queue.withdraw(over, "the session has ended")
    for id in ("Q99", "q1", "../x", over):
        for command in ("approve", "deny"):
            assert run(command, id).exit_code == 1
    assert "the session has ended" in run("approve", over).stderr


def test_a_full_disk_is_said_and_the_question_still_waits(queue: QuestionQueue) -> None:
    id = ask(queue)
    full = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    full += "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); from gripfast.edges.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", full, "approve", id], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "can't be written" in result.stderr
    assert [question.id for question in queue.waiting()] == [id]


def test_nothing_in_a_question_acts_on_the_terminal(queue: QuestionQueue) -> None:
    ask(queue, "command: \x1b]0;evil\x07\u202e")
    assert "\x1b" not in run("approvals").stdout
    assert "\u202e" not in run("approvals", "--json").stdout


class Terminal:
    """`gripfast approvals --watch` on a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], ours: int) -> None:
        self.process = process
        self._ours = ours
        self._seen = ""

    def wait_for(self, text: str) -> str:
        """What was printed up to and with a text; fails if it does not come."""
        while text not in self._seen:
            ready, _, _ = select.select([self._ours], [], [], 60)
            assert ready, f"{text!r} did not come; seen: {self._seen!r}"
            self._seen += os.read(self._ours, 65536).decode(errors="replace")
        before, _, self._seen = self._seen.partition(text)
        return before

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())


@contextmanager
def watching() -> Generator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*GRIPFAST, "approvals", "--watch"], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_watching_shows_questions_as_they_come_and_takes_keys(queue: QuestionQueue) -> None:
    with watching() as terminal:
        terminal.wait_for("q quits")
        yes, always, no, later = [ask(queue, f"command: job {number}", diff=DIFF) for number in range(4)]
        assert "+line 59" not in terminal.wait_for("Run it?")
        terminal.press("x")  # means nothing
        terminal.press("d")
        terminal.wait_for("+line 59")
        terminal.press("y")
        terminal.wait_for(f"{yes}: yes")
        terminal.wait_for("Run it?")
        terminal.press("a")
        terminal.wait_for(f"{always}: always")
        terminal.wait_for("Run it?")
        terminal.press("n")
        terminal.wait_for(f"{no}: no")
        terminal.wait_for("Run it?")
        queue.answer(later, "yes", by="page")
        terminal.wait_for(f"{later} was answered elsewhere")
        terminal.press("q")
        assert terminal.process.wait(60) == 0
    verdicts = [answer and answer.verdict for answer in map(queue.answered, (yes, always, no))]
    assert verdicts == ["yes", "always", "no"]


def test_watching_without_a_terminal_prints_the_list_at_each_change(queue: QuestionQueue) -> None:
    process = subprocess.Popen(
        [*GRIPFAST, "approvals", "--watch", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == []
        id = ask(queue)
        assert [one["id"] for one in json.loads(process.stdout.readline())] == [id]
        queue.answer(id, "yes", by="page")
        assert json.loads(process.stdout.readline()) == []
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("verdict", ["yes", "no"])
def test_call_without_a_terminal_waits_in_the_queue_if_it_is_told_to(
    queue: QuestionQueue, tmp_path: Path, verdict: Verdict
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[permissions]\ndefault_action = "ask"\n', encoding="utf-8")
    root = tmp_path / "root"
    root.mkdir()
    words = ["call", "Write", '{"file_path": "new.txt", "content": "x\\n"}', "--config", str(rules), "--root", "."]
    process = subprocess.Popen(
        [*GRIPFAST, *words, "--answer-within", "300"],
        cwd=root,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("waiting for approval: gripfast approve Q")
        question = queue.find(line.split()[-1])
        assert question.root == str(root) and "+x" in question.diff
        queue.answer(question.id, verdict, by="terminal", because="because")
        assert (process.wait(60) == 0) == (verdict == "yes")
    finally:
        process.kill()
        process.communicate()
    assert (root / "new.txt").exists() == (verdict == "yes")


def test_call_that_nobody_answers_in_time_is_refused(queue: QuestionQueue, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[permissions]\ndefault_action = "ask"\n', encoding="utf-8")
    words = ["call", "Bash", "ls", "--config", str(rules), "--root", str(tmp_path), "--answer-within", "0.1"]
    done = subprocess.run([*GRIPFAST, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nobody answered it in time" in done.stderr
    assert queue.waiting() == []
