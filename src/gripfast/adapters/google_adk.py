"""Google's ADK: a session as a toolset. A call that a rule asks about waits as one of its tool confirmations."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools import ToolContext
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from gripfast.adapters.calls import Caller, Paused, decided, payload
from gripfast.adapters.words import chosen, parts_of
from gripfast.call.hooks import Answer
from gripfast.call.run import Session
from gripfast.framework.definition import ToolDefinition
from gripfast.messages import TextPart, ToolMessage

__all__ = ["AdkTool", "AdkToolset", "toolset"]


def toolset(session: Session, *, only: Iterable[str] | None = None, **options: Any) -> AdkToolset:
    """The tools of an open session, or only those named, for `LlmAgent(tools=[...])`; `options` are a BaseToolset's.
    The caller closes the session.

    A confirmation has the question as its hint and `{"tool", "arguments", "shown", "reason"}` as its payload;
    confirmed with the payload "always", it is not asked again.
    """
    return AdkToolset(session, only, **options)


class AdkToolset(BaseToolset):
    """All tools share one memory of what was asked."""

    def __init__(self, session: Session, only: Iterable[str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        caller = Caller(session)
        self._tools = [AdkTool(caller, tool.definition) for tool in chosen(session, only)]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return [tool for tool in self._tools if self._is_tool_selected(tool, readonly_context)]

    async def close(self) -> None:
        """The session stays open: whoever opened it closes it."""


class AdkTool(BaseTool):
    """One tool of a session."""

    def __init__(self, caller: Caller, definition: ToolDefinition) -> None:
        super().__init__(name=definition.name, description=definition.description)
        self._caller = caller
        self._definition = definition

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._definition.parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        id, decision = tool_context.function_call_id or "", _decision(tool_context)
        try:
            return _result(await self._caller.call(self._definition.name, args, id, decision))
        except Paused as paused:
            question = paused.question
            tool_context.request_confirmation(hint=question.shown(), payload=payload(question))
            tool_context.actions.skip_summarization = True
            return {"error": "this call waits for a confirmation; it has not run"}


def _decision(tool_context: ToolContext) -> Answer | None:
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        return None
    asked_no_more = decided(confirmation.payload)[0] == "always"
    return confirmation.confirmed and ("always" if asked_no_more else True)


def _result(message: ToolMessage) -> dict[str, Any]:
    if message.is_error:
        return {"error": message.text}
    if isinstance(message.content, str):
        return {"result": message.content}
    texts = [part.text for part in parts_of(message) if isinstance(part, TextPart)]
    media = [
        types.Part.from_bytes(data=part.data, mime_type=part.media_type)
        for part in parts_of(message)
        if not isinstance(part, TextPart)
    ]
    return {"result": "\n".join(texts), "parts": media}
