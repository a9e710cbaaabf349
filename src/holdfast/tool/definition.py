"""What a tool is, and the two ways to make one: `define_tool` and `@tool`."""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args, get_origin, overload

import anyio
import anyio.to_thread
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, create_model
from pydantic.fields import FieldInfo

from holdfast.errors import Cancelled, Internal, ToolError
from holdfast.messages import ToolResult
from holdfast.tool.arguments import Arguments
from holdfast.tool.context import Factory, ToolContext
from holdfast.tool.depends import DependencyKey, Resolver, depends_of, graph_faults
from holdfast.tool.docstring import Docstring, parse_docstring
from holdfast.tool.hints import hints_of
from holdfast.tool.render import render
from holdfast.tool.schema import input_schema, output_schema

Effect: TypeAlias = Literal["read", "write", "run"]
# cached: over the cap it is stored and cut; head-tail: the same, cut in the middle; bounded: the tool bounds it.
Output: TypeAlias = Literal["cached", "head-tail", "bounded"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
# How long a cancelled sync tool may take to notice before its thread is left to itself.
GRACE_SECONDS = 2.0


class ToolDefinitionError(TypeError):
    """A function or model that can't be a tool. Raised where it is defined, with every fault."""

    def __init__(self, name: str, faults: list[str]) -> None:
        self.faults = faults
        super().__init__(f"`{name}` can't be a tool: " + "; ".join(faults))


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
    output_schema: dict[str, Any] | None = None


@dataclass(frozen=True)
class Tool:
    """A name, words for the model, a schema, and the way to run it."""

    definition: ToolDefinition
    traits: Traits
    arguments: Arguments = field(repr=False)
    needs: Mapping[str, DependencyKey[Any]] = field(repr=False)
    invoke: Callable[[BaseModel, ToolContext, dict[str, Any]], Awaitable[Any]] = field(repr=False)
    bound: Mapping[str, Factory] = field(default_factory=dict[str, Factory], repr=False)
    always_resolves: bool = field(default=False, repr=False)

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

    async def run(self, arguments: BaseModel, ctx: ToolContext) -> Any:
        """Injection and the tool itself. What lived for this call is closed before this returns."""
        try:
            if not self.needs and not self.always_resolves:
                return await self.invoke(arguments, ctx, {})
            return await self._run_injected(arguments, ctx)
        except asyncio.CancelledError as error:
            ctx.cancel()
            if _is_our_own(error):
                raise
            raise Cancelled(f"`{self.name}` waited for something that was cancelled") from error

    async def _run_injected(self, arguments: BaseModel, ctx: ToolContext) -> Any:
        resolver = Resolver(ctx, self.bound)
        ctx.attach(resolver)
        try:
            value = await self.invoke(arguments, ctx, await resolver.fill(self.needs))
        except BaseException as error:
            await resolver.close(error)
            raise
        finally:
            ctx.attach(None)
        await resolver.close()
        return value

    async def execute_raw(self, raw_json: str | bytes | Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        """Parse, validate, run, render. Raises only ToolError, unless the caller is cancelled."""
        arguments = self.arguments.parse(raw_json)
        try:
            return render(await self.run(arguments, ctx), self.name)
        except ToolError:
            raise
        except (Exception, SystemExit) as fault:
            raise unexpected(self.name, fault, ctx.logger) from fault


def _is_our_own(_: asyncio.CancelledError) -> bool:
    """Whether it is this call that was cancelled, and not something the tool was waiting for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def unexpected(name: str, fault: BaseException, logger: logging.Logger) -> ToolError:
    """An exception nobody meant: logged whole, told in a word, so that no path of the host leaks."""
    logger.error("tool %s failed", name, exc_info=fault)
    kind = type(fault).__name__
    return Internal(f"`{name}` failed with {kind}; the log has the traceback", details={"type": kind})


def define_tool(
    *,
    name: str,
    description: str,
    input: type[BaseModel],
    execute: Callable[..., Any],
    parameters: dict[str, Any] | None = None,
    traits: Traits | None = None,
) -> Tool:
    """A tool from data and a function: `execute(input)` or `execute(input, ctx)`, sync or async."""
    model = _closed(input)
    faults = _name_faults(name, description)
    takes_ctx = len(inspect.signature(execute).parameters) > 1
    call = partial(_invoke_with_model, execute, takes_ctx, _is_async(execute))
    if faults:
        raise ToolDefinitionError(name, faults)
    definition = ToolDefinition(name, description, parameters or input_schema(model))
    return Tool(definition, traits or Traits(), Arguments(model), {}, call, always_resolves=takes_ctx)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    effect: Effect | None = None,
    subject: str | None = None,
    output: Output = "cached",
    destructive: bool = False,
    idempotent: bool = False,
    open_world: bool = False,
    ends: bool = False,
    output_schema: bool | dict[str, Any] = False,
    parameters: dict[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: dict[str, Any] | None = None,
    output_schema: bool | dict[str, Any] = False,
    **traits: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a typed function: its name, docstring, parameters and defaults are the definition."""

    def make(function: Callable[..., Any]) -> Tool:
        return _tool_of(function, name, description, parameters, output_schema, Traits(**traits))

    return make if function is None else make(function)


def _tool_of(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    parameters: dict[str, Any] | None,
    wants_output_schema: bool | dict[str, Any],
    traits: Traits,
) -> Tool:
    name = name or function.__name__
    words = parse_docstring(inspect.getdoc(function) or "")
    reading = _Reading(function, words)
    faults = _name_faults(name, description or words.summary) + reading.faults
    if traits.subject is not None and traits.subject not in reading.fields:
        faults.append(f"subject `{traits.subject}` is not one of its parameters")
    if faults:
        raise ToolDefinitionError(name, faults)
    model = create_model(name, __config__=_CLOSED, **cast("dict[str, Any]", reading.fields))
    if wants_output_schema:
        shape = wants_output_schema if isinstance(wants_output_schema, dict) else output_schema(reading.returns)
        traits = replace(traits, output_schema=shape)
    definition = ToolDefinition(name, description or words.summary, parameters or input_schema(model))
    call = partial(_invoke_with_arguments, function, reading.context, _is_async(function))
    return Tool(
        definition, traits, Arguments(model), reading.needs, call, always_resolves=reading.context is not None
    )


_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=False, protected_namespaces=())


def _closed(model: type[BaseModel]) -> type[BaseModel]:
    """The model with unknown arguments refused, unless it says itself what to do with them."""
    if "extra" in model.model_config:
        return model
    closed = create_model(model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__)
    closed.model_config = {**model.model_config, "extra": "forbid"}
    closed.model_rebuild(force=True)
    return closed


def _name_faults(name: str, description: str) -> list[str]:
    faults: list[str] = []
    if not _NAME.match(name):
        faults.append(f"name {name!r} must be 1 to 64 letters, digits, `_` or `-`")
    if not description.strip():
        faults.append("no description: write a docstring, the model chooses by it")
    return faults


class _Reading:
    """A signature, read once: argument fields, injected parameters, and everything that is wrong with it."""

    def __init__(self, function: Callable[..., Any], words: Docstring) -> None:
        self.fields: dict[str, tuple[Any, FieldInfo]] = {}
        self.needs: dict[str, DependencyKey[Any]] = {}
        self.context: str | None = None
        self.faults: list[str] = []
        self.returns: Any = Any
        hints = self._hints(function)
        self.returns = hints.pop("return", Any)
        for parameter in inspect.signature(function).parameters.values():
            self._read(parameter, hints, words)
        self.faults += [
            f"the docstring describes `{entry}`, which is not a parameter"
            for entry in words.arguments
            if entry not in inspect.signature(function).parameters
        ]
        self.faults += graph_faults(self.needs)

    def _hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        try:
            return hints_of(function)
        except (NameError, TypeError, AttributeError) as fault:
            self.faults.append(f"an annotation can't be evaluated: {fault}")
            return {}

    def _read(self, parameter: inspect.Parameter, hints: dict[str, Any], words: Docstring) -> None:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            self.faults.append(f"`{parameter}`: a tool's parameters are named, one by one")
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            self.faults.append(f"`{name}` is positional-only: arguments come by name")
        elif name not in hints:
            if not self.faults or "can't be evaluated" not in self.faults[0]:
                self.faults.append(f"`{name}` has no type annotation")
        elif hints[name] is ToolContext:
            self.context = name
        elif (key := depends_of(hints[name])) is not None:
            self.needs[name] = key
        else:
            self._argument(parameter, hints[name], words)

    def _argument(self, parameter: inspect.Parameter, annotation: Any, words: Docstring) -> None:
        fault = _type_fault(annotation)
        if fault:
            self.faults.append(f"`{parameter.name}`: {fault}")
            return
        default = ... if parameter.default is parameter.empty else parameter.default
        said = None if _describes(annotation) else words.arguments.get(parameter.name)
        info = Field(default=default, description=said) if said else Field(default=default)
        self.fields[parameter.name] = (_numbers_only(annotation), info)


def _type_fault(annotation: Any) -> str | None:
    try:
        TypeAdapter(annotation).json_schema()
    except Exception as fault:  # noqa: BLE001 - pydantic and the types' own hooks raise many kinds here
        return f"its type has no JSON Schema ({str(fault).splitlines()[0]})"
    return None


def _describes(annotation: Any) -> bool:
    extras = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return any(isinstance(extra, FieldInfo) and extra.description for extra in extras)


def _numbers_only(annotation: Any) -> Any:
    """`true` is not a number, though Python has it as one."""
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    if bare not in (int, float, int | None, float | None):
        return annotation
    return Annotated[annotation, BeforeValidator(_not_bool, json_schema_input_type=annotation)]


def _not_bool(value: Any) -> Any:
    if value is True or value is False:
        raise ValueError("must be a number")
    return value


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(inspect.unwrap(function))


async def _invoke_with_arguments(
    function: Callable[..., Any],
    context: str | None,
    is_async: bool,
    arguments: BaseModel,
    ctx: ToolContext,
    injected: dict[str, Any],
) -> Any:
    if context is not None:
        injected[context] = ctx
    if is_async:
        return await function(**arguments.__dict__, **injected)
    return await in_thread(partial(function, **arguments.__dict__, **injected), ctx)


async def _invoke_with_model(
    function: Callable[..., Any],
    takes_ctx: bool,
    is_async: bool,
    arguments: BaseModel,
    ctx: ToolContext,
    injected: dict[str, Any],
) -> Any:
    call = partial(function, arguments, ctx) if takes_ctx else partial(function, arguments)
    if is_async:
        return await call()
    value = await in_thread(call, ctx)
    return await value if inspect.isawaitable(value) else value


async def in_thread(function: Callable[[], Any], ctx: ToolContext) -> Any:
    """Runs a sync tool beside the loop. Cancelled, it is told so and given a moment to stop by itself."""
    ended = threading.Event()

    def body() -> Any:
        try:
            return function()
        finally:
            ended.set()

    try:
        return await anyio.to_thread.run_sync(body, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        ctx.cancel()
        with anyio.move_on_after(GRACE_SECONDS, shield=True):
            while not ended.is_set():
                await anyio.sleep(0.01)
        raise
