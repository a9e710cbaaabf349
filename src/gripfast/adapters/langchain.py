"""LangChain and LangGraph: a session as tools. A call that a rule asks about interrupts the graph."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

import uuid
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, Literal

from langchain_core.messages import ToolMessage as LangChainMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt
from pydantic import PrivateAttr

from gripfast.adapters.calls import Caller, nobody_to_ask, payload, settled
from gripfast.adapters.loops import in_loop
from gripfast.adapters.words import base64_of, chosen, facts, parts_of
from gripfast.call.hooks import Answer, Question
from gripfast.call.run import Session
from gripfast.framework.context import Interruption
from gripfast.messages import ImagePart, Part, TextPart, ToolMessage

__all__ = ["LangChainTool", "tools"]

# Where a call that fails leaves its facts: LangChain makes the message of an error, and drops what came with it.
_FAILED: ContextVar[dict[str, Any] | None] = ContextVar("gripfast_failed", default=None)


def tools(session: Session, *, only: Iterable[str] | None = None) -> list[BaseTool]:
    """The tools of an open session, or only those named, for `create_agent(tools=...)`. The caller closes it.

    An interrupt has the value `{"tool", "arguments", "shown", "reason"}` and is resumed with True, False, "always" or
    `{"decision": "approve" | "reject", "message": ...}`.
    """
    caller = Caller(session)
    return [
        LangChainTool(caller, name=it.name, description=it.description, args_schema=it.parameters)
        for it in (tool.definition for tool in chosen(session, only))
    ]


class LangChainTool(BaseTool):
    """One tool of a session. Called without await, it runs in a thread with an event loop of its own."""

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True
    _caller: Caller = PrivateAttr()

    def __init__(self, caller: Caller, **fields: Any) -> None:
        super().__init__(**fields)
        self._caller = caller

    def run(self, *given: Any, **options: Any) -> Any:
        token = _FAILED.set(failed := {})
        try:
            return _with_facts(super().run(*given, **options), failed)
        finally:
            _FAILED.reset(token)

    async def arun(self, *given: Any, **options: Any) -> Any:
        token = _FAILED.set(failed := {})
        try:
            return _with_facts(await super().arun(*given, **options), failed)
        finally:
            _FAILED.reset(token)

    def _run(self, /, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        return in_loop(self._arun(**arguments))

    async def _arun(self, /, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        id = f"call_{uuid.uuid4().hex}"
        try:
            message = await self._caller.call_asking(self.name, arguments, id, _ask)
        except _Bubbling as paused:
            raise paused.exception from None
        return _answer(message)


class _Bubbling(Interruption):
    """LangGraph's own interrupt on its way out of a call."""

    def __init__(self, exception: GraphBubbleUp) -> None:
        self.exception = exception


async def _ask(question: Question) -> Answer:
    try:
        return settled(question, interrupt(payload(question)))
    except GraphBubbleUp as exception:
        raise _Bubbling(exception) from None
    except (RuntimeError, KeyError):  # called outside of a graph
        raise nobody_to_ask(question) from None


def _answer(message: ToolMessage) -> tuple[Any, dict[str, Any]]:
    if message.is_error:
        failed = _FAILED.get()
        if failed is not None:
            failed.update(facts(message))
        raise ToolException(message.text)
    content = message.content if isinstance(message.content, str) else [_block(one) for one in parts_of(message)]
    return content, facts(message)


def _with_facts(output: Any, failed: dict[str, Any]) -> Any:
    if failed and isinstance(output, LangChainMessage):
        output.artifact = failed
    return output


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    kind = "image" if isinstance(part, ImagePart) else "file"
    return {"type": kind, "base64": base64_of(part), "mime_type": part.media_type}
