"""Serves one client on standard input and output.

The SDK's own stdio transport is not used: it hands every line through a worker thread, says nothing to a line
that is not JSON-RPC, and reads lines of any length. This one is the same contract (a pair of message streams)
over `host/wire.py`.
"""

from __future__ import annotations

import json
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
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

from holdfast.edges.mcp.desk import Desk
from holdfast.edges.mcp.server import LARGEST_MESSAGE, server_of
from holdfast.host.signals import wait_for_end
from holdfast.host.wire import LineTooLong, Wire, claim_wire

# How long calls that were under way when the client closed its end may take to answer.
LAST_ANSWERS = 2.0


async def serve_stdio(desk: Desk) -> None:
    """Until the client closes its end, or a signal comes. Nothing the session started is left running."""
    try:
        with claim_wire(LARGEST_MESSAGE) as wire:
            async with anyio.create_task_group() as group:
                group.start_soon(_end_on_signal, group)
                await _Exchange(wire).run(desk)
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await desk.close()


async def _end_on_signal(group: TaskGroup) -> None:
    await wait_for_end()
    group.cancel_scope.cancel()


class _Exchange:
    """One client's messages, between the wire and the SDK's server."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._unanswered: set[str | int] = set()
        self._settled = anyio.Event()

    async def run(self, desk: Desk) -> None:
        server = server_of(desk)
        to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](64)
        outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](64)
        async with anyio.create_task_group() as group:
            group.start_soon(self._read, to_server, outgoing.clone())
            group.start_soon(self._write, from_server, group)
            await server.run(incoming, outgoing, server.create_initialization_options())
            outgoing.close()

    async def _read(
        self,
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        replies: MemoryObjectSendStream[SessionMessage],
    ) -> None:
        async with to_server, replies:
            async for line in self._wire.lines():
                message, complaint = _parsed(line)
                if complaint is not None:
                    await replies.send(SessionMessage(complaint))
                if message is None:
                    continue
                self._note_question(message)
                try:
                    await to_server.send(SessionMessage(message))
                except anyio.BrokenResourceError:
                    return
            await self._last_answers()

    def _note_question(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._unanswered.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._unanswered.discard((message.params or {}).get("requestId", ""))

    async def _last_answers(self) -> None:
        with anyio.move_on_after(LAST_ANSWERS):
            while self._unanswered:
                self._settled = anyio.Event()
                await self._settled.wait()

    async def _write(self, from_server: MemoryObjectReceiveStream[SessionMessage], group: TaskGroup) -> None:
        async with from_server:
            async for outgoing in from_server:
                message = outgoing.message
                text = message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await self._wire.write(text.encode() + b"\n")
                except OSError:  # the client is gone: so is the reason for every call under way
                    group.cancel_scope.cancel()
                    return
                if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
                    self._unanswered.discard(message.id)
                    self._settled.set()


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
    return _error(INVALID_REQUEST, "not a JSON-RPC 2.0 message", known)


def _error(code: int, message: str, id: str | int | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=message))
