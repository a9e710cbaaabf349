"""One request of a client while it is served: what can be told to the client and asked of it meanwhile."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import Any, TypeAlias, TypeVar

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from holdfast.tool.context import Interruption, Progress

AnswerT = TypeVar("AnswerT", bound=BaseModel)
Request: TypeAlias = ElicitRequest | ListRootsRequest
Note: TypeAlias = Progress | tuple[str, str]  # or a log line: its level and text

NOW: ContextVar[Visit | None] = ContextVar("holdfast_visit", default=None)

OUTBOX = 256
"""Notes of one call that may wait to be sent; the oldest goes when there are more."""
SILENCE = 5.0
"""Seconds of a call without a word, after which the client is told that it is still running."""
ROOTS_WAIT = 10.0
_OPEN_QUESTIONS = 1024
_LEVELS = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}


class NobodyToAsk(Exception):
    """The client can't be asked this."""


class Suspended(Interruption):
    """A call that can go on only when the client has sent it again with an answer.

    Not an `Exception`: no tool and no hook may take it for a failure of its own.
    """

    def __init__(self, key: str, request: Request) -> None:
        self.key = key
        self.request = request


@dataclass(frozen=True, slots=True)
class Round:
    """A suspended call: exactly what was called, what was answered so far, what is being asked."""

    called: str
    answers: Mapping[str, Any]
    key: str


class Rounds:
    """Suspended calls by a random ticket. Each ticket is good once, and for the same call only."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Round] = OrderedDict()

    def suspend(self, round: Round) -> str:
        ticket = token_urlsafe(16)
        self._open[ticket] = round
        while len(self._open) > _OPEN_QUESTIONS:
            self._open.popitem(last=False)
        return ticket

    def resume(self, ticket: str | None, called: str, responses: Mapping[str, Any] | None) -> dict[str, Any]:
        """The answers this call has by now; none for a ticket that is unknown, used or another call's."""
        round = self._open.pop(ticket, None) if ticket else None
        if round is None or round.called != called:
            return {}
        given = (responses or {}).get(round.key)
        return {**round.answers, round.key: given} if given is not None else dict(round.answers)


class Visit:
    """A request being served."""

    def __init__(self, ctx: ServerRequestContext[Any], rounds: Rounds, params: Any = None) -> None:
        self.ctx = ctx
        self._rounds = rounds
        self._modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._called = ""
        self._answers: dict[str, Any] = {}
        if self._modern and params is not None:
            self._called = _digest(params.name, params.arguments)
            self._answers = rounds.resume(params.request_state, self._called, params.input_responses)
        self._asked: Counter[str] = Counter()
        self._outbox: deque[Note] = deque(maxlen=OUTBOX)
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._sender: asyncio.Task[None] | None = None
        self._beat: asyncio.TimerHandle | None = None
        self._furthest = float("-inf")
        self._spoke = False

    def progress(self, note: Progress) -> None:
        self._spoke = True
        self.tell(note)

    def tell(self, note: Note) -> None:
        """Sends a note to the client, soon. From any thread, without waiting."""
        self._outbox.append(note)
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._sender is None or self._sender.done():
            self._sender = self._loop.create_task(self._send_all())

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """While it is open, what is told reaches the client; all that was told is sent before it closes."""
        token = NOW.set(self)
        if self._wants_progress():
            self._beat = self._loop.call_later(SILENCE, self._still_running)
        try:
            yield
            if self._sender is not None:
                await asyncio.wait([self._sender])  # it may be in the middle of a note, which would be lost
            await self._send_all()
        finally:
            self._close()
            NOW.reset(token)

    def _wants_progress(self) -> bool:
        meta = (self.ctx.params or {}).get("_meta")
        return isinstance(meta, Mapping) and "progressToken" in meta

    def _still_running(self) -> None:
        if not self._spoke:
            seconds = self._loop.time() - self._started
            self._outbox.append(Progress(seconds, None, f"running for {seconds:.0f} s"))
            self._wake()
            self._beat = self._loop.call_later(SILENCE, self._still_running)

    def _close(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        if self._sender is not None:
            self._sender.cancel()

    async def _send_all(self) -> None:
        while self._outbox:
            note = self._outbox.popleft()
            if isinstance(note, Progress):
                await self._progress(note)
            else:
                await self._log(*note)

    async def _progress(self, note: Progress) -> None:
        if note.progress > self._furthest:  # the protocol: it must increase
            self._furthest = note.progress
            await self.ctx.session.report_progress(note.progress, note.total, note.message)

    async def _log(self, level: Any, text: str) -> None:
        if not self._modern:  # there it is opt-in by request, and deprecated
            params = LoggingMessageNotificationParams(level=level, data=text, logger="holdfast")
            note = LoggingMessageNotification(params=params)
            await self.ctx.session.send_notification(note, related_request_id=self.ctx.request_id)

    async def elicit(self, message: str, schema: dict[str, Any]) -> ElicitResult:
        """Puts a form before the person at the client. NobodyToAsk where the client can't show one."""
        able = self.ctx.session.client_capabilities
        if able is None or able.elicitation is None:
            raise NobodyToAsk
        request = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
        return await self._ask(request, ElicitResult)

    async def roots(self) -> list[str]:
        """The client's roots as URIs; none where it has none to tell."""
        able = self.ctx.session.client_capabilities
        if able is None or able.roots is None:
            return []
        with anyio.move_on_after(ROOTS_WAIT):
            try:
                return [str(root.uri) for root in (await self._ask(ListRootsRequest(), ListRootsResult)).roots]
            except NobodyToAsk:
                pass
        return []

    async def _ask(self, request: Request, answer: type[AnswerT]) -> AnswerT:
        if self._modern:
            return self._answered(request, answer)
        metadata = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        try:
            return await self.ctx.session.send_request(request, answer, metadata=metadata)
        except (MCPError, ValidationError) as fault:
            raise NobodyToAsk from fault

    def _answered(self, request: Request, answer: type[AnswerT]) -> AnswerT:
        """In the newer protocol a server can't ask: the call ends with the question and comes again."""
        words = _digest(request.method, request.params.model_dump(mode="json") if request.params else None)
        self._asked[words] += 1
        key = f"{words[:16]}-{self._asked[words]}"
        if key not in self._answers:
            raise Suspended(key, request)
        given = self._answers[key]
        if not isinstance(given, answer):
            raise NobodyToAsk
        return given

    def question(self, waits: Suspended) -> InputRequiredResult:
        """What the client is to answer before it calls again."""
        ticket = self._rounds.suspend(Round(self._called, self._answers, waits.key))
        return InputRequiredResult(input_requests={waits.key: waits.request}, request_state=ticket)


def _digest(name: str, arguments: Any) -> str:
    text = json.dumps([name, arguments or {}], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class ToClient(logging.Handler):
    """Sends what a tool logs to the client whose call it is running for."""

    def emit(self, record: logging.LogRecord) -> None:
        visit = NOW.get()
        if visit is not None and record.exc_info is None:  # a traceback is for our own log
            level = _LEVELS.get(record.levelno // 10 * 10, "info")
            visit.tell((level, record.getMessage()))
