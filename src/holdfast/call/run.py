"""The walk of one call: `run_call` is the table of ARCHITECTURE.md as one function. Read this first."""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import anyio

from holdfast.call.cache import OutputCache
from holdfast.call.hooks import AskCallback, Gate, PostToolCall, PreToolCall, after_call
from holdfast.call.shown import shown
from holdfast.errors import Internal, ToolError, ToolNotFound
from holdfast.messages import ToolCall, ToolMessage
from holdfast.tool.context import LOGGER, Factory, Progress, ToolContext
from holdfast.tool.definition import RawArguments, Tool, answered
from holdfast.tool.depends import Lifetime, wants_of
from holdfast.tool.near import near
from holdfast.tool.providers import Form, definitions
from holdfast.tool.render import render

# What a failed hook means for the call.
DID_NOT_RUN = ", so the call did not run"
HELD_BACK = ", so its answer is held back"


async def run_call(
    session: Session, call: ToolCall, progress: Callable[[Progress], None] | None = None
) -> ToolMessage:
    """One call from door to door. Never raises, except to be cancelled."""
    name = f"`{call.name[:80]}`"
    try:
        message = await answered(_walk(session, call, progress), name, session.logger)
    except ToolError as error:
        message = refusal(call, error)
    if not session.after:
        return message
    try:
        hooks = after_call(session.after, call, session.tools.get(call.name), message)
        return await answered(hooks, f"{name} has ended, but a hook after it", session.logger, HELD_BACK)
    except ToolError as error:
        return refusal(call, error)


async def _walk(session: Session, call: ToolCall, progress: Callable[[Progress], None] | None) -> ToolMessage:
    tool = session.find(call.name)
    arguments = tool.arguments.parse(call.arguments)
    if session.gate.hooks:
        gate = session.gate.pass_through(call, tool, arguments)
        await answered(gate, f"a hook before `{tool.name}`", session.logger, DID_NOT_RUN)
    value = await tool.run(arguments, session.context.for_call(progress))
    result = render(value)
    content, ref = await session.cache.fit(result, output=tool.traits.output)
    session.finished = session.finished or tool.traits.ends
    return ToolMessage(call.id, tool.name, content, output_ref=ref, done=tool.traits.ends)


def refusal(call: ToolCall, error: ToolError) -> ToolMessage:
    if error.code == "POLICY_DENIED":
        content = f"Permission denied: {error.message}"
    else:
        content = f"Error executing tool: {error.code}: {error.message}"
    return ToolMessage(call.id, call.name, content, is_error=True, error=error)


class Session:
    """The tools of one conversation and what they remember: dependencies, rules, cached outputs."""

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        overrides: Mapping[str, Factory] | None = None,
        before: Iterable[PreToolCall] = (),
        after: Iterable[PostToolCall] = (),
        ask: AskCallback | None = None,
        cache: OutputCache | None = None,
        logger: logging.Logger | None = None,
        now: Callable[[], datetime] | None = None,
        id: str | None = None,
    ) -> None:
        self.id = id or uuid.uuid4().hex
        self.tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self.tools:
                raise ValueError(f"two tools are named `{tool.name}`")
            self.tools[tool.name] = tool
        for dependency, factory in (overrides or {}).items():
            if faults := wants_of(factory).faults:
                raise TypeError(f"override `{dependency}` can't be called: {'; '.join(faults)}")
        self.gate = Gate(tuple(before), ask)
        self.after = tuple(after)
        self.cache = cache or OutputCache(session=self.id)
        self.logger = logger or LOGGER
        self.finished = False
        self._lifetime = Lifetime()
        self.context = ToolContext(overrides=overrides, logger=logger, now=now, lifetime=self._lifetime)
        self._numbers = itertools.count(1)

    async def call(
        self,
        name: str,
        arguments: RawArguments = None,
        *,
        id: str | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> ToolMessage:
        """Calls a tool by name, with an object or its JSON text."""
        return await run_call(self, ToolCall(id or f"call_{next(self._numbers)}", name, arguments), progress)

    async def call_all(self, calls: Iterable[ToolCall]) -> list[ToolMessage]:
        """Runs the calls of one turn side by side; the answers come in the order of the calls."""
        calls = list(calls)
        answers: dict[int, ToolMessage] = {}

        async def one(place: int, call: ToolCall) -> None:
            answers[place] = await run_call(self, call)

        async with anyio.create_task_group() as group:
            for place, call in enumerate(calls):
                group.start_soon(one, place, call)
        return [answers[place] for place in range(len(calls))]

    def definitions(self, form: Form = "mcp") -> list[dict[str, Any]]:
        """The tool list as a provider's API takes it."""
        return definitions(self.tools.values(), form)

    def find(self, name: str) -> Tool:
        if self._lifetime.closed:
            raise Internal("the session is closed; open another one")
        tool = self.tools.get(name)
        if tool is None:
            raise ToolNotFound(f"no tool named `{shown(name[:80])}`; {self._near(name)}")
        return tool

    def _near(self, name: str) -> str:
        meant = near(name, self.tools)
        if meant:
            return "did you mean " + " or ".join(f"`{one}`" for one in meant) + "?"
        return f"there are {', '.join(self.tools)}" if self.tools else "this session has no tools"

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends everything the session holds: dependencies, shells, descriptors."""
        await self._lifetime.close()
        await self.cache.close()
