"""Approvals: the questions of one session that go to the queue, because the client has no way to ask them.

A call waits for its answer until it has to answer itself. Then it says which question it waits for, and the same
call again attaches to that question. What was approved meanwhile runs when that call comes: once, and never without
a caller.
"""

from __future__ import annotations

import contextlib
import hashlib
import shlex
from collections.abc import Callable, Coroutine
from dataclasses import field
from typing import Any, TypeAlias, TypeVar

import anyio
from anyio import to_thread

from gripfast.call.hooks import Answer, Answered, Question
from gripfast.clock import monotonic
from gripfast.errors import PolicyDenied, ToolError, WaitingForApproval
from gripfast.host.questions.page import running_page
from gripfast.host.questions.question import LIFETIME, Asking, Questions, QueuedAnswer, QueuedQuestion
from gripfast.host.questions.queue import QuestionQueue
from gripfast.records import dataclass
from gripfast.text.escape import escaped

ANSWER_WITHIN = 50.0
"""Seconds in which a call answers a client of which nothing is known; most clients give up after 60."""
CLIENT_TIMEOUTS = {
    "claude-code": 60.0,
    "codex-mcp-client": 60.0,
    "opencode": 60.0,
    "cursor-vscode": 60.0,
    "gemini-cli-mcp-client": 600.0,
}
"""The shortest time, in seconds, after which a client of this name is known to give up a call by default."""
_SPARE = 10.0  # seconds between our answer and the client's timeout
LONGEST_NAME = 64
"""Characters of the name that a client gives itself, in a question."""
LARGEST_SHOWN = 1 << 20
"""Characters of one question. A longer one is cut, with the digest of all of it."""
_POLL_SECONDS = 0.05
_POLL_STORE_SECONDS = 0.25
OVER = QueuedAnswer("over", "", "nobody answered it in time", 0.0)


def answer_within(client: str, chosen: float | None = None) -> float:
    """How many seconds a call may take to answer a client of this name. 0 means that no question waits."""
    if chosen is not None:
        return chosen
    timeout = next((limit for name, limit in CLIENT_TIMEOUTS.items() if client.lower().startswith(name)), None)
    return ANSWER_WITHIN if timeout is None else timeout - _SPARE


def console_url(question: QueuedQuestion) -> str | None:
    """The page where a question can be answered, for clients that can open one. None while no console runs. It has
    no key: it opens in the browser where the console is open already."""
    page = running_page()
    return None if page is None else f"http://{page}/console#{question.id}"


