"""Serves one client on standard input and output.

The SDK's own stdio transport is not used: it hands every line through a worker thread and two queues, says nothing
to a line that is not JSON-RPC, and reads lines of any length. This one is the same contract (a stream of messages in,
a stream of messages out) over `host/wire.py`.
"""

from __future__ import annotations

import json
from types import TracebackType
from typing import Any, Self, cast

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.shared.message import SessionMessage
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

from holdfast.edges.mcp.desk import Desk
from holdfast.edges.mcp.server import LARGEST_MESSAGE, server_of
from holdfast.host.signals import wait_for_end
from holdfast.host.wire import LineTooLong, Wire, claim_wire

# How long calls that were under way when the client closed its end may take to answer.
LAST_ANSWERS = 2.0
UNDER_WAY = 10_000
"""Questions that may be unanswered at a time. Further ones are refused: each takes memory until it is answered."""


async def serve_stdio(desk: Desk) -> None:
    """Until the client closes its end, or a signal comes. Nothing the session started is left running."""
    try:
        with claim_wire(LARGEST_MESSAGE) as wire:
            async with anyio.create_task_group() as group:
                group.start_soon(_end_on_signal, group)
                outgoing = _Outgoing(wire, group.cancel_scope)
                await _serve(server_of(desk), _Incoming(wire, outgoing), outgoing)
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await desk.close()


async def _serve(server: Server[Any], incoming: _Incoming, outgoing: _Outgoing) -> None:
    """In the generation of the protocol that the client opens with. `server.run` would find that out by itself, and
    from then on hand every message through one more queue."""
    options = server.create_initialization_options()
    if not await incoming.opens_with("initialize"):
        await server.run(incoming, outgoing, options)
        return
    async with server.lifespan(server) as state:
        await serve_loop(server, incoming, outgoing, lifespan_state=state, init_options=options)


async def _end_on_signal(group: TaskGroup) -> None:
    await wait_for_end()
    group.cancel_scope.cancel()


class _Stream:
    """What the SDK wants of either stream besides messages."""

    async def aclose(self) -> None:
        """The wire belongs to whoever claimed it."""

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
    """The server's messages, straight onto the wire: each queue between would cost a turn of the loop."""

    def __init__(self, wire: Wire, all_work: anyio.CancelScope) -> None:
        self._wire = wire
        self._all_work = all_work
        self._unanswered: set[str | int] = set()
        self._settled = anyio.Event()

    async def send(self, item: SessionMessage, /) -> None:
        await self.tell(item.message)

    async def tell(self, message: JSONRPCMessage) -> None:
        try:
            await self._wire.write(line_of(message))
        except OSError:  # the client is gone: so is the reason for every call under way
            self._all_work.cancel()
            return
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self._unanswered.discard(message.id)
            self._settled.set()

    def expect(self, message: JSONRPCMessage) -> JSONRPCError | None:
        """Notes which questions of the client are to be answered. One too many is refused."""
        if isinstance(message, JSONRPCRequest):
            if len(self._unanswered) >= UNDER_WAY:
                words = f"{UNDER_WAY} requests are under way; wait for some of their answers, then ask again"
                return _error(INTERNAL_ERROR, words, message.id)
            self._unanswered.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            given_up = (message.params or {}).get("requestId")
            if isinstance(given_up, str | int):
                self._unanswered.discard(given_up)
        return None

    async def last_answers(self) -> None:
        with anyio.move_on_after(LAST_ANSWERS):
            while self._unanswered:
                self._settled = anyio.Event()
                await self._settled.wait()


class _Incoming(_Stream):
    """The client's messages, straight from the wire. What is none is answered here."""

    def __init__(self, wire: Wire, outgoing: _Outgoing) -> None:
        self._wire = wire
        self._lines = wire.lines()
        self._outgoing = outgoing
        self._waits = 0
        self._peeked: SessionMessage | Exception | None = None

    async def opens_with(self, method: str) -> bool:
        """Whether the first message is such a request. It is still to come."""
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
            if not await self._wire.room(LAST_ANSWERS):
                raise StopAsyncIteration
            message, complaint = _parsed(line)
            if message is not None:
                complaint = self._outgoing.expect(message)
            if complaint is not None:
                await self._outgoing.tell(complaint)
            elif message is not None:
                return SessionMessage(message)
        await self._outgoing.last_answers()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await self._lines.aclose()

    async def receive(self) -> SessionMessage | Exception:
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def _let_others_run(self) -> None:
        """A thousand calls at once are begun as they come, not all before the first."""
        if self._wire.waits == self._waits:
            await anyio.lowlevel.checkpoint()
        self._waits = self._wire.waits


def line_of(message: JSONRPCMessage) -> bytes:
    """A message as it goes onto the wire. An answer that can't be written is an error in its place."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except PydanticSerializationError as fault:  # half of a surrogate pair in some text, for one
        if not isinstance(message, JSONRPCResponse):
            raise
        return line_of(_error(INTERNAL_ERROR, f"the answer can't be written as JSON: {fault}"[:300], message.id))


def _parsed(line: bytes | LineTooLong) -> tuple[JSONRPCMessage | None, JSONRPCError | None]:
    """A message, or what to say to a line that is none. An empty line is neither."""
    if isinstance(line, LineTooLong):
        return None, _error(PARSE_ERROR, f"a message is at most {LARGEST_MESSAGE} bytes; this line was longer")
    if not line.strip():
        return None, None
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False), None
    except ValidationError:
        return None, _complaint(line)


def _complaint(line: bytes) -> JSONRPCError:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return _error(PARSE_ERROR, "the line is not JSON that can be read")
    if isinstance(found, list):
        return _error(INVALID_REQUEST, "batches are not served; send one message a line")
    if not isinstance(found, dict):
        return _error(INVALID_REQUEST, "a message is a JSON object")
    asked = cast("dict[str, Any]", found).get("id")
    known = asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
    return _error(INVALID_REQUEST, "not a JSON-RPC 2.0 message", None if _has_half_a_pair(known) else known)


def _has_half_a_pair(id: str | int | None) -> bool:
    """Half of a surrogate pair can be asked with, as an escape, but no answer can hold it."""
    return isinstance(id, str) and any("\ud800" <= character <= "\udfff" for character in id)


def _error(code: int, message: str, id: str | int | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
