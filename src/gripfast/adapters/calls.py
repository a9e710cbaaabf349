"""A framework's call through the walk of a session: its questions become a pause that the framework can resume.

Below every adapter. It knows no framework: an adapter gives the call and what has been decided about it, and gets the
message, or `Paused` with the question to show.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import replace
from typing import Any, cast

from gripfast.call.hooks import Answer, AskCallback, Question
from gripfast.call.run import Session, run_call
from gripfast.errors import PolicyDenied, ToolError
from gripfast.framework.context import Interruption
from gripfast.framework.definition import RawArguments, Tool, only_tool_errors
from gripfast.messages import ToolCall, ToolMessage

_REMEMBERED = 4096
"""Paused calls whose questions are remembered until they are resumed; the oldest go first."""


class Paused(Interruption):
    """A call that waits for a decision. Nothing has been done; call again with the decision to go on."""

    def __init__(self, question: Question) -> None:
        self.question = question


class Caller:
    """Runs the calls of one session for a framework, and remembers which questions a person was shown."""

    def __init__(self, session: Session) -> None:
        self.session = checked(session)
        self._shown: OrderedDict[str, list[set[str]]] = OrderedDict()  # several of calls that can't be told apart

    async def call(self, name: str, arguments: RawArguments, id: str, decision: Answer | None = None) -> ToolMessage:
        """One call. `decision` is what was decided about the questions shown before: None when none were.

        Raises Paused for a question nobody was shown yet. A session with an `ask` of its own asks there instead.
        """

        async def ask(question: Question) -> Answer:
            key = _key(id, name, arguments)
            if decision is not None and self._was_shown(key, question):
                return decision
            self._show(key, [question])
            raise Paused(question)

        message = await self.call_asking(name, arguments, id, ask)
        self._taken(id, name, arguments)
        return message

    async def call_asking(self, name: str, arguments: RawArguments, id: str, ask: AskCallback) -> ToolMessage:
        """For frameworks that can be asked in the middle of a call: `ask` answers, or raises an Interruption."""
        own = self.session.gate.can_ask
        return await run_call(self.session, ToolCall(id, name, arguments), ask=None if own else ask)

    async def call_as_shown(
        self, name: str, arguments: RawArguments, id: str, *, vouched: bool = False, remedy: str = ""
    ) -> ToolMessage:
        """For frameworks that decide before the call: what `questions` has shown is approved by now; anything else is
        refused. `vouched` says that the framework itself knows of an approval, given in another process perhaps;
        `remedy` what else to do where nobody was asked."""
        ask = self._as_shown(self._taken(id, name, arguments), vouched, remedy)
        return await self.call_asking(name, arguments, id, ask)

    async def value_as_shown(self, tool: Tool, arguments: RawArguments, id: str) -> Any:
        """The same for a tool whose value is wanted, not a message."""
        ask = None if self.session.gate.can_ask else self._as_shown(self._taken(id, tool.name, arguments))
        return await self.session.value(tool, arguments, id=id, ask=ask)

    def _taken(self, id: str, name: str, arguments: RawArguments) -> set[str] | None:
        """The questions shown about a call, which is made now; None where nothing is known of it."""
        return self._drop(_key(id, name, arguments)) if self._shown else None

    def _drop(self, key: str) -> set[str] | None:
        waiting = self._shown.get(key)
        if waiting is None:
            return None
        first = waiting.pop(0)
        if not waiting:
            del self._shown[key]
        return first

    def _as_shown(self, shown: set[str] | None, vouched: bool = False, remedy: str = "") -> AskCallback:
        async def ask(question: Question) -> Answer:
            if vouched if shown is None else question.shown() in shown:
                return True
            raise nobody_to_ask(question, remedy)

        return ask

    async def questions(self, tool: str | Tool, arguments: RawArguments, id: str) -> list[Question]:
        """What would be asked before a call runs; from now on it counts as shown. Without an `id`, each time is about
        another call. Raises ToolError where the call would be refused whatever the answer."""
        if self.session.gate.can_ask:
            return []
        tool = self.session.find(tool) if isinstance(tool, str) else tool
        found: list[Question] = []

        async def note(question: Question) -> Answer:
            found.append(question)
            return True

        call = ToolCall(id, tool.name, arguments)
        await only_tool_errors(self.session.judge(call, tool, note), f"`{tool.name}`", self.session.logger)
        if found:
            self._show(_key(id, tool.name, arguments), found, again=not id)
        return found

    async def asks(self, tool: str | Tool, arguments: RawArguments, id: str) -> bool:
        """Whether a call needs somebody's yes. One that is refused anyway needs none: its answer says why."""
        try:
            return bool(await self.questions(tool, arguments, id))
        except ToolError:
            return False

    def forget(self, tool: str, arguments: RawArguments, id: str) -> None:
        """What was shown about a call was answered with no."""
        self._drop(_key(id, tool, arguments))

    def _was_shown(self, key: str, question: Question) -> bool:
        """A call this object has never seen was paused in another process; who resumed it vouches for it."""
        return key not in self._shown or any(question.shown() in shown for shown in self._shown[key])

    def _show(self, key: str, questions: list[Question], *, again: bool = False) -> None:
        waiting = self._shown.setdefault(key, [])
        if again or not waiting:
            waiting.append(set())
        waiting[-1].update(question.shown() for question in questions)
        while len(self._shown) > _REMEMBERED:
            self._shown.popitem(last=False)


def checked(session: object) -> Session:
    """The session, if it is one. Raises TypeError where something else was given, before anything is made of it."""
    if not isinstance(session, Session):
        raise TypeError(f"a session is needed, as `open_session` gives it, not {session!r}")
    return session


def nobody_to_ask(question: Question, remedy: str = "") -> PolicyDenied:
    """Why a call can't run that needs approval where there is no way to ask."""
    remedies = f"{question.remedy}, or {remedy}" if remedy else question.remedy
    return PolicyDenied(f"{question.reason}; it needs approval and nobody was asked: {remedies}")


def shown_once(question: Question) -> str:
    """A question as text, for a framework that has no way to answer "always"."""
    return replace(question, may_remember=False).shown()


def payload(question: Question) -> dict[str, Any]:
    """A question as plain data, for the pause of any framework."""
    arguments = question.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {
        "tool": question.tool.name,
        "arguments": arguments,
        "shown": question.shown(),
        "reason": question.reason,
    }


def settled(question: Question, value: object) -> Answer:
    """A person's answer to a question; a no that came with a message says it."""
    answer, message = decided(value)
    if answer is False and message:
        raise PolicyDenied(f"{question.reason}; the user said no: {message}")
    return answer


def decided(value: object) -> tuple[Answer, str]:
    """What a person's answer means, in any of the forms frameworks carry it in, and the message that came with it.
    Whatever is not clearly a yes is a no."""
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        return decided(given.get("decision"))[0], str(given.get("message") or "")
    if value is True or value == "approve":
        return True, ""
    return ("always", "") if value == "always" else (False, "")


def _key(id: str, name: str, arguments: RawArguments) -> str:
    """The same for the same call, whether its arguments came as text or as an object."""
    if isinstance(arguments, str | bytes):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {"": str(arguments)}
    text = json.dumps([id, name, arguments or {}], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
