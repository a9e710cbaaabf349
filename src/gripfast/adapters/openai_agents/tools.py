"""The OpenAI Agents SDK: a session as function tools. A call that a rule asks about waits in the run's state."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents import FunctionTool, RunContextWrapper, ToolOutputFileContent, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext

from gripfast.adapters.calls import Caller
from gripfast.adapters.words import base64_of, chosen, data_url, parts_of
from gripfast.call.run import Session
from gripfast.framework.definition import Tool
from gripfast.messages import ImagePart, Part, TextPart, ToolMessage


def tools(session: Session, *, only: Iterable[str] | None = None) -> list[FunctionTool]:
    """The tools of an open session, or only those named, for `Agent(tools=...)`. The caller closes the session."""
    caller = Caller(session)
    return [_function(caller, tool) for tool in chosen(session, only)]


def _function(caller: Caller, tool: Tool) -> FunctionTool:
    it = tool.definition

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        vouched = context.is_tool_approved(it.name, context.tool_call_id) is True
        return _output(await caller.call_as_shown(it.name, arguments, context.tool_call_id, vouched=vouched))

    async def needs_approval(_: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        return await caller.asks(it.name, arguments, call_id)

    return FunctionTool(
        name=it.name,
        description=it.description,
        params_json_schema=it.parameters,
        on_invoke_tool=invoke,
        strict_json_schema=False,
        needs_approval=needs_approval,
    )


def _output(message: ToolMessage) -> Any:
    """The SDK has no error results: to the model an error is a text that says so."""
    return message.content if isinstance(message.content, str) else [_part(one) for one in parts_of(message)]


def _part(part: Part) -> Any:
    if isinstance(part, TextPart):
        return ToolOutputText(text=part.text)
    if isinstance(part, ImagePart):
        return ToolOutputImage(image_url=data_url(part))
    return ToolOutputFileContent(file_data=base64_of(part), filename=part.name or "document")
