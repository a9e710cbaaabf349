"""Serves one client on standard input and output.

The SDK's own stdio transport is not used: it passes every line through a worker thread and two queues, ignores a line
that is not JSON-RPC, and reads lines of any length. This one offers the same two streams of messages over
`host/program/wire.py`.
"""

from __future__ import annotations

import json
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

import anyio
import anyio.lowlevel
from anyio import to_thread
from anyio.abc import TaskGroup
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_connection
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from gripfast.edges.early import EarlyAnswers
from gripfast.edges.mcp.direct import DirectCalls
from gripfast.edges.mcp.server import LARGEST_MESSAGE, server_of
from gripfast.edges.mcp.sessions import Sessions
from gripfast.host.program.ending import ending
from gripfast.host.program.signals import wait_for_end
from gripfast.host.program.wire import LineTooLong, Wire, claim_wire

# How long running calls may take to answer after the client has closed its end.
DRAIN_SECONDS = 2.0
FLUSH_SECONDS = 1.0
AT_A_TURN = 8
"""Requests of a burst that are read before those so far have a turn."""
MAX_PENDING_REQUESTS = 10_000
"""Requests that may wait for an answer at a time. More are refused: each takes memory until it is answered."""


async def serve_stdio(sessions: Sessions, early: EarlyAnswers | None = None) -> None:
    """Serves until the client closes its end or a signal asks the server to end. No process that the session started
    is left running. `early` may already have answered the first messages."""
    server = server_of(sessions)
    first = await to_thread.run_sync(early.pass_on) if early else b""
    try:
        with claim_wire(LARGEST_MESSAGE, first) as wire:
            async with anyio.create_task_group() as group:
                group.start_soon(_end_on_signal, group)
                outgoing = _Outgoing(wire, group.cancel_scope, early)
                await _serve(server, sessions, _Incoming(wire, outgoing), outgoing)
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await sessions.close()


async def _serve(server: Server[Any], sessions: Sessions, incoming: _Incoming, outgoing: _Outgoing) -> None:
    """Serves the protocol version that the client starts with. `server.run` would detect it too, but would then pass
    every message through one more queue."""
    options = server.create_initialization_options()
    if not await incoming.opens_with("initialize"):
        await server.run(incoming, outgoing, options)
        return
    dispatcher = JSONRPCDispatcher[TransportContext](incoming, outgoing, inline_methods=frozenset({"initialize"}))
    connection = Connection.for_loop(dispatcher)
    if not server.middleware:  # which sees every request
        incoming.calls = DirectCalls(sessions, connection, dispatcher, outgoing.answer)
    try:
        async with server.lifespan(server) as state:
            await serve_connection(
                server, dispatcher, connection=connection, lifespan_state=state, init_options=options
            )
    finally:
        if incoming.calls is not None:
            await incoming.calls.close()
            await outgoing.flush()


async def _end_on_signal(group: TaskGroup) -> None:
    await wait_for_end()
    ending()
    group.cancel_scope.cancel()


class _Stream:
    """The part of a stream that the SDK expects besides messages."""

    async def aclose(self) -> None:
        """Does nothing: `claim_wire` closes the wire."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Outgoing(_Stream):
    """The server's messages, written straight to the wire: a queue would cost each a turn of the event loop."""

    def __init__(self, wire: Wire, all_work: anyio.CancelScope, early: EarlyAnswers | None = None) -> None:
        self._wire = wire
        self._all_work = all_work
        self._early = early
        self._unanswered: set[str | int] = set()
        self._answered = anyio.Event()

    async def send(self, item: SessionMessage, /) -> None:
        await self.write(item.message)

    async def write(self, message: JSONRPCMessage) -> None:
        line = line_of(message)
        try:
            if self._early is None or not self._was_sent(self._early, message, line):
                await self._wire.write(line)
        except OSError:  # the client is gone, so nobody waits for the running calls
            ending()
            self._all_work.cancel()
            return
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._settled(message.id)

    def answer(self, message: JSONRPCResponse | JSONRPCError) -> None:
        """Sends an answer without waiting for it; several that are ready at the same time together."""
        line = line_of(message)
        if self._early is not None and self._was_sent(self._early, message, line):
            self._settled(message.id)
        else:
            self._wire.post(line, partial(self._posted, message.id), together=len(self._unanswered) > 1)

    def _posted(self, id: str | int | None) -> None:
        if self._wire.fault is not None:  # the client is gone, so nobody waits for the running calls
            ending()
            self._all_work.cancel()
        self._settled(id)

    def _settled(self, id: str | int | None) -> None:
        if id is not None:
            self._unanswered.discard(id)
            self._answered.set()

    def _was_sent(self, early: EarlyAnswers, message: JSONRPCMessage, line: bytes) -> bool:
        """Whether the client already has this answer."""
        if not early.is_busy:
            self._early = None
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return False
        result = json.loads(line).get("result")
        text = None if result is None else json.dumps(result, ensure_ascii=False, separators=(",", ":"))
        return early.was_sent(message.id, text)

    def received(self, line: bytes) -> None:
        """Called for each line from the client, before it is served."""
        if self._early is not None:
            self._early.received(line)

    def track(self, message: JSONRPCMessage) -> JSONRPCError | None:
        """Remembers which requests wait for an answer. Returns an error for one beyond the limit."""
        if isinstance(message, JSONRPCRequest):
            if len(self._unanswered) >= MAX_PENDING_REQUESTS:
                text = (
                    f"{MAX_PENDING_REQUESTS} requests are waiting for an answer, which is the limit; try again later"
                )
                return _error(INTERNAL_ERROR, text, message.id)
            self._unanswered.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, str | int):
                self._unanswered.discard(cancelled)
        return None

    async def flush(self) -> None:
        """Sends what is posted, if the client reads it soon."""
        with anyio.move_on_after(FLUSH_SECONDS, shield=True):
            await self._wire.flush()

    async def drain(self) -> None:
        with anyio.move_on_after(DRAIN_SECONDS):
            while self._unanswered:
                self._answered = anyio.Event()
                await self._answered.wait()