T = TypeVar("T")
Present: TypeAlias = Callable[[QueuedQuestion], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class _Waiting:
    """A question in the queue, whether a call waits for it now, and whether this server asked it."""

    question: QueuedQuestion
    until: float
    attached: bool = True
    is_own: bool = True
    is_new: bool = True
    is_used: bool = False
    """Another server has used its answer."""


@dataclass(slots=True)
class Approvals:
    """The questions of one session that wait. `notify` is told of each new one. `is_shared`: other servers may go on
    with the session, and with its questions."""

    session: str
    root: str
    client: str = ""
    lifetime: float = LIFETIME
    notify: Callable[[QueuedQuestion], None] | None = None
    queue: Questions = field(default_factory=QuestionQueue)
    is_shared: bool = False
    config: str | None = None
    """The configuration that names the shared store, for whoever answers."""
    who: str = ""
    """The person whose token the client has."""
    _finding: anyio.Lock = field(default_factory=anyio.Lock)
    _waiting: dict[str, list[_Waiting]] = field(default_factory=dict[str, list[_Waiting]])

    async def is_waiting(self, question: Question) -> bool:
        """Whether a question about the same call waits for an answer or for its call."""
        return bool(self._waiting) and (await self._asking(question))[0] in self._waiting

    async def ask(
        self, question: Question, until: float, present: Present | None = None, *, note: str = ""
    ) -> Answered:
        """The answer to a question, waited for until a time of the monotonic clock. Raises WaitingForApproval then,
        with the note, or PolicyDenied if the question can't be asked or nobody answered it in its lifetime. `present`
        may show a new question to the person while it waits."""
        await self._drop_expired()
        key, asking = await self._asking(question)
        while True:
            async with self._finding:
                attached = self._attach(key) or await self._found_elsewhere(key)
                waiting = attached or await self._put(key, asking, question)
            answer = await self._shown_and_waited(waiting, until, present if attached is None else None)
            is_waiting = answer is None or not await self._may_use(waiting)
            if not is_waiting or not waiting.is_own:  # whether another server's question still waits is looked up
                self._forget(key, waiting)
            if answer is None or is_waiting:
                raise _still_waiting(waiting.question, question, note, self._command(waiting.question))
            if waiting.is_used or (answer.is_over and not waiting.is_own):
                continue  # by another server: this call has a question of its own
            return _answered(answer, waiting.question, question)

    def _command(self, asked: QueuedQuestion) -> str:
        """What the user types to say yes."""
        known = f" --config {shlex.quote(self.config)}" if self.config and not self.queue.is_local else ""
        return f"gripfast approve {asked.id}{known}"

    async def _shown_and_waited(
        self, waiting: _Waiting, until: float, present: Present | None
    ) -> QueuedAnswer | None:
        answer = None
        try:
            async with anyio.create_task_group() as group:
                if present is not None:
                    group.start_soon(present, waiting.question)
                if waiting.is_new:
                    waiting.is_new = False
                    await to_thread.run_sync(self.queue.prepare)  # while the person reads
                answer = await self._wait(waiting, until)
                group.cancel_scope.cancel()
        finally:
            waiting.attached = False
        return answer

    async def _asking(self, question: Question) -> tuple[str, Asking]:
        """What is asked, and its key: the same call again, about the same change, has the same."""
        diff = await question.diff()
        shown = question.shown(whole=True)
        arguments = question.arguments.model_dump_json()
        parts = (question.tool.name, arguments, shown, diff, question.covers, question.where)
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        cut = bounded(diff)
        text = f"{bounded(shown)}\n{cut}" if cut else bounded(shown)
        reason = escaped(question.reason)
        widths = {str(width): covers for width, covers in question.widths().items()}
        client = self.client[:LONGEST_NAME]
        asking = Asking(self.session, self.root, question.tool.name, reason, text, widths, cut, client, key, self.who)
        return key, asking

    def _attach(self, key: str) -> _Waiting | None:
        """A question about the same call that no other call waits for at this moment."""
        free = next((one for one in self._waiting.get(key, ()) if not one.attached), None)
        if free is not None:
            free.attached = True
        return free

    async def _found_elsewhere(self, key: str) -> _Waiting | None:
        """A question that another server has asked about the same call of this session."""
        if not self.is_shared:
            return None
        known = {one.question.id for several in self._waiting.values() for one in several}
        found = await to_thread.run_sync(self.queue.pending, self.session, key)
        free = next((question for question in found if question.id not in known), None)
        if free is None:
            return None
        waiting = _Waiting(free, monotonic() + self.lifetime, is_own=False, is_new=False)
        self._waiting.setdefault(key, []).append(waiting)
        return waiting

    async def _put(self, key: str, asking: Asking, question: Question) -> _Waiting:
        try:
            asked = await self._in_queue(lambda: self.queue.ask(asking, seconds=self.lifetime))
        except OSError as fault:
            raise PolicyDenied(
                f"{question.reason}; it needs approval, and the question can't be put where the user would see it "
                f"({fault.strerror}): {question.remedy}"
            ) from None
        waiting = _Waiting(asked, monotonic() + self.lifetime)
        self._waiting.setdefault(key, []).append(waiting)
        if self.notify is not None:
            self.notify(asked)
        return waiting

    async def _wait(self, waiting: _Waiting, until: float) -> QueuedAnswer | None:
        id = waiting.question.id
        pause = _POLL_SECONDS if self.queue.is_local else _POLL_STORE_SECONDS
        while True:
            answer = await self._in_queue(lambda: self.queue.answered(id))
            now = monotonic()
            if answer is None and now >= waiting.until:
                await self._withdraw(waiting, "nobody answered it in time")
                answer = await self._in_queue(lambda: self.queue.answered(id)) or OVER
            if answer is not None or now >= until:
                return answer
            await anyio.sleep(min(pause, max(0.0, until - now)))

    async def _may_use(self, waiting: _Waiting) -> bool:
        """Takes the answer, so that no other server uses it. False if that is not known yet."""
        if self.is_shared:
            try:
                waiting.is_used = not await self._in_queue(lambda: self.queue.take(waiting.question.id))
            except (ToolError, OSError):
                return False
        return True

    async def _in_queue(self, work: Callable[[], T]) -> T:
        """Asks the queue, in a thread if that may take a while. What was begun comes to its end."""
        return work() if self.queue.is_local else await to_thread.run_sync(work)

    def _forget(self, key: str, waiting: _Waiting) -> None:
        left = [one for one in self._waiting.get(key, ()) if one is not waiting]
        if left:
            self._waiting[key] = left
        else:
            self._waiting.pop(key, None)

    async def _drop_expired(self) -> None:
        now = monotonic()
        for key, waitings in list(self._waiting.items()):
            for one in waitings:
                if not one.attached and now >= one.until:
                    await self._withdraw(one, "nobody answered it in time")
                    self._forget(key, one)

    async def _withdraw(self, waiting: _Waiting, why: str) -> None:
        if waiting.is_own:
            with contextlib.suppress(OSError):
                await self._in_queue(lambda: self.queue.withdraw(waiting.question.id, why))

    async def close(self) -> None:
        """The session ends: its questions are over."""
        waitings = [one for several in self._waiting.values() for one in several]
        self._waiting.clear()
        for one in waitings:
            await self._withdraw(one, "its session has ended")
        self.queue.close()


def bounded(text: str, most: int = LARGEST_SHOWN) -> str:
    """A text, or as much of a longer one, with the digest of all of it."""
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:most]}\n… ({len(text) - most} more characters; SHA-256 of all: {digest})"


def _still_waiting(asked: QueuedQuestion, question: Question, note: str, command: str) -> WaitingForApproval:
    return WaitingForApproval(
        f"waiting for approval {asked.id}; call again, with the same arguments, when the user has answered; do other "
        f"work meanwhile. It was asked because: {escaped(question.reason)}. {note}The user can answer with "
        f"`{escaped(command)}`",
        details={"id": asked.id},
    )


def _answered(answer: QueuedAnswer, asked: QueuedQuestion, question: Question) -> Answered:
    if answer.is_over:
        raise PolicyDenied(f"{question.reason}; {asked.id} is over: {answer.because}")
    given: dict[str, Answer] = {"yes": True, **{width: width for width in question.widths()}}
    return Answered(given.get(answer.verdict, False), f"{answer.by}, {asked.id}", escaped(answer.because))
