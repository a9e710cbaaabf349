"""Microsoft's Agent Framework: a session as function tools, and the middleware that puts its questions."""
# pyright: basic, reportMissingImports=false
# The framework is not a dependency; scripts/peers installs it and tests/adapters run this against it.

from __future__ import annotations

import uuid
import warnings
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from agent_framework import (
    ChatContext,
    ChatMiddleware,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
    MiddlewareBundle,
    MiddlewareTermination,
)

from gripfast.adapters.calls import Caller, payload, shown_once
from gripfast.adapters.words import chosen, parts_of
from gripfast.call.hooks import Question
from gripfast.call.run import Session
from gripfast.errors import ToolError
from gripfast.framework.definition import Tool
from gripfast.messages import Part, TextPart, ToolMessage

__all__ = ["AgentFrameworkTool", "AskMiddleware", "SendMiddleware", "middleware", "tools"]

# What was asked about a session's calls, shared by its tools and its middleware.
_CALLERS: WeakKeyDictionary[Session, Caller] = WeakKeyDictionary()
Unsent: TypeAlias = dict[str, dict[str, Content]]
"""Results since the last request to the model: of each of the framework's sessions, by the id of the call."""
_REMEDY = "give the agent `middleware=[middleware(session)]`"


def tools(session: Session, *, only: Iterable[str] | None = None) -> list[FunctionTool]:
    """The tools of an open session, or only those named, for `Agent(tools=...)`. The caller closes the session.

    Give the agent `middleware=[middleware(session)]` as well; without it a call that a rule asks about is refused.
    """
    return [AgentFrameworkTool(_caller(session), tool) for tool in chosen(session, only)]


def middleware(session: Session) -> MiddlewareBundle:
    """Turns a call that a rule asks about into an approval request, call by call. What the other calls of that turn
    gave goes to the model with its answer, also where the model's server keeps the conversation."""
    unsent: Unsent = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that bundles are experimental, which users can do nothing about
        return MiddlewareBundle([AskMiddleware(_caller(session), unsent), SendMiddleware(unsent)])


def _caller(session: Session) -> Caller:
    return _CALLERS.setdefault(session, Caller(session))


class AgentFrameworkTool(FunctionTool):
    """One tool of a session."""

    def __init__(self, caller: Caller, tool: Tool) -> None:
        it = tool.definition

        async def call(ctx: FunctionInvocationContext, **arguments: Any) -> list[Content]:
            approved = _is_approved(ctx)
            message = await caller.call_as_shown(it.name, arguments, _id(ctx), vouched=approved, remedy=_REMEDY)
            return _contents(message)

        super().__init__(
            name=it.name,
            description=it.description,
            func=call,
            input_model=it.parameters,
            approval_mode="never_require",
            result_parser=_as_it_is,
        )


class AskMiddleware(FunctionMiddleware):
    """Asks before a call runs; what was approved comes through here again, with the approval."""

    def __init__(self, caller: Caller, unsent: Unsent) -> None:
        self._caller = caller
        self._unsent = unsent

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        if not isinstance(context.function, AgentFrameworkTool) or _is_approved(context):
            return await call_next()
        questions = await self._questions(context)
        if not questions:
            await call_next()
            return self._ran(context)
        context.result = _request(context, questions)
        raise MiddlewareTermination("approval required")

    def _ran(self, context: FunctionInvocationContext) -> None:
        if context.session is not None:
            given = Content.from_function_result(call_id=_id(context), result=context.result)
            self._unsent.setdefault(context.session.session_id, {})[_id(context)] = given

    async def _questions(self, context: FunctionInvocationContext) -> list[Question]:
        try:
            return await self._caller.questions(context.function.name, _arguments(context), _id(context))
        except ToolError:
            return []  # it is refused whatever the answer; the call itself says why


class SendMiddleware(ChatMiddleware):
    """Where the server keeps the conversation, the framework sends only the answer of the call that waited. A server
    wants the results of all calls of the turn."""

    def __init__(self, unsent: Unsent) -> None:
        self._unsent = unsent

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        ran = self._unsent.pop(context.session.session_id, {}) if context.session is not None else {}
        sent = [one for message in context.messages for one in message.contents if one.type == "function_result"]
        missing = [given for id, given in ran.items() if id not in {one.call_id for one in sent}]
        if sent and missing:
            context.messages = [*context.messages, Message(role="tool", contents=missing)]
        await call_next()


def _request(context: FunctionInvocationContext, questions: list[Question]) -> Content:
    id = str(context.metadata.get("function_call_occurrence_id") or _id(context))
    function_call = Content.from_function_call(
        call_id=_id(context), name=context.function.name, arguments=_arguments(context)
    )
    function_call.id = id
    shown = "\n\n".join(shown_once(question) for question in questions)
    return Content.from_function_approval_request(
        id=id, function_call=function_call, additional_properties={**payload(questions[0]), "shown": shown}
    )


def _arguments(context: FunctionInvocationContext) -> dict[str, Any]:
    given: Any = context.arguments
    return dict(given) if isinstance(given, dict) else given.model_dump(exclude_unset=True)


def _id(context: FunctionInvocationContext) -> str:
    return str(context.metadata.get("call_id") or uuid.uuid4().hex)


def _is_approved(context: FunctionInvocationContext) -> bool:
    response = context.metadata.get("approval_response")
    return response is not None and bool(getattr(response, "approved", False))


def _as_it_is(value: Any) -> list[Content]:
    return value


def _contents(message: ToolMessage) -> list[Content]:
    """The framework has no error results short of an exception, which would hide the message from the model."""
    return [_content(part) for part in parts_of(message)]


def _content(part: Part) -> Content:
    return (
        Content.from_text(part.text) if isinstance(part, TextPart) else Content.from_data(part.data, part.media_type)
    )
