"""What a tool is, and the two ways to make one: `define_tool` and `@tool`."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

import anyio
import anyio.to_thread

from gripfast.errors import Cancelled, Internal, ToolError, shortage_of
from gripfast.framework.context import Factory, Interruption, ToolContext
from gripfast.framework.depends import DependencyKey, Resolver
from gripfast.framework.docstring import parse_docstring
from gripfast.framework.render import NotJson, render
from gripfast.messages import ToolResult
from gripfast.records import dataclass

if TYPE_CHECKING:
    from pydantic import BaseModel

    from gripfast.framework.signature import Signature

__all__ = ["Tool", "ToolDefinition", "ToolDefinitionError", "Traits", "define_tool", "in_thread", "tool"]

T = TypeVar("T")
Effect: TypeAlias = Literal["read", "write", "run"]
# What happens to output over the size limit. cached: stored whole, the end cut off; head-tail: stored whole, cut in
# the middle; bounded: nothing, because the tool limits its own output.
Output: TypeAlias = Literal["cached", "head-tail", "bounded"]
RawArguments: TypeAlias = str | bytes | Mapping[str, Any] | None

# How long a cancelled sync tool may take to notice before its thread is abandoned.
GRACE_SECONDS = 2.0


class ToolDefinitionError(TypeError):
    """The function or model can't become a tool. Raised at definition time, listing every fault."""

    def __init__(self, name: str, faults: list[str]) -> None:
        self.faults = faults
        super().__init__(f"`{name}` can't be a tool: " + "; ".join(faults))


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What the model sees of a tool."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Traits:
    """What a tool declares about itself. Other code acts on these fields, never on a tool's name."""

    title: str | None = None
    effect: Effect | None = None
    subject: str | None = None  # the argument that rules match: a path, several, or for `run` a shell command line
    stands_for: tuple[str, ...] = ()  # tools whose rules that ask or deny also hold for this one
    output: Output = "cached"
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    ends: bool = False  # a successful call completes the session's task
    session_only: bool = False  # affects only the session: no file, no new process
    feeds: str | None = None  # the argument that names a running command, which it gives input that rules can't judge
    profiles: tuple[str, ...] = ()  # the profiles that include this tool, besides the one with all tools
    hides_minima: bool = False  # its definition leaves out the least values of numbers, to be short; errors tell them
    rehearses: str | None = None  # the argument by which a call keeps nothing: an "always" covers only such calls,
    # and nobody is asked about what can't be undone
    needs_person: str | None = None  # the argument that a person must approve; not shown where nobody can be asked
    seldom: tuple[str, ...] = ()  # arguments that only the profile with all tools shows; every profile takes them
    names_sandbox: bool = False  # its description ends with the sandbox that commands run in
    reads_outputs: str | None = None  # how a cut output names this tool: a call with {ref} and {place}
    display_field: str | None = None  # the field of a JSON answer to print for a person at a terminal
    output_schema: dict[str, Any] | None = None
    preview: Callable[..., Any] | None = None  # returns the diff of what a call would change, for whoever approves it
    joins: Callable[..., Any] | None = None  # returns the running work (`Joined`) that a call would only wait for
    refuses: Callable[..., Any] | None = None  # raises what a call would be refused for even after a yes


class TraitOptions(TypedDict, total=False):
    """The fields of Traits as keyword arguments of `tool` and `define_tool`."""

    title: str | None
    effect: Effect | None
    subject: str | None
    stands_for: tuple[str, ...]
    output: Output
    destructive: bool
    idempotent: bool
    open_world: bool
    ends: bool
    session_only: bool
    feeds: str | None
    profiles: tuple[str, ...]
    hides_minima: bool
    rehearses: str | None
    needs_person: str | None
    seldom: tuple[str, ...]
    names_sandbox: bool
    reads_outputs: str | None
    display_field: str | None
    preview: Callable[..., Any] | None
    joins: Callable[..., Any] | None
    refuses: Callable[..., Any] | None


@dataclass(frozen=True, slots=True)
class Joined:
    """Running work that a call would only wait for, so nobody is asked about it. `reason` is for the record. `deps`
    are given to the call, by dependency id: it waits for this work and does nothing else, however late it runs."""

    reason: str
    deps: Mapping[str, Any]


