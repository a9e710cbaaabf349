"""Hooks before and after a call, and the question put to whoever may answer it.

A hook before a call sees validated arguments and says nothing, Deny or Ask. The permission rules are the first one.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from holdfast.call.shown import shown
from holdfast.errors import PolicyDenied
from holdfast.messages import ToolCall, ToolMessage
from holdfast.tool.definition import Tool


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


_BY_RULE = "allow it with a rule in holdfast.toml"


@dataclass(frozen=True, slots=True)
class Ask:
    """`token` is what an "always" would remember: exactly what was shown, nothing wider; `covers` says in words what
    that is. `remedy` is what to do when nobody is there to ask."""

    reason: str
    token: str | None = None
    remedy: str = _BY_RULE
    covers: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is shown to the person, and, answered with yes, what runs: the same object."""

    call: ToolCall
    tool: Tool
    arguments: BaseModel
    reason: str
    may_remember: bool
    remedy: str = _BY_RULE
    covers: str = ""

    def shown(self) -> str:
        """What will run, for a person to read: the subject whole, long other arguments clipped, all of it escaped.
        Then what an "always" would cover, which may be more than this one call."""
        given = self.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)
        subject = self.tool.traits.subject
        lines = [f"{name}: {_told(value, whole=name == subject)}" for name, value in given.items()]
        wider = [f'"Always" covers {shown(self.covers)}.'] if self.may_remember and self.covers else []
        return "\n".join([f"{self.tool.name} wants to run. {shown(self.reason)}", *lines, *wider])


_LONGEST = 4000  # characters of an argument that is not the subject


def _told(value: Any, *, whole: bool) -> str:
    text = shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if whole or len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]} … ({len(text) - _LONGEST} more characters)"


Answer: TypeAlias = bool | Literal["always"]
AskCallback: TypeAlias = Callable[[Question], Awaitable[Answer]]
PreToolCall: TypeAlias = Callable[[ToolCall, Tool, BaseModel], Deny | Ask | Awaitable[Deny | Ask | None] | None]
PostToolCall: TypeAlias = Callable[
    [ToolCall, Tool | None, ToolMessage], ToolMessage | Awaitable[ToolMessage | None] | None
]


class Gate:
    """Runs the hooks before a call, in order; the first word other than yes decides."""

    __slots__ = ("_always", "_ask", "hooks")

    def __init__(self, hooks: tuple[PreToolCall, ...], ask: AskCallback | None) -> None:
        self.hooks = hooks
        self._ask = ask
        self._always: set[str] = set()

    async def pass_through(self, call: ToolCall, tool: Tool, arguments: BaseModel) -> None:
        """Returns if the call may run, raises PolicyDenied if not."""
        for hook in self.hooks:
            word: Any = hook(call, tool, arguments)
            if word is not None and inspect.isawaitable(word):
                word = await word
            if isinstance(word, Deny):
                raise PolicyDenied(word.reason)
            if isinstance(word, Ask):
                await self._settle(word, call, tool, arguments)
            elif word is not None:
                raise PolicyDenied(f"a hook answered {type(word).__name__}, which is not a yes")

    async def _settle(self, word: Ask, call: ToolCall, tool: Tool, arguments: BaseModel) -> None:
        if word.token is not None and word.token in self._always:
            return
        if self._ask is None:
            raise PolicyDenied(f"{word.reason}; it needs approval and there is nobody to ask: {word.remedy}")
        question = Question(call, tool, arguments, word.reason, word.token is not None, word.remedy, word.covers)
        answer = await self._ask(question)
        if answer == "always" and word.token is not None:
            self._always.add(word.token)
        if answer is not True and answer != "always":
            raise PolicyDenied(f"{word.reason}; the user said no")


async def after_call(
    hooks: tuple[PostToolCall, ...], call: ToolCall, tool: Tool | None, message: ToolMessage
) -> ToolMessage:
    """Each hook may replace the message; None leaves it."""
    for hook in hooks:
        changed: Any = hook(call, tool, message)
        if inspect.isawaitable(changed):
            changed = await changed
        if changed is not None and not isinstance(changed, ToolMessage):
            raise TypeError(f"a hook after a call gives a ToolMessage or None, not {type(changed).__name__}")
        message = changed or message
    return message