class _Incoming(_Stream):
    """The client's messages, straight from the wire. A line that is not a valid message is answered here."""

    def __init__(self, wire: Wire, outgoing: _Outgoing) -> None:
        self._wire = wire
        self._lines = wire.lines()
        self._outgoing = outgoing
        self._waits = 0
        self._read = 0
        self._peeked: SessionMessage | Exception | None = None
        self.calls: DirectCalls | None = None

    async def opens_with(self, method: str) -> bool:
        """Whether the first message is a request of this method. The message stays in the stream."""
        self._peeked = await anext(self, None)
        message = self._peeked.message if isinstance(self._peeked, SessionMessage) else None
        return isinstance(message, JSONRPCRequest) and message.method == method

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        if self._peeked is not None:
            first, self._peeked = self._peeked, None
            return first
        async for line in self._lines:
            await self._let_others_run()
            if self._wire.is_crowded and not await self._wire.room(DRAIN_SECONDS):
                ending()
                raise StopAsyncIteration
            message, error = _parsed(line)
            if message is not None and isinstance(line, bytes):
                self._outgoing.received(line)
                error = self._outgoing.track(message)
            if error is not None:
                await self._outgoing.write(error)
            elif message is not None and not self._is_served(message):
                return SessionMessage(message)
        await self._outgoing.drain()
        ending()
        raise StopAsyncIteration

    def _is_served(self, message: JSONRPCMessage) -> bool:
        """Whether this is a call that is served beside the SDK."""
        if self.calls is None:
            return False
        if isinstance(message, JSONRPCRequest):
            return self.calls.start(message)
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.calls.cancelled(message.params)
        return False

    async def aclose(self) -> None:
        await self._lines.aclose()

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def _let_others_run(self) -> None:
        """Gives running calls a turn, so that a burst of requests is not all read before the first one is served."""
        self._read += 1
        if self._wire.waits != self._waits:
            self._waits = self._wire.waits
            self._read = 0
        elif self._read >= AT_A_TURN:
            self._read = 0
            await anyio.lowlevel.checkpoint()


def line_of(message: JSONRPCMessage) -> bytes:
    """A message as a line. An answer that can't be written as JSON is replaced by an error."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except PydanticSerializationError as fault:  # for example a lone surrogate in a text
        if not isinstance(message, JSONRPCResponse):
            raise
        return line_of(_error(INTERNAL_ERROR, f"the answer can't be written as JSON: {fault}"[:300], message.id))


def _parsed(line: bytes | LineTooLong) -> tuple[JSONRPCMessage | None, JSONRPCError | None]:
    """The message in a line, or the error to answer with. Both are None for an empty line."""
    if isinstance(line, LineTooLong):
        return None, _error(PARSE_ERROR, f"a message is at most {LARGEST_MESSAGE} bytes; this line was longer")
    if not line.strip():
        return None, None
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False), None
    except ValidationError:
        return None, _error_for(line)


def _error_for(line: bytes) -> JSONRPCError:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return _error(PARSE_ERROR, "the line is not valid JSON")
    if isinstance(found, list):
        return _error(INVALID_REQUEST, "batches are not supported; send one message per line")
    if not isinstance(found, dict):
        return _error(INVALID_REQUEST, "a message must be a JSON object")
    asked = cast("dict[str, Any]", found).get("id")
    known = asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
    return _error(INVALID_REQUEST, "not a JSON-RPC 2.0 message", None if _has_lone_surrogate(known) else known)


def _has_lone_surrogate(id: str | int | None) -> bool:
    """Whether an id has a lone surrogate, which can arrive as a JSON escape but can't be sent back as UTF-8."""
    return isinstance(id, str) and any("\ud800" <= character <= "\udfff" for character in id)


def _error(code: int, message: str, id: str | int | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
