"""pydantic-ai: a session as a toolset. A call that a rule asks about waits as one of its deferred approvals."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_ai import ApprovalRequired, BinaryContent, ModelRetry, RunContext, ToolFailed, ToolReturn
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from gripfast.adapters.calls import Caller, Paused, checked, payload, shown_once
from gripfast.adapters.words import chosen, facts, parts_of
from gripfast.call.run import Session
from gripfast.framework.definition import Tool
from gripfast.messages import Part, TextPart, ToolMessage

__all__ = ["SessionToolset", "toolset"]

# The session validates; here an object is enough.
_ANY_OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
# What the model can repair by itself; everything else is a failure it has to take into account.
_REPAIRABLE = frozenset({"INVALID_ARGUMENT", "INVALID_REGEX"})


def toolset(
    session: Session, *, tools: Iterable[str] | None = None, id: str | None = "gripfast", max_retries: int = 5
) -> SessionToolset:
    """The tools of an open session, or those named, for `Agent(toolsets=[...])`. The caller closes the session."""
    return SessionToolset(session, chosen(checked(session), tools), id, max_retries)


class SessionToolset(AbstractToolset[Any]):
    """Every call is a call of the session: validated, judged by its rules, cut and kept as everywhere else."""

    def __init__(self, session: Session, tools: Iterable[Tool], id: str | None, max_retries: int) -> None:
        self._caller = Caller(session)
        self._id = id
        self._tools = {tool.name: self._listed(tool, max_retries) for tool in tools}

    @property
    def id(self) -> str | None:
        return self._id

    def _listed(self, tool: Tool, max_retries: int) -> ToolsetTool[Any]:
        it = tool.definition
        definition = ToolDefinition(name=it.name, parameters_json_schema=it.parameters, description=it.description)
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=max_retries, args_validator=_ANY_OBJECT)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return self._tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        decision = True if ctx.tool_call_approved else None
        try:
            message = await self._caller.call(tool.tool_def.name, tool_args, ctx.tool_call_id or "", decision)
        except Paused as paused:
            question = paused.question
            raise ApprovalRequired(metadata={**payload(question), "shown": shown_once(question)}) from None
        return _returned(message)


def _returned(message: ToolMessage) -> ToolReturn[Any]:
    if message.error is not None:
        raise (ModelRetry if message.error.code in _REPAIRABLE else ToolFailed)(message.text)
    content = message.content if isinstance(message.content, str) else [_part(one) for one in parts_of(message)]
    return ToolReturn(content, metadata=facts(message))


def _part(part: Part) -> str | BinaryContent:
    return part.text if isinstance(part, TextPart) else BinaryContent(part.data, media_type=part.media_type)
