"""Tool calls on stdio, each run in a plain task beside the SDK's dispatcher.

The SDK runs a request through its dispatcher, a task group, a runner and a chain of middleware, which takes longer
than many calls themselves. What a call may say and how its result is written is still the SDK's to decide: its own
functions validate and serialize here too. A request that they refuse, and every other message, goes to the SDK.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import anyio
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.dispatcher import CallOptions, Outbound, coerce_request_id
from mcp.shared.jsonrpc_dispatcher import (
    cancelled_request_id_from_params,
    progress_token_from_params,
)
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    CallToolRequestParams,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.methods import serialize_server_result, validate_client_request
from pydantic import ValidationError

from gripfast.edges.mcp.request import ClientRequest
from gripfast.edges.mcp.server import serve_call
from gripfast.edges.mcp.sessions import Sessions
from gripfast.errors import ToolError
from gripfast.framework.context import LOGGER
from gripfast.framework.definition import only_tool_errors

_METHOD = "tools/call"
_STDIO = TransportContext(kind="jsonrpc", can_send_request=True)


class DirectCalls:
    """The calls of one client that run now. `send` sends an answer to the client."""

    def __init__(
        self,
        sessions: Sessions,
        connection: Connection,
        outbound: Outbound,
        send: Callable[[JSONRPCResponse | JSONRPCError], None],
    ) -> None:
        self._sessions = sessions
        self._connection = connection
        self._outbound = outbound
        self._send = send
        self._running: dict[RequestId, _DirectCall] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, message: JSONRPCRequest) -> bool:
        """Starts to serve a request. False if it is for the SDK: not a call, or not a valid one."""
        if message.method != _METHOD or not self._connection.initialize_accepted:
            return False
        try:
            validate_client_request(_METHOD, self._connection.protocol_version, message.params)
            params = CallToolRequestParams.model_validate(message.params, by_name=False)
        except (KeyError, ValidationError):
            return False
        call = _DirectCall(message, self._outbound)
        self._running[coerce_request_id(message.id)] = call
        task = asyncio.get_running_loop().create_task(self._serve(call, params))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    def cancelled(self, params: Mapping[str, Any] | None) -> None:
        """The client has cancelled a request; it gets no answer. The request may be one of the SDK's."""
        id = cancelled_request_id_from_params(params)
        call = None if id is None else self._running.get(coerce_request_id(id))
        if call is not None:
            call.is_cancelled = True
            call.scope.cancel()

    async def close(self) -> None:
        """Ends the calls that still run. Their client is told that the connection is closed."""
        for call in list(self._running.values()):
            call.scope.cancel()
        with anyio.CancelScope(shield=True):
            while self._tasks:
                await asyncio.wait(self._tasks)

    async def _serve(self, call: _DirectCall, params: CallToolRequestParams) -> None:
        answer: JSONRPCResponse | JSONRPCError | None = None
        try:
            with call.scope:
                answer = await self._answer(call, params)
        finally:
            key = coerce_request_id(call.request_id)
            if self._running.get(key) is call:  # a later request may have the same id
                del self._running[key]
        if not call.is_cancelled:
            self._send(answer or _error(call, ErrorData(code=CONNECTION_CLOSED, message="Connection closed")))

    async def _answer(self, call: _DirectCall, params: CallToolRequestParams) -> JSONRPCResponse | JSONRPCError:
        try:
            return await only_tool_errors(self._result(call, params), "serving a call", LOGGER)
        except ToolError as fault:
            return _error(call, ErrorData(code=INTERNAL_ERROR, message=fault.message))
        finally:
            call.is_over = True

    async def _result(self, call: _DirectCall, params: CallToolRequestParams) -> JSONRPCResponse:
        result = await serve_call(self._sessions, self._request(call, params), params)
        dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        shown = serialize_server_result(_METHOD, self._connection.protocol_version, dumped)
        return JSONRPCResponse(jsonrpc="2.0", id=call.request_id, result=shown)

    def _request(self, call: _DirectCall, params: CallToolRequestParams) -> ClientRequest:
        ctx = ServerRequestContext[Any, Any](
            session=ServerSession(call, self._connection),
            lifespan_context={},
            protocol_version=self._connection.protocol_version,
            method=_METHOD,
            params=call.params,
            request_id=call.request_id,
            meta=params.meta,
        )
        return ClientRequest(ctx, self._sessions.questions, params)


def _error(call: _DirectCall, error: ErrorData) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=call.request_id, error=error)


class _DirectCall:
    """One call while it is served, and the way from it to its client: the SDK's `DispatchContext` for a request."""

    transport = _STDIO
    message_metadata = None

    def __init__(self, message: JSONRPCRequest, outbound: Outbound) -> None:
        self.request_id = message.id
        self.params = message.params
        self.scope = anyio.CancelScope()
        self.is_cancelled = self.is_over = False
        self._outbound = outbound

    @property
    def can_send_request(self) -> bool:
        return not self.is_over

    @property
    def cancel_requested(self) -> anyio.Event:
        event = anyio.Event()
        if self.is_cancelled:
            event.set()
        return event

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        return await self._outbound.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        if not self.is_over:
            await self._outbound.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        token = progress_token_from_params(self.params)
        if token is not None:
            said = {"progressToken": token, "progress": progress, "total": total, "message": message}
            await self.notify(
                "notifications/progress", {name: value for name, value in said.items() if value is not None}
            )
