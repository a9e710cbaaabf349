"""The Claude Agent SDK: a session as a server in the program, and the permission callback that knows its rules."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import version
from typing import Any
from weakref import WeakKeyDictionary

from claude_agent_sdk import (
    CanUseTool,
    McpSdkServerConfig,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams
from mcp_types import Tool as McpTool

from gripfast.adapters.calls import Caller, nobody_to_ask, shown_once
from gripfast.adapters.words import chosen
from gripfast.call.hooks import Question
from gripfast.call.run import Session
from gripfast.edges.mcp.results import result_of
from gripfast.errors import ToolError
from gripfast.framework.providers import definitions

__all__ = ["can_use_tool", "server"]

NAME = "gripfast"
# What was asked about a session's calls, shared by its server and its callback.
_CALLERS: WeakKeyDictionary[Session, Caller] = WeakKeyDictionary()
_REMEDY = (
    "give the options `can_use_tool=can_use_tool(session, callback)`, and don't list the tool in `allowed_tools`"
)


def server(session: Session, *, only: Iterable[str] | None = None, name: str = NAME) -> McpSdkServerConfig:
    """For `ClaudeAgentOptions(mcp_servers={name: server(session, name=name)})`; Claude calls its tools
    `mcp__gripfast__Read`. The caller closes the session."""
    tools = [McpTool.model_validate(one) for one in definitions(chosen(session, only), "mcp")]
    names = {tool.name for tool in tools}
    caller = _caller(session)

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        called = params.name if params.name in names else f"{params.name} (not served)"
        message = await caller.call_as_shown(called, params.arguments or {}, "", remedy=_REMEDY)
        return result_of(message, session.tools.get(message.name))

    instance = Server(name, version=version("gripfast"), on_list_tools=list_tools, on_call_tool=call_tool)
    return McpSdkServerConfig(type="sdk", name=name, instance=instance)


def can_use_tool(session: Session, callback: CanUseTool | None = None, *, name: str = NAME) -> CanUseTool:
    """For `ClaudeAgentOptions(can_use_tool=...)`: what the rules allow runs, what they ask about goes to `callback`,
    with the question as the context's `title` and the reason as its `decision_reason`; without one it is refused.

    Tools of others go to `callback` as they are. A tool listed in `allowed_tools` never comes here: if a rule asks
    about its call, it is refused.
    """
    prefix = f"mcp__{name}__"
    caller = _caller(session)

    async def decide(tool: str, given: dict[str, Any], context: ToolPermissionContext) -> Any:
        if not tool.startswith(prefix):
            return await callback(tool, given, context) if callback else _deny(f"nobody was asked about `{tool}`")
        try:
            questions = await caller.questions(tool.removeprefix(prefix), given, "")
        except ToolError:
            return PermissionResultAllow()  # the call itself is refused, and says why
        if not questions:
            return PermissionResultAllow()
        answer = await _put(questions, tool, given, context, callback)
        await _settle(caller, tool.removeprefix(prefix), given, answer)
        return answer

    return decide


async def _put(
    questions: list[Question],
    tool: str,
    given: dict[str, Any],
    context: ToolPermissionContext,
    callback: CanUseTool | None,
) -> Any:
    if callback is None:
        return _deny(nobody_to_ask(questions[0], _REMEDY).message)
    shown = "\n\n".join(shown_once(question) for question in questions)
    reasons = "; ".join(question.reason for question in questions)
    return await callback(tool, given, replace(context, title=shown, decision_reason=reasons))


async def _settle(caller: Caller, tool: str, given: dict[str, Any], answer: Any) -> None:
    """A no is forgotten. A yes with other arguments is a yes to those."""
    if answer.behavior != "allow":
        caller.forget(tool, given, "")
    elif answer.updated_input is not None and answer.updated_input != given:
        caller.forget(tool, given, "")
        await caller.questions(tool, answer.updated_input, "")


def _caller(session: Session) -> Caller:
    return _CALLERS.setdefault(session, Caller(session))


def _deny(message: str) -> PermissionResultDeny:
    return PermissionResultDeny(message=message)