Invoke: TypeAlias = "Callable[[BaseModel, ToolContext, dict[str, Any]], Awaitable[Any]]"


class ReadsArguments(Protocol):
    """Turns what a caller sent into checked arguments; see `framework/arguments.py`. Names in `unlisted` are
    accepted, but no error offers them."""

    def parse(self, raw: RawArguments, /, unlisted: frozenset[str] = frozenset()) -> BaseModel: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """What it takes to run a tool, and the schema of its arguments."""

    parameters: dict[str, Any]
    arguments: ReadsArguments
    needs: Mapping[str, DependencyKey[Any]]
    invoke: Invoke
    context: str | None = None  # the parameter that gets the ToolContext


class _Once:
    """Makes the parts of a tool when they are first needed. The copies of a tool share them."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Parts]) -> None:
        self._make = make
        self._made: Parts | None = None

    def __call__(self) -> Parts:
        if self._made is None:
            self._made = self._make()
        return self._made


class Tool:
    """A name, a description and a schema for the model, and the function to run."""

    __slots__ = ("__weakref__", "_hidden", "_parts", "bound", "description", "function", "name", "traits")

    def __init__(
        self,
        name: str,
        description: str,
        traits: Traits,
        parts: Callable[[], Parts],
        *,
        function: Callable[..., Any] | None = None,
        bound: Mapping[str, Factory] | None = None,
        hidden: frozenset[str] = frozenset(),
    ) -> None:
        self.name = name
        self.description = description
        self.traits = traits
        self.bound: Mapping[str, Factory] = bound or {}
        self.function = function
        self._parts = parts if isinstance(parts, _Once) else _Once(parts)
        self._hidden = hidden

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The function itself, as it was before it became a tool: nothing is checked or injected."""
        if self.function is None:
            raise TypeError(f"the tool `{self.name}` was made without a function; use execute_raw or a Session")
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    @property
    def parts(self) -> Parts:
        return self._parts()

    @property
    def arguments(self) -> ReadsArguments:
        return self._parts().arguments

    def parse(self, raw: RawArguments) -> BaseModel:
        """The checked arguments of a call. Errors offer only names that the definition shows."""
        return self.arguments.parse(raw, self._hidden)

    @property
    def definition(self) -> ToolDefinition:
        """What the model sees of the tool."""
        shown = self._parts().parameters
        if self._hidden:
            members: dict[str, Any] = shown.get("properties", {})
            shown = {**shown, "properties": {name: one for name, one in members.items() if name not in self._hidden}}
        return ToolDefinition(self.name, self.description, shown)

    def bind(self, factories: Mapping[str, Factory]) -> Tool:
        """A copy of the tool with these dependency factories. Overrides of a session or context take precedence."""
        return self._copy(bound={**self.bound, **factories})

    def describe(self, description: str) -> Tool:
        """A copy of the tool with another description."""
        return self._copy(description=description)

    def without(self, *arguments: str) -> Tool:
        """A copy of the tool whose definition does not show these arguments."""
        return self._copy(hidden=self._hidden | set(arguments)) if arguments else self

    def shows(self, argument: str) -> bool:
        """Whether the definition shows an argument that the tool has."""
        return argument not in self._hidden

    def with_parts(self, parts: Callable[[], Parts]) -> Tool:
        """A copy of the tool that is run with other parts, which must behave as its own do."""
        return self._copy(parts=parts)

    def _copy(self, **changed: Any) -> Tool:
        same: dict[str, Any] = {"name": self.name, "description": self.description, "traits": self.traits}
        same |= {"parts": self._parts, "function": self.function, "bound": self.bound, "hidden": self._hidden}
        return Tool(**{**same, **changed})

    async def execute_raw(self, raw_json: RawArguments, ctx: ToolContext) -> ToolResult:
        """Parse, validate, run, render. Raises only ToolError, unless the caller is cancelled."""
        return await only_tool_errors(self._execute(raw_json, ctx), f"`{self.name}`", ctx.logger)

    async def _execute(self, raw_json: RawArguments, ctx: ToolContext) -> ToolResult:
        return render(await self.run(self.parse(raw_json), ctx.for_call()))

    async def run(self, arguments: BaseModel, ctx: ToolContext) -> Any:
        """Resolve dependencies and run the tool. Dependencies of this call are closed before this returns."""
        resolver = Resolver(ctx, self.bound)
        ctx.attach(resolver)
        try:
            parts = self._parts()
            injected = await resolver.fill(parts.needs) if parts.needs else {}
            value = await parts.invoke(arguments, ctx, injected)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                ctx.cancel()
            if (opened := resolver.end()) is not None:
                await opened.close(error)
            raise
        if (opened := resolver.end()) is not None:
            await opened.close()
        return value

    async def preview(self, arguments: BaseModel, ctx: ToolContext) -> str:
        """The diff of what the call would change. The tool's `preview` gets the arguments as one object, and its
        dependencies like a tool; it changes nothing."""
        return str(await self._declared(self.traits.preview, arguments, ctx) or "")

    async def joins(self, arguments: BaseModel, ctx: ToolContext) -> Joined | None:
        """The running work that the call would only wait for, approved when it began; None if the call would do
        something."""
        return await self._declared(self.traits.joins, arguments, ctx)

    async def refuses(self, arguments: BaseModel, ctx: ToolContext) -> None:
        """Raises ToolError if the call would be refused even after a yes."""
        await self._declared(self.traits.refuses, arguments, ctx)

    async def _declared(self, function: Callable[..., Any] | None, arguments: BaseModel, ctx: ToolContext) -> Any:
        if function is None:
            return None
        signature = _signatures().read_execute(function)
        body = invocation(function, signature.context, spread=False)
        aside = Parts({}, self.arguments, signature.needs, body)
        return await self.with_parts(lambda: aside).run(arguments, ctx)


