"""QuestionQueue: questions from this user's sessions that wait for a person, as files in the state directory.

Any process of this user may show questions (a terminal, a page) or ask them (a server):

    queue = QuestionQueue()
    queue.waiting()                               every question that can be answered now, the oldest first
    queue.find("Q7")                              one of them; raises NoQuestion if it is unknown or closed
    queue.stamp()                                 differs when the list may have changed; costs one system call
    wait_for_change(queue, stamp, 2.0)            blocks until it differs; a server that dies changes no stamp
    queue.answer("Q7", "yes", by="terminal")      answers it, or raises NoQuestion or AnsweredBefore
    queue.answer("Q7", "no", by="page", because="use the staging server")
    queue.answer("Q7", "always", by="page")       any of `question.widths`, which says what each covers

    asked = queue.ask(Asking(...))                puts a question there
    queue.prepare()                               makes the next `ask` cheaper; `close` takes that back
    queue.answered("Q7")                          its answer, None while there is none
    queue.withdraw("Q7", "the call was cancelled")
    queue.pending("session", "call")              what other servers of this user have asked about a call
    queue.take("Q7")                              uses its answer; false if another server has done so

There is no daemon. A question is the file `Q7.json`. Its answer is the file `Q7.answer`, which is written under
another name and then linked (link(2)): the link succeeds for one writer only, so a question has one answer, whatever
races or crashes. The process that asked withdraws a question by creating the same file, so whoever answers either
succeeds or learns that the question is closed. Each asking process holds a lock on a file of its own; when it dies,
the kernel releases the lock, and its questions are closed. Numbers are never reused. All files have mode 0600, in a
directory of mode 0700.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from gripfast.host.kernel.regular import READ_FLAGS
from gripfast.host.program.alive import PREFIX, held_lock, is_alive, own_lock
from gripfast.host.program.places import private_directory, state_directory
from gripfast.host.questions.question import (
    LIFETIME,
    OVER,
    AnsweredBefore,
    Asking,
    Channel,
    NoQuestion,
    QueuedAnswer,
    QueuedQuestion,
    Verdict,
    answer_in,
    fields_of,
    no_such_question,
    question_in,
    refuse_answered,
    refuse_unoffered,
)

_KEEP_CLOSED = 86_400.0  # seconds that closed questions are kept, so that a late answer learns what became of them
_SAME_TIME = 50_000_000  # nanoseconds within which two changes of a directory may get the same mtime
_RECENT = 60.0  # seconds within which a new lock file may not be locked yet
_TIDY_EVERY = 64
_LARGEST = 64 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_ID = re.compile(r"Q[1-9][0-9]{0,11}\Z")
_LOOKED_THROUGH = 256  # of the newest questions, for those that another server asked about a call


class QuestionQueue:
    """The questions of this user. Its methods raise OSError if the state directory can't be used."""

    is_local = True

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or state_directory() / "questions"
        self._spare: tuple[str, int] | None = None  # the name and the descriptor of an empty file

    # --- for those who show questions ---

    def waiting(self) -> list[QueuedQuestion]:
        """Every question that can be answered now, the oldest first."""
        names = self._names()
        numbers = sorted(int(name[1:-5]) for name in names if _is_question(name))
        open_ids = [f"Q{number}" for number in numbers if f"Q{number}.answer" not in names]
        alive: dict[str, bool] = {}
        found = (self._read(id) for id in open_ids)
        return [one for one in found if one is not None and self._is_open(one, alive)]

    def find(self, id: str) -> QueuedQuestion:
        """A question that can be answered now. Raises NoQuestion, or AnsweredBefore."""
        question = self._read(id) if _ID.match(id) else None
        if question is None:
            raise no_such_question(id)
        refuse_answered(id, self.answered(id))
        if not self._is_open(question, {}):
            gone = time.time() <= question.expires_at
            raise NoQuestion(f"{id} is over: {'its server is gone' if gone else 'nobody answered it in time'}")
        return question

    def answer(self, id: str, verdict: Verdict, *, by: Channel, because: str = "") -> QueuedQuestion:
        """Answers a question. Raises NoQuestion if it is unknown or closed, AnsweredBefore if it has an answer, and
        InvalidArgument for a verdict that the question does not offer."""
        question = self.find(id)
        refuse_unoffered(question, verdict)
        if not self._settle(id, QueuedAnswer(verdict, by, because, time.time())):
            refuse_answered(id, self.answered(id))
            raise NoQuestion(f"{id} is over")
        return question

    def stamp(self) -> tuple[int, int]:
        """A value that differs when the list may have changed, except if a server died or a question expired."""
        try:
            changed = os.stat(self.directory).st_mtime_ns
        except FileNotFoundError:
            return (0, 0)
        now = time.time_ns()
        return (changed, now if now - changed < _SAME_TIME else 0)

    # --- for those who ask ---

    def ask(self, asking: Asking, *, seconds: float = LIFETIME) -> QueuedQuestion:
        """Puts a question into the queue. It stays open until it is answered or withdrawn, for at most `seconds`."""
        owner = held_lock(self.directory) or own_lock(self._made())
        now = time.time()
        while True:
            id = f"Q{self._next_number()}"
            question = QueuedQuestion.of(asking, id, asked_at=now, seconds=seconds, owner=owner)
            if self._put(f"{id}.json", fields_of(question)):
                break
        if int(id[1:]) % _TIDY_EVERY == 0:
            self.tidy()
        return question

    def prepare(self) -> None:
        """Makes the file for the next question, which takes longer than all the rest. To be called when nobody waits.
        Blocks, and fails silently."""
        with contextlib.suppress(OSError):
            if self._spare is None:
                self._spare = self._fresh()

    def answered(self, id: str) -> QueuedAnswer | None:
        """The answer; None if there is none yet."""
        value = self._load(f"{id}.answer")
        return None if value is None else answer_in(value)

    def pending(self, session: str, call: str) -> list[QueuedQuestion]:
        """The questions that a session has asked about a call and whose answer nobody has used: they wait, or have an
        answer. Only the newest questions are looked through."""
        names = self._names()
        numbers = sorted((int(name[1:-5]) for name in names if _is_question(name)), reverse=True)
        ids = [f"Q{number}" for number in numbers[:_LOOKED_THROUGH] if f"Q{number}.taken" not in names]
        found = [one for id in reversed(ids) if (one := self._read(id)) is not None]
        return [one for one in found if (one.session, one.call) == (session, call) and self._is_usable(one)]

    def _is_usable(self, question: QueuedQuestion) -> bool:
        answer = self.answered(question.id)
        return self._is_open(question, {}) if answer is None else not answer.is_over

    def take(self, id: str) -> bool:
        """Uses the answer of a question: false if another server has used it."""
        return self._put(f"{id}.taken", {})

    def withdraw(self, id: str, why: str) -> QueuedAnswer | None:
        """Closes a question. Returns its answer if somebody was faster."""
        if self._settle(id, QueuedAnswer(OVER, "", why, time.time())):
            return None
        return self.answered(id)

    def tidy(self) -> None:
        """Removes questions that have been closed for a day, and the lock files of processes that are gone."""
        with contextlib.suppress(OSError):
            names = self._names()
            for name in names:
                if name != "number" and not name.startswith(PREFIX) and self._age(name) > LIFETIME + _KEEP_CLOSED:
                    self._remove(name)
            locks = {name for name in names if name.startswith(PREFIX) and self._age(name) > _RECENT}
            dead = {name for name in locks if not is_alive(self.directory, name)}
            if dead:
                questions = (self._read(name[:-5]) for name in names if _is_question(name))
                self._remove(*dead.difference(question.owner for question in questions if question))

    def _age(self, name: str) -> float:
        try:
            return time.time() - os.lstat(self.directory / name).st_mtime
        except OSError:
            return 0.0

    # --- files ---

    def _made(self) -> Path:
        private_directory(self.directory.parent)
        return private_directory(self.directory)

    def _names(self) -> set[str]:
        try:
            return set(os.listdir(self.directory))
        except FileNotFoundError:
            return set()

    def _is_open(self, question: QueuedQuestion, known: dict[str, bool]) -> bool:
        if time.time() > question.expires_at:
            return False
        if question.owner not in known:
            known[question.owner] = is_alive(self.directory, question.owner)
        return known[question.owner]

    def _next_number(self) -> int:
        """The next number, counted under a lock. A lost counter continues after the largest number in use."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(f"{self.directory}/number", flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            text = os.pread(fd, 32, 0).strip()
            number = (int(text) if text.isdigit() else self._largest()) + 1
            os.pwrite(fd, b"%020d\n" % number, 0)
            return number
        finally:
            os.close(fd)

    def _largest(self) -> int:
        return max((int(name[1:-5]) for name in self._names() if _is_question(name)), default=0)

    def _settle(self, id: str, answer: QueuedAnswer) -> bool:
        return self._put(f"{id}.answer", fields_of(answer))

    def _put(self, name: str, value: Mapping[str, Any]) -> bool:
        """Creates a file with all of its content at once. False if the name is taken."""
        spare, self._spare = self._spare, None
        temporary, fd = spare or self._fresh()
        data = json.dumps(value).encode()
        try:
            with open(fd, "wb", buffering=0):
                _write_all(fd, data)
            os.link(f"{self.directory}/{temporary}", f"{self.directory}/{name}", follow_symlinks=False)
        except FileExistsError:
            return False
        except FileNotFoundError:
            if spare is None:
                raise
            return self._put(name, value)  # somebody has tidied it away
        finally:
            self._remove(temporary)
        return True

    def _read(self, id: str) -> QueuedQuestion | None:
        value = self._load(f"{id}.json")
        return None if value is None else question_in(value, id)

    def _load(self, name: str) -> dict[str, Any] | None:
        """The content of one of our files; None if there is no such file, empty if it can't be read."""
        try:
            fd = os.open(f"{self.directory}/{name}", READ_FLAGS)
        except FileNotFoundError:
            return None
        except OSError:
            return {}
        with open(fd, "rb") as file:
            if os.fstat(fd).st_uid != os.geteuid():
                return {}
            try:
                value = json.loads(file.read(_LARGEST))
            except (ValueError, OSError, RecursionError):
                return {}
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    def _fresh(self) -> tuple[str, int]:
        """A new empty file that no reader looks at: its name and its descriptor."""
        name = f".{secrets.token_hex(8)}"
        return name, os.open(f"{self.directory}/{name}", _NEW, 0o600)

    def close(self) -> None:
        """Removes the file that was made for a next question."""
        spare, self._spare = self._spare, None
        if spare is not None:
            os.close(spare[1])
            self._remove(spare[0])

    def _remove(self, *names: str) -> None:
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(f"{self.directory}/{name}")


def _is_question(name: str) -> bool:
    return name.endswith(".json") and _ID.match(name[:-5]) is not None


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


__all__ = [
    "LIFETIME",
    "AnsweredBefore",
    "Asking",
    "Channel",
    "NoQuestion",
    "QuestionQueue",
    "QueuedAnswer",
    "QueuedQuestion",
    "Verdict",
]
