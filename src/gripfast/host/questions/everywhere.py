"""The questions of this user on this machine and those in the shared store, as one queue."""

from __future__ import annotations

from gripfast.errors import ToolError
from gripfast.host.questions.question import (
    LIFETIME,
    Asking,
    Channel,
    Questions,
    QueuedAnswer,
    QueuedQuestion,
    Verdict,
)
from gripfast.host.questions.queue import QuestionQueue
from gripfast.host.questions.redis_questions import NO_PASSWORD, RedisQuestions, sealing_key


def questions_in(store: str | None) -> tuple[Questions, str]:
    """The questions of this machine and those in a store, if it may have any; and why it may not."""
    local = QuestionQueue()
    if store is None:
        return local, ""
    if sealing_key(store) is None:
        return local, NO_PASSWORD
    return EverywhereQueue(local, RedisQuestions(store)), ""


class EverywhereQueue:
    """Asks in the shared store, and on this machine while that does not answer. Ids tell where a question is: `Q7` on
    this machine, `S7` in the store."""

    is_local = False

    def __init__(self, local: Questions, shared: RedisQuestions) -> None:
        self._local = local
        self._shared = shared
        self.note = ""
        """What there is to say about the last list: what it lacks, and why."""

    def waiting(self) -> list[QueuedQuestion]:
        self.note, shared = "", list[QueuedQuestion]()
        try:
            shared = self._shared.waiting()
            if self._shared.foreign:
                self.note = (
                    f"{self._shared.foreign} entries in the shared store were not written by gripfast, or were "
                    "written with another password"
                )
        except ToolError as failure:
            self.note = f"{failure.message}; only the questions of this machine are shown"
        return sorted([*self._local.waiting(), *shared], key=lambda question: question.asked_at)

    def find(self, id: str) -> QueuedQuestion:
        return self._queue_of(id).find(id)

    def answer(self, id: str, verdict: Verdict, *, by: Channel, because: str = "") -> QueuedQuestion:
        return self._queue_of(id).answer(id, verdict, by=by, because=because)

    def stamp(self) -> object:
        try:
            return self._local.stamp(), self._shared.stamp()
        except ToolError:
            return self._local.stamp(), None

    def ask(self, asking: Asking, *, seconds: float = LIFETIME) -> QueuedQuestion:
        try:
            return self._shared.ask(asking, seconds=seconds)
        except ToolError:
            return self._local.ask(asking, seconds=seconds)

    def prepare(self) -> None:
        """There is nothing to prepare in the store."""

    def answered(self, id: str) -> QueuedAnswer | None:
        """The answer; None if there is none yet, or nothing is known of it while the store does not answer."""
        try:
            return self._queue_of(id).answered(id)
        except ToolError:
            return None

    def pending(self, session: str, call: str) -> list[QueuedQuestion]:
        try:
            return self._shared.pending(session, call)
        except ToolError:
            return []

    def take(self, id: str) -> bool:
        return self._queue_of(id).take(id)

    def withdraw(self, id: str, why: str) -> QueuedAnswer | None:
        try:
            return self._queue_of(id).withdraw(id, why)
        except ToolError:
            return None

    def close(self) -> None:
        self._local.close()

    def _queue_of(self, id: str) -> Questions:
        return self._shared if id.startswith("S") else self._local
