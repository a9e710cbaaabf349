"""The MCP server: lists the tools and runs the calls. `sessions.py` says which session a call runs in."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version
from typing import Any, cast

from anyio import to_thread
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
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

from gripfast.builtin.keys import ANSWER_BY, PERSON
from gripfast.call.run import run_call, with_note
from gripfast.clock import monotonic
from gripfast.edges.mcp import outputs, traces
from gripfast.edges.mcp.ask import PersonAtClient
from gripfast.edges.mcp.instructions import instructions_for
from gripfast.edges.mcp.observed import ASKED, ObservedCall, observed
from gripfast.edges.mcp.request import ClientRequest, Suspended
from gripfast.edges.mcp.results import failure, result_of
from gripfast.edges.mcp.running import CUT
from gripfast.edges.mcp.session_names import owner_of
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.settings import SessionSettings
from gripfast.errors import Internal, ToolError
from gripfast.framework.providers import definitions
from gripfast.messages import ToolCall

LARGEST_MESSAGE = 16 << 20
"""The most bytes of one message from a client, on either transport."""


def server_of(sessions: Sessions) -> Server[Any]:
    schemas = {tool.name: tool.definition.parameters for tool in sessions.settings.tools}
    listings: dict[tuple[str, bool], tuple[SessionSettings, ListToolsResult]] = {}

    async def list_tools(ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        able = ctx.session.client_capabilities
        asks = able is not None and able.elicitation is not None
        owner = owner_of(ctx)
        settings = sessions.people.settings_of(owner)
        key = ("" if settings is sessions.settings else owner, asks)
        if key not in listings or listings[key][0] is not settings:
            shown = await to_thread.run_sync(partial(settings.described, asks=asks))
            tools = [McpTool.model_validate(one) for one in definitions(shown, "mcp")]
            listings[key] = settings, ListToolsResult(tools=tools)
        return listings[key][1]

    async def call_tool(
        ctx: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        return await serve_call(sessions, ClientRequest(ctx, sessions.questions, params), params)

    async def list_outputs(ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListResourcesResult:
        return outputs.listed(sessions.peek(ctx), sessions.resources)

    async def list_templates(
        _: ServerRequestContext[Any], __: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return outputs.templates()

    async def read_output(ctx: ServerRequestContext[Any], params: ReadResourceRequestParams) -> ReadResourceResult:
        return await outputs.read(str(params.uri), sessions.peek(ctx), sessions.resources)

    server = Server(
        "gripfast",
        version=version("gripfast"),
        title="gripfast",
        instructions=instructions_for(schemas),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_outputs,
        on_list_resource_templates=list_templates,
        on_read_resource=read_output,
        get_tool_input_schema=schemas.get,
    )
    if traces.is_configured():
        sessions.observers.append(traces.Traces(sessions.people))
    else:
        server.middleware.clear()  # the SDK's tracing spans, which nobody collects
    if not sessions.people.open_to_all:
        server.middleware.append(_with_personal_instructions(sessions))
    _add_older_methods(server, sessions)
    return server


def _with_personal_instructions(sessions: Sessions) -> ServerMiddleware[Any]:
    """Each client is told about the tools that it gets."""

    async def with_own_instructions(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        settings = sessions.people.settings_of(owner_of(ctx))
        if ctx.method in ("initialize", "server/discover") and settings is not sessions.settings:
            own = instructions_for([tool.name for tool in settings.tools])
            return {**cast("dict[str, Any]", result), "instructions": own}
        return result

    return cast("ServerMiddleware[Any]", with_own_instructions)


async def serve_call(
    sessions: Sessions, request: ClientRequest, params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    """Runs one tool call. A failure is a result with `isError`; only a malformed request is a protocol error."""
    call = ToolCall(str(request.ctx.request_id), params.name, params.arguments or {})
    seen = ObservedCall(owner_of(request.ctx), request.client_name, request.mcp_session, call)
    if not sessions.observers:
        return await _unless_cut(sessions, request, call, seen)
    with observed(sessions.observers, seen):
        return await _unless_cut(sessions, request, call, seen)


async def _unless_cut(
    sessions: Sessions, request: ClientRequest, call: ToolCall, seen: ObservedCall
) -> CallToolResult | InputRequiredResult:
    with sessions.running.one():
        return await _answered(sessions, request, call, seen)
    return failure(f"Error executing tool: CANCELLED: {CUT}")


async def _answered(
    sessions: Sessions, request: ClientRequest, call: ToolCall, seen: ObservedCall
) -> CallToolResult | InputRequiredResult:
    started = monotonic()
    try:
        turn = sessions.quotas.call(seen.who)
        async with request, turn, sessions.acquire(request, started, call.name) as (client, session, lease):
            seen.opened(session)
            until = client.answer_by(started)
            ask = partial(client.asking.ask, request, until or started)
            deps = {PERSON.id: PersonAtClient(request), ANSWER_BY.id: until}
            message = await run_call(session, call, request.progress, ask=ask, deps=deps, tell=seen.decided)
            seen.answered(message)
            client.remember(message)
            notes = [sessions.first_note(request), *await lease.release()]
            message = with_note(message, "\n".join(filter(None, notes)) or None)
            return result_of(message, session.tools.get(message.name), request.client_name)
    except Suspended as suspended:
        seen.outcome = ASKED
        return await request.input_required(suspended)
    except (KeyboardInterrupt, GeneratorExit) as fault:  # raised by the tool: signals are handled elsewhere
        seen.outcome = Internal.CODE
        return failure(f"Error executing tool: INTERNAL: `{call.name[:80]}` failed with {type(fault).__name__}")
    except ToolError as error:
        seen.outcome = error.code
        return failure(f"Error executing tool: {error.code}: gripfast can't open a session: {error.message}")


def _add_older_methods(server: Server[Any], sessions: Sessions) -> None:
    """Adds the methods of the older protocol. As arguments of `Server` they would raise deprecation warnings."""

    async def set_level(_: ServerRequestContext[Any], __: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()

    async def roots_changed(_: ServerRequestContext[Any], __: NotificationParams) -> None:
        sessions.roots_changed()

    server.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
    server.add_notification_handler("notifications/roots/list_changed", NotificationParams, roots_changed)
