"""What a tool is, and the two ways to make one: `define_tool` and `@tool`."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

import anyio
import anyio.to_thread
from pydantic import BaseModel

from holdfast.errors import Cancelled, Internal, ToolError
from holdfast.messages import ToolResult
from holdfast.tool.arguments import Arguments
from holdfast.tool.context import Factory, Interruption, ToolContext
from holdfast.tool.depends import DependencyKey, Resolver
from holdfast.tool.docstring import parse_docstring
from holdfast.tool.render import NotJson, render
from holdfast.tool.signature import (
    Signature,
    ToolDefinitionError,
    definition_faults,
    name_faults,
    output_of,
    read_execute,
    read_input,
    read_tool,
)

__all__ = ["Tool", "ToolDefinition", "ToolDefinitionError", "Traits", "define_tool", "in_thread", "tool"]

T = TypeVar("T")
Effect: TypeAlias = Literal["read", "write", "run"]
# cached: over the cap it is stored and cut; head-tail: the same, cut in the middle; bounded: the tool bounds it.
Output: TypeAlias = Literal["cached", "head-tail", "bounded"]
RawArguments: TypeAlias = str | bytes | Mapping[str, Any] | None

# How long a cancelled sync tool may take to notice before its thread is left to itself.
GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What a model is told of a tool."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Traits:
    """What a tool declares of itself; the corridor and the edges act on it, never on a name."""

    title: str | None = None
    effect: Effect | None = None
    subject: str | None = None  # the argument the rules judge: a path, or for `run` a shell line
    output: Output = "cached"
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    ends: bool = False  # a successful call completes the session's task
    face: str | None = None  # of a JSON answer: the field that a person at a terminal reads
    output_schema: dict[str, Any] | None = None


class Declared(TypedDict, total=False):
    """The words of Traits as keywords of `tool` and `define_tool`."""

    title: str | None
    effect: Effect | None
    subject: str | None
    output: Output
    destructive: bool
    idempotent: bool
    open_world: bool
    ends: bool
    face: str | None


@dataclass(frozen=True, eq=False)
class Tool:
    """A name, words for the model, a schema, and the way to run it."""

    definition: ToolDefinition
    traits: Traits
    arguments: Arguments = field(repr=False)
    needs: Mapping[str, DependencyKey[Any]] = field(repr=False)
    invoke: Callable[[BaseModel, ToolContext, dict[str, Any]], Awaitable[Any]] = field(repr=False)
    bound: Mapping[str, Factory] = field(default_factory=dict[str, Factory], repr=False)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def description(self) -> str:
        return self.definition.description

    def bind(self, factories: Mapping[str, Factory]) -> Tool:
        """The same tool with dependencies given. Overrides of a session or context still come first."""
        return replace(self, bound={**self.bound, **factories})

    def describe(self, description: str) -> Tool:
        """The same tool with other words for the model."""
        return replace(self, definition=replace(self.definition, description=description))

    async def execute_raw(self, raw_json: RawArguments, ctx: ToolContext) -> ToolResult:
        """Parse, validate, run, render. Raises only ToolError, unless the caller is cancelled."""
        return await answered(self._execute(raw_json, ctx), f"`{self.name}`", ctx.logger)

    async def _execute(self, raw_json: RawArguments, ctx: ToolContext) -> ToolResult:
        return render(await self.run(self.arguments.parse(raw_json), ctx.for_call()))

    async def run(self, arguments: BaseModel, ctx: ToolContext) -> Any:
        """Injection and the tool itself. What lived for this call is closed before this returns."""
        resolver = Resolver(ctx, self.bound)
        ctx.attach(resolver)
        try:
            injected = await resolver.fill(self.needs) if self.needs else {}
            value = await self.invoke(arguments, ctx, injected)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                ctx.cancel()
            if (opened := resolver.end()) is not None:
                await opened.close(error)
            raise
        if (opened := resolver.end()) is not None:
            await opened.close()
        return value


async def answered(step: Awaitable[T], what: str, logger: logging.Logger, so: str = "") -> T:
    """Awaits a step that may raise anything; raises only ToolError, unless it is this call that was cancelled."""
    try:
        return await step
    except (ToolError, Interruption, KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise Cancelled(f"{what} waited for something that was cancelled") from error
    except BaseException as fault:  # a tool may raise anything; whoever called it goes on
        raise _told(fault, what, logger, so) from fault


def _told(fault: BaseException, what: str, logger: logging.Logger, so: str) -> ToolError:
    """An exception nobody meant: logged whole, told in a word, so that no path of the host leaks."""
    if answers := _answers(fault):
        return answers[0]
    logger.error("%s failed", what, exc_info=fault)
    if isinstance(fault, NotJson):
        return Internal(f"{what} returned a value that JSON can't hold ({fault}); the log has the traceback")
    kind = type(fault).__name__
    return Internal(f"{what} failed with {kind}{so}; the log has the traceback", details={"type": kind})


def _answers(fault: BaseException) -> list[ToolError]:
    """What the tasks inside a tool answered, if all that went wrong in them were answers."""
    if isinstance(fault, ToolError):
        return [fault]
    if not isinstance(fault, BaseExceptionGroup):
        return []
    each = [_answers(one) for one in cast("BaseExceptionGroup[BaseException]", fault).exceptions]
    return [one for answers in each for one in answers] if all(each) else []


def define_tool(
    *,
    name: str,
    description: str,
    input: type[BaseModel],
    execute: Callable[..., Any],
    parameters: dict[str, Any] | None = None,
    output_schema: dict[str, Any] | None = None,
    **declared: Unpack[Declared],
) -> Tool:
    """A tool from data and a function, sync or async: `execute(input)` or `execute(input, ctx)`, with `Depends`
    parameters after these if it needs any."""
    found = read_execute(execute)
    read_input(found, input)
    traits = Traits(output_schema=output_schema, **declared)
    body = partial(_invoke, execute, False, found.context, _is_async(execute))
    return _made(ToolDefinition(name, description, parameters or {}), traits, found, body)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: dict[str, Any] | None = None,
    output_schema: bool | dict[str, Any] = False,
    **declared: Unpack[Declared],
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: dict[str, Any] | None = None,
    output_schema: bool | dict[str, Any] = False,
    **declared: Unpack[Declared],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a typed function: its name, docstring, parameters and defaults are the definition."""

    def make(function: Callable[..., Any]) -> Tool:
        words = parse_docstring(inspect.getdoc(function) or "")
        known = name or str(getattr(function, "__name__", ""))
        found = read_tool(function, known, words)
        shape, faults = output_of(function) if output_schema is True else (output_schema or None, [])
        found.faults += faults
        body = partial(_invoke, function, True, found.context, _is_async(function))
        definition = ToolDefinition(known, description or words.summary, parameters or {})
        return _made(definition, Traits(output_schema=shape, **declared), found, body)

    return make if function is None else make(function)