class _RaisedInThread(Exception):
    """Carries out of a thread what asyncio takes as its own when a future raises it: KeyboardInterrupt and SystemExit
    end its loop, GeneratorExit closes the coroutine that waits. In a thread only the tool itself can raise them."""

    def __init__(self, fault: BaseException) -> None:
        self.fault = fault


async def only_tool_errors(step: Awaitable[T], what: str, logger: logging.Logger, consequence: str = "") -> T:
    """Awaits a step that may raise anything. Raises only ToolError, unless this call itself was cancelled."""
    try:
        return await step
    except (ToolError, Interruption, KeyboardInterrupt, GeneratorExit):
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise Cancelled(f"{what} waited for something that was cancelled") from error
    except BaseException as fault:  # a tool may raise anything, and must not take its caller down
        raise _tool_error(fault, what, logger, consequence) from fault


def _tool_error(fault: BaseException, what: str, logger: logging.Logger, consequence: str) -> ToolError:
    """The error to report for an unexpected exception: details go to the log only, so that no host path leaks."""
    if isinstance(fault, _RaisedInThread):
        fault = fault.fault
    if errors := _tool_errors(fault):
        return errors[0]
    logger.error("%s failed", what, exc_info=fault)
    if isinstance(fault, NotJson):
        return Internal(f"{what} returned a value that is not JSON ({fault}); the log has the traceback")
    kind = type(fault).__name__
    shortage = shortage_of(fault)
    why = f": {shortage}; try again later" if shortage else ""
    message = f"{what} failed with {kind}{consequence}{why}; the log has the traceback"
    return Internal(message, retriable=bool(shortage), details={"type": kind})


def _tool_errors(fault: BaseException) -> list[ToolError]:
    """The tool errors in an exception (group); empty if it also holds anything else."""
    if isinstance(fault, ToolError):
        return [fault]
    if not isinstance(fault, BaseExceptionGroup):
        return []
    each = [_tool_errors(one) for one in cast("BaseExceptionGroup[BaseException]", fault).exceptions]
    return [one for errors in each for one in errors] if all(each) else []


