"""One request of a client while it is served: notices sent to the client, and questions put to it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from contextvars import ContextVar, Token
from dataclasses import replace
from secrets import token_urlsafe
from typing import Any, Self, TypeAlias, TypeVar

import anyio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from gripfast.edges.mcp.session_names import mcp_session_of
from gripfast.edges.mcp.sharing import Sharing
from gripfast.errors import ToolError
from gripfast.framework.context import Interruption, Progress
from gripfast.records import dataclass

AnswerT = TypeVar("AnswerT", bound=BaseModel)
QuestionToClient: TypeAlias = ElicitRequest | ListRootsRequest
Notice: TypeAlias = Progress | tuple[str, str]  # the tuple is a log line: its level and text

CURRENT_REQUEST: ContextVar[ClientRequest | None] = ContextVar("gripfast_request", default=None)

MAX_NOTICES = 256
"""How many notices of one call may wait to be sent. When there are more, the oldest is dropped."""
HEARTBEAT_SECONDS = 5.0
"""After this long without progress the client is told that the call is still running."""
ROOTS_TIMEOUT = 10.0
_MAX_PENDING = 1024
QUESTION_SECONDS = 1800.0
"""How long a suspended call may be sent again, if servers share their sessions."""
_ANSWERS: dict[str, type[BaseModel]] = {"ElicitResult": ElicitResult, "ListRootsResult": ListRootsResult}
_LEVELS = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning", logging.ERROR: "error"}


class CannotAskClient(Exception):
    """The client has no way to ask this of its user."""


class Suspended(Interruption):
    """A call that waits for an answer: the client sends it again, with the answer.

    Not an `Exception`, so that no tool and no hook mistakes it for a failure.
    """

    def __init__(self, key: str, request: QuestionToClient) -> None:
        self.key = key
        self.request = request


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A suspended call: a digest of the call, the answers so far, and the key of the open question."""

    call_digest: str
    answers: Mapping[str, Any]
    key: str
    asked_at: float = 0.0
    is_stored: bool = False

    def to_json(self) -> bytes:
        answers = {
            key: [type(answer).__name__, answer.model_dump(mode="json")] for key, answer in self.answers.items()
        }
        return json.dumps([self.call_digest, answers, self.key]).encode()

    @classmethod
    def from_json(cls, text: bytes, age: float) -> PendingQuestion | None:
        """The question that was written so many seconds ago; None if it can't be read."""
        try:
            digest, answers, key = json.loads(text)
            known = {name: _ANSWERS[kind].model_validate(value) for name, (kind, value) in answers.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return cls(str(digest), known, str(key), asyncio.get_running_loop().time() - age)


class PendingQuestions:
    """Suspended calls, each under a random state. A state works once, and only for the same call. With a shared store
    it works on every server."""

    def __init__(self, sharing: Sharing | None = None) -> None:
        self._pending: OrderedDict[str, PendingQuestion] = OrderedDict()
        self._sharing = sharing

    async def suspend(self, pending: PendingQuestion) -> str:
        state = token_urlsafe(16)
        self._pending[state] = pending
        while len(self._pending) > _MAX_PENDING:
            self._pending.popitem(last=False)
        if self._sharing is not None and await self._sharing.put(_stored(state), pending.to_json(), QUESTION_SECONDS):
            self._pending[state] = replace(pending, is_stored=True)
        return state

    async def resume(
        self, state: str | None, call_digest: str, responses: Mapping[str, Any] | None
    ) -> tuple[dict[str, Any], float | None]:
        """Returns the answers this call has so far and when it was suspended. Returns no answers if the state is
        unknown, was used before, or belongs to another call."""
        pending = self._pending.pop(state, None) if state else None
        if state and self._sharing is not None and (pending is None or pending.is_stored):
            pending = await self._taken(self._sharing, state, pending)
        if pending is None or pending.call_digest != call_digest:
            return {}, None
        answer = (responses or {}).get(pending.key)
        answers = {**pending.answers, pending.key: answer} if answer is not None else dict(pending.answers)
        return answers, pending.asked_at

    async def _taken(self, sharing: Sharing, state: str, known: PendingQuestion | None) -> PendingQuestion | None:
        """The suspended call, unless another server has resumed it. Without the store, what this server knows."""
        try:
            stored = await sharing.take(_stored(state))
        except ToolError:
            return known
        return None if stored is None else known or PendingQuestion.from_json(*stored)


def _stored(state: str) -> str:
    return f"question {state}"


class ClientRequest:
    """A client's request while it is served."""

    def __init__(self, ctx: ServerRequestContext[Any], questions: PendingQuestions, params: Any = None) -> None:
        self.ctx = ctx
        self._questions = questions
        self._modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._call_digest = ""
        self._answers: dict[str, Any] = {}
        self._suspended_at: float | None = None
        self._params = params if self._modern else None
        self._asked: Counter[str] = Counter()
        self._notices: deque[Notice] = deque(maxlen=MAX_NOTICES)
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._sender: asyncio.Task[None] | None = None
        self._heartbeat: asyncio.TimerHandle | None = None
        self._last_progress = float("-inf")
        self._has_reported = False
        self._token: Token[ClientRequest | None] | None = None

    def progress(self, notice: Progress) -> None:
        self._has_reported = True
        self.notify(notice)

    def notify(self, notice: Notice) -> None:
        """Queues a notice for the client. May be called from any thread; never waits."""
        self._notices.append(notice)
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._sender is None or self._sender.done():
            self._sender = self._loop.create_task(self._send_all())

    async def __aenter__(self) -> Self:
        """Sends notices while it is open; all of them are sent before it closes."""
        if self._params is not None:
            await self._resume(self._params)
        self._token = CURRENT_REQUEST.set(self)
        if self._wants_progress():
            self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._still_running)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if error is None:
                if self._sender is not None:
                    await asyncio.wait([self._sender])  # cancelling it inside a notice would lose that notice
                if self._notices:
                    await self._send_all()
        finally:
            self._close()
            if self._token is not None:
                CURRENT_REQUEST.reset(self._token)

    async def _resume(self, params: Any) -> None:
        """Takes the answers that come with a call that is sent again."""
        self._call_digest = _digest(params.name, params.arguments)
        state, responses = params.request_state, params.input_responses
        self._answers, self._suspended_at = await self._questions.resume(state, self._call_digest, responses)

    def _wants_progress(self) -> bool:
        meta = (self.ctx.params or {}).get("_meta")
        return isinstance(meta, Mapping) and "progressToken" in meta

    def _still_running(self) -> None:
        if not self._has_reported:
            seconds = self._loop.time() - self._started
            self._notices.append(Progress(seconds, None, f"running for {seconds:.0f} s"))
            self._wake()
            self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._still_running)

    def _close(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        if self._sender is not None:
            self._sender.cancel()

    async def _send_all(self) -> None:
        while self._notices:
            notice = self._notices.popleft()
            if isinstance(notice, Progress):
                await self._progress(notice)
            else:
                await self._log(*notice)

    async def _progress(self, notice: Progress) -> None:
        if notice.progress > self._last_progress:  # the protocol requires progress to increase
            self._last_progress = notice.progress
            await self.ctx.session.report_progress(notice.progress, notice.total, notice.message)

    async def _log(self, level: Any, text: str) -> None:
        if not self._modern:  # the newer protocol sends logs only on request, and deprecates them
            params = LoggingMessageNotificationParams(level=level, data=text, logger="gripfast")
            notice = LoggingMessageNotification(params=params)
            await self.ctx.session.send_notification(notice, related_request_id=self.ctx.request_id)

    @property
    def client_name(self) -> str:
        """The name the client gives itself; empty if it gives none."""
        client = self.ctx.session.client_params
        return client.client_info.name if client else ""

    @property
    def mcp_session(self) -> str:
        """The id of the MCP session; empty where there is none."""
        return mcp_session_of(self.ctx)

    async def elicit(self, message: str, schema: dict[str, Any]) -> ElicitResult:
        """Shows a form to the person at the client. Raises CannotAskClient if the client can't show one."""
        return (await self.elicit_timed(message, schema))[0]

    async def elicit_timed(self, message: str, schema: dict[str, Any]) -> tuple[ElicitResult, float]:
        """As `elicit`, and how many seconds the answer took."""
        able = self.ctx.session.client_capabilities
        if able is None or able.elicitation is None:
            raise CannotAskClient
        request = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
        asked_at = self._loop.time() if self._suspended_at is None else self._suspended_at
        return await self._ask(request, ElicitResult), self._loop.time() - asked_at

    @property
    def opens_pages(self) -> bool:
        """Whether the client can open a page for the person."""
        able = self.ctx.session.client_capabilities
        return able is not None and able.elicitation is not None and able.elicitation.url is not None

    @property
    def is_suspended_to_ask(self) -> bool:
        """Whether a question to the client ends the call, which the client then repeats with the answer."""
        return self._modern

    async def elicit_url(self, message: str, url: str, id: str) -> bool:
        """Asks the client to open a page for the person. Returns whether it agreed."""
        if not self.opens_pages:
            return False
        request = ElicitRequest(params=ElicitRequestURLParams(message=message, url=url, elicitation_id=id))
        try:
            return (await self._ask(request, ElicitResult)).action == "accept"
        except CannotAskClient:
            return False

    async def roots(self) -> list[str]:
        """The client's roots as URIs; empty if it offers none."""
        able = self.ctx.session.client_capabilities
        if able is None or able.roots is None:
            return []
        with anyio.move_on_after(ROOTS_TIMEOUT):
            try:
                return [str(root.uri) for root in (await self._ask(ListRootsRequest(), ListRootsResult)).roots]
            except CannotAskClient:
                pass
        return []

    async def _ask(self, request: QuestionToClient, answer: type[AnswerT]) -> AnswerT:
        if self._modern:
            return self._answered(request, answer)
        metadata = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        try:
            return await self.ctx.session.send_request(request, answer, metadata=metadata)
        except (MCPError, ValidationError) as fault:
            raise CannotAskClient from fault

    def _answered(self, request: QuestionToClient, answer: type[AnswerT]) -> AnswerT:
        """In the newer protocol a server can't send requests: the call ends with the question, and the client repeats
        the call with the answer."""
        digest = _digest(request.method, request.params.model_dump(mode="json") if request.params else None)
        self._asked[digest] += 1
        key = f"{digest[:16]}-{self._asked[digest]}"
        if key not in self._answers:
            raise Suspended(key, request)
        given = self._answers[key]
        if not isinstance(given, answer):
            raise CannotAskClient
        return given

    async def input_required(self, suspended: Suspended) -> InputRequiredResult:
        """The result that asks the client for an answer before it repeats the call."""
        pending = PendingQuestion(self._call_digest, self._answers, suspended.key, self._loop.time())
        state = await self._questions.suspend(pending)
        return InputRequiredResult(input_requests={suspended.key: suspended.request}, request_state=state)


def _digest(name: str, arguments: Any) -> str:
    text = json.dumps([name, arguments or {}], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class ClientLogHandler(logging.Handler):
    """Sends what a tool logs to the client that called it."""

    def emit(self, record: logging.LogRecord) -> None:
        request = CURRENT_REQUEST.get()
        if request is not None and record.exc_info is None:  # tracebacks stay in the server's own log
            level = _LEVELS.get(record.levelno // 10 * 10, "info")
            request.notify((level, record.getMessage()))