def _made(
    definition: ToolDefinition,
    traits: Traits,
    found: Signature,
    body: Callable[[BaseModel, ToolContext, dict[str, Any]], Awaitable[Any]],
) -> Tool:
    faults = name_faults(definition.name, definition.description) + found.faults
    if found.modelled is not None:
        faults += definition_faults(found.modelled, definition.parameters, traits.subject)
    if faults or found.modelled is None:
        raise ToolDefinitionError(definition.name or "?", faults)
    model, schema = found.modelled.model, found.modelled.schema
    definition = replace(definition, parameters=definition.parameters or schema)
    return Tool(definition, traits, Arguments(model, schema), found.needs, body)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def _invoke(
    function: Callable[..., Any],
    spread: bool,
    context: str | None,
    is_async: bool,
    arguments: BaseModel,
    ctx: ToolContext,
    injected: dict[str, Any],
) -> Any:
    if context is not None:
        injected[context] = ctx
    given, named = ((), {**arguments.__dict__, **injected}) if spread else ((arguments,), injected)
    if is_async:
        return await function(*given, **named)
    value = await in_thread(partial(function, *given, **named), ctx)
    return await value if inspect.isawaitable(value) else value


async def in_thread(function: Callable[[], T], ctx: ToolContext) -> T:
    """Runs a sync function beside the loop. Cancelled, it is told so and given a moment to stop by itself."""
    started, ended = threading.Event(), threading.Event()

    def body() -> T:
        started.set()
        try:
            ctx.check_cancelled()
            return function()
        finally:
            ended.set()

    # A limiter of its own: slow tools never keep another call waiting for a thread.
    limiter = anyio.CapacityLimiter(1)
    try:
        return await anyio.to_thread.run_sync(body, abandon_on_cancel=True, limiter=limiter)
    except anyio.get_cancelled_exc_class():
        ctx.cancel()
        with anyio.move_on_after(GRACE_SECONDS, shield=True):
            while started.is_set() and not ended.is_set():
                await anyio.sleep(0.01)
        raise
