"""The MCP server: definitions out, calls in. What it serves, and to whom, is the Desk's."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from anyio import to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    NotificationParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SetLevelRequestParams,
)
from mcp_types import Tool as McpTool
from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

from holdfast.call.run import run_call
from holdfast.edges.mcp import outputs
from holdfast.edges.mcp.desk import Desk
from holdfast.edges.mcp.results import failure, result_of
from holdfast.edges.mcp.visit import Suspended, Visit
from holdfast.errors import ToolError
from holdfast.messages import ToolCall
from holdfast.tool.providers import definitions

LARGEST_MESSAGE = 16 << 20
"""Bytes of one message from a client, on either transport."""


def server_of(desk: Desk) -> Server[Any]:
    schemas = {tool.name: tool.definition.parameters for tool in desk.opening.tools}
    listings: list[ListToolsResult] = []

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        if not listings:
            told = await to_thread.run_sync(desk.opening.described)
            tools = [McpTool.model_validate(one) for one in definitions(told, "mcp")]
            listings.append(ListToolsResult(tools=tools))
        return listings[0]

    async def call_tool(
        ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        return await serve_call(desk, Visit(ctx, desk.rounds, params), params)

    async def list_outputs(ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListResourcesResult:
        return outputs.listed(desk.look(ctx), desk.resources)

    async def list_templates(
        _: ServerRequestContext[Any], __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return outputs.templates()

    async def read_output(ctx: ServerRequestContext[Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        return await outputs.read(str(params.uri), desk.look(ctx), desk.resources)

    server = Server(
        "holdfast",
        version=version("holdfast"),
        title="holdfast",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_outputs,
        on_list_resource_templates=list_templates,
        on_read_resource=read_output,
        get_tool_input_schema=schemas.get,
    )
    if isinstance(get_tracer_provider(), ProxyTracerProvider):
        server.middleware.clear()  # the SDK's spans: nobody has asked for traces
    _add_older_methods(server, desk)
    return server


async def serve_call(desk: Desk, visit: Visit, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
    """One tool call. What fails is a result with `isError`; only a fault of the protocol is a protocol error."""
    call = ToolCall(str(visit.ctx.request_id), params.name, params.arguments or {})
    try:
        async with visit.open(), desk.seat(visit) as (seat, session):
            message = await run_call(session, call, visit.progress)
            seat.remember(message)
            return result_of(message, session.tools.get(message.name))
    except Suspended as question:
        return visit.question(question)
    except ToolError as error:
        return failure(f"holdfast can't open a session: {error.message}")


def _add_older_methods(server: Server[Any], desk: Desk) -> None:
    """What only the older protocol has. Added here: as arguments the SDK warns that they are going away."""

    async def set_level(_: ServerRequestContext[Any], __: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()

    async def roots_changed(_: ServerRequestContext[Any], __: NotificationParams) -> None:
        desk.roots_changed()

    server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
    server.add_notification_handler("notifications/roots/list_changed", NotificationParams, roots_changed)