def define_tool(
    *,
    name: str,
    description: str,
    input: type[BaseModel],
    execute: Callable[..., Any],
    parameters: dict[str, Any] | None = None,
    output_schema: dict[str, Any] | None = None,
    **options: Unpack[TraitOptions],
) -> Tool:
    """A tool from an input model and a function, sync or async: `execute(input)` or `execute(input, ctx)`,
    followed by `Depends` parameters if it needs any."""
    signature = _signatures().read_execute(execute)
    _signatures().read_input(signature, input)
    traits = Traits(output_schema=output_schema, **options)
    body = invocation(execute, signature.context, spread=False)
    parts = _built(ToolDefinition(name, description, parameters or {}), traits, signature, body)
    return Tool(name, description, traits, lambda: parts, function=execute)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: dict[str, Any] | None = None,
    output_schema: bool | dict[str, Any] = False,
    later: bool = False,
    **options: Unpack[TraitOptions],
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: dict[str, Any] | None = None,
    output_schema: bool | dict[str, Any] = False,
    later: bool = False,
    **options: Unpack[TraitOptions],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool from a typed function: its name, docstring, parameters and defaults are the definition. `later`:
    the parameters are read when they are first needed, and a fault in them is raised then."""

    def make(function: Callable[..., Any]) -> Tool:
        docstring = parse_docstring(inspect.getdoc(function) or "")
        tool_name = name or str(getattr(function, "__name__", ""))
        returned: dict[str, Any] | None
        faults: list[str]
        returned, faults = (
            _signatures().returned_schema(function) if output_schema is True else (output_schema or None, [])
        )
        definition = ToolDefinition(tool_name, description or docstring.summary, parameters or {})
        traits = Traits(output_schema=returned, **options)

        def parts() -> Parts:
            signature = _signatures().read_tool(function, tool_name, docstring)
            signature.faults += faults
            body = invocation(function, signature.context, spread=True)
            return _built(definition, traits, signature, body)

        made = Tool(tool_name, definition.description, traits, parts, function=function)
        if not later:
            _ = made.parts
        return made

    return make if function is None else make(function)


def _signatures() -> Any:
    """The module that reads signatures: it brings pydantic, so it is loaded with the first tool that is built."""
    return importlib.import_module("gripfast.framework.signature")


def _built(definition: ToolDefinition, traits: Traits, signature: Signature, body: Invoke) -> Parts:
    found = _signatures()
    faults = found.name_faults(definition.name, definition.description) + signature.faults
    if signature.arguments is not None:
        faults += found.definition_faults(signature.arguments, definition.parameters, traits.subject)
    if faults or signature.arguments is None:
        raise ToolDefinitionError(definition.name or "?", faults)
    schema = signature.arguments.schema
    shown = definition.parameters or (_without_minima(schema) if traits.hides_minima else schema)
    return Parts(shown, signature.arguments.reader(), signature.needs, body, signature.context)


def _without_minima(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the least values of its numbers, one level deep. They are still checked."""
    members: dict[str, dict[str, Any]] = schema.get("properties", {})
    kept = {name: {key: value for key, value in one.items() if key != "minimum"} for name, one in members.items()}
    return {**schema, "properties": kept} if members else schema


def invocation(function: Callable[..., Any], context: str | None, *, spread: bool) -> Invoke:
    """How a tool's function is called. `spread`: with its arguments by name; else with one object."""
    return partial(_invoke, function, spread, context, _is_async(function))


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
    args, kwargs = ((), {**arguments.__dict__, **injected}) if spread else ((arguments,), injected)
    if is_async:
        return await function(*args, **kwargs)
    value = await in_thread(partial(function, *args, **kwargs), ctx)
    return await value if inspect.isawaitable(value) else value


async def in_thread(function: Callable[[], T], ctx: ToolContext) -> T:
    """Runs a sync function in a thread. On cancellation it is notified and has GRACE_SECONDS to stop by itself."""
    started, ended = threading.Event(), threading.Event()

    def body() -> T:
        started.set()
        try:
            ctx.check_cancelled()
            return function()
        except (KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration, asyncio.CancelledError) as fault:
            raise _RaisedInThread(fault) from fault
        finally:
            ended.set()

    # Each call has its own limiter, so that slow tools never keep another call waiting for a thread.
    limiter = anyio.CapacityLimiter(1)
    try:
        return await anyio.to_thread.run_sync(body, abandon_on_cancel=True, limiter=limiter)
    except anyio.get_cancelled_exc_class():
        ctx.cancel()
        with anyio.move_on_after(GRACE_SECONDS, shield=True):
            while started.is_set() and not ended.is_set():
                await anyio.sleep(0.01)
        raise
