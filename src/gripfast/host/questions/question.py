"""A question that waits for a person, its answer, and what every queue of them does."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias

from gripfast.errors import Conflict, InvalidArgument, NotFound
from gripfast.records import dataclass
from gripfast.text.escape import escaped

Verdict: TypeAlias = Literal["yes", "no", "always", "always_leading", "remember"]
"""Yes, no, or one of the ways to say "always" that `QueuedQuestion.widths` offers."""
Channel: TypeAlias = Literal["terminal", "page", "client"]

LIFETIME = 1800.0
"""Seconds until a question that nobody answers is closed."""
OVER = "over"
"""The verdict of a question that was closed without an answer."""

_POLL_SECONDS = 0.05
_POLL_STORE_SECONDS = 0.25


class NoQuestion(NotFound):
    """There is no such question, or it is closed."""


class AnsweredBefore(Conflict):
    """Somebody has already answered it."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question to be asked. `shown` is what will run, escaped; `diff` is what it would change, if known. `call` is
    a digest of the call: another server finds the question by it when the same call comes again. `who` is the person
    whose token the client has, empty without tokens; `client` is the name that the client gives itself."""

    session: str
    root: str
    tool: str
    reason: str
    shown: str
    widths: Mapping[str, str] = field(default_factory=dict[str, str])
    diff: str = ""
    client: str = ""
    call: str = ""
    who: str = ""


@dataclass(frozen=True, slots=True)
class QueuedQuestion:
    """A question in a queue. Times are seconds since 1970. `server` is where it was asked, if that may be another
    machine."""

    id: str
    session: str
    root: str
    tool: str
    reason: str
    shown: str
    widths: Mapping[str, str]
    diff: str
    client: str
    asked_at: float
    expires_at: float
    pid: int
    owner: str
    call: str = ""
    server: str = ""
    who: str = ""

    @classmethod
    def of(
        cls, asking: Asking, id: str, *, asked_at: float, seconds: float, owner: str, server: str = ""
    ) -> QueuedQuestion:
        """The question that this process asks."""
        return cls(
            id=id,
            session=asking.session,
            root=asking.root,
            tool=asking.tool,
            reason=asking.reason,
            shown=asking.shown,
            widths=dict(asking.widths),
            diff=asking.diff,
            client=asking.client,
            asked_at=asked_at,
            expires_at=asked_at + seconds,
            pid=os.getpid(),
            owner=owner,
            call=asking.call,
            server=server,
            who=asking.who,
        )

    @property
    def asker(self) -> str:
        """Who asks, on one line: the person first, whom a client can't choose. Empty if nothing is known."""
        return escaped(" with ".join(filter(None, (self.who, self.client))))

    def to_json(self) -> dict[str, Any]:
        """The public JSON form; its keys don't change between versions."""
        return {name: value for name, value in fields_of(self).items() if name not in ("owner", "call")}


@dataclass(frozen=True, slots=True)
class QueuedAnswer:
    """An answer. With the verdict "over", the reason why the question can no longer be answered."""

    verdict: str
    by: str
    because: str
    at: float

    @property
    def is_over(self) -> bool:
        return self.verdict == OVER


class Questions(Protocol):
    """A queue of questions, as those who show them and those who ask them use it."""

    @property
    def is_local(self) -> bool:
        """Whether `ask`, `answered` and `withdraw` are fast enough to be called without a thread."""
        ...

    def waiting(self) -> list[QueuedQuestion]:
        """Every question that can be answered now, the oldest first."""
        ...

    def find(self, id: str) -> QueuedQuestion:
        """A question that can be answered now. Raises NoQuestion, or AnsweredBefore."""
        ...

    def answer(self, id: str, verdict: Verdict, *, by: Channel, because: str = "") -> QueuedQuestion:
        """Answers a question. Raises NoQuestion if it is unknown or closed, AnsweredBefore if it has an answer, and
        InvalidArgument for a verdict that the question does not offer."""
        ...

    def stamp(self) -> object:
        """A value that differs when the list may have changed, except if a server died or a question expired."""
        ...

    def ask(self, asking: Asking, *, seconds: float = LIFETIME) -> QueuedQuestion:
        """Puts a question into the queue. It stays open until it is answered or withdrawn, for at most `seconds`."""
        ...

    def prepare(self) -> None:
        """Makes the next `ask` cheaper. To be called when nobody waits. Blocks, and fails silently."""
        ...

    def answered(self, id: str) -> QueuedAnswer | None:
        """The answer; None if there is none yet."""
        ...

    def pending(self, session: str, call: str) -> list[QueuedQuestion]:
        """The questions that a session has asked about a call and whose answer nobody has used, on any server: they
        wait, or have an answer."""
        ...

    def take(self, id: str) -> bool:
        """Uses the answer of a question: false if another server has used it."""
        ...

    def withdraw(self, id: str, why: str) -> QueuedAnswer | None:
        """Closes a question. Returns its answer if somebody was faster."""
        ...

    def close(self) -> None: ...


def wait_for_change(queue: Questions, stamp: object, seconds: float) -> object:
    """Blocks until the stamp of a queue differs, for at most `seconds`. Returns the new stamp. A server that dies
    changes no stamp."""
    until = time.monotonic() + seconds
    while (now := queue.stamp()) == stamp and time.monotonic() < until:
        time.sleep(_POLL_SECONDS if queue.is_local else _POLL_STORE_SECONDS)
    return now


def fields_of(value: QueuedQuestion | QueuedAnswer) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def question_in(value: Mapping[str, Any], id: str) -> QueuedQuestion | None:
    """A question as it was stored; None if it can't be one with this id."""
    if value.get("id") != id:
        return None
    try:
        return QueuedQuestion(**{name: value[name] for name in QueuedQuestion.__slots__ if name in value})
    except TypeError:
        return None


def answer_in(value: Mapping[str, Any]) -> QueuedAnswer:
    """An answer as it was stored. What can't be one is never a yes."""
    try:
        return QueuedAnswer(str(value["verdict"]), str(value["by"]), str(value["because"]), float(value["at"]))
    except (KeyError, TypeError, ValueError):
        return QueuedAnswer(OVER, "", "its answer can't be read", 0.0)


def refuse_unoffered(question: QueuedQuestion, verdict: str) -> None:
    """Raises InvalidArgument for a verdict that the question does not offer."""
    if verdict not in ("yes", "no") and verdict not in question.widths:
        raise InvalidArgument(f"{question.id} can't be answered with {verdict!r}, only with yes or no")


def refuse_answered(id: str, answer: QueuedAnswer | None) -> None:
    """Raises NoQuestion or AnsweredBefore if there is an answer."""
    if answer is None:
        return
    if answer.is_over:
        raise NoQuestion(f"{id} is over: {answer.because}")
    raise AnsweredBefore(f"{id} was answered before: {answer.verdict}, from the {answer.by}")


def no_such_question(id: str) -> NoQuestion:
    return NoQuestion(f"there is no question {id[:40]!r}; `gripfast approvals` lists those that wait")
