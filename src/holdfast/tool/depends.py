"""Dependency injection: what a tool needs and the model never sees.

A parameter `Annotated[Db, Depends(DB)]` gets the value of `DB = DependencyKey("db", connect)`. The value is looked
for in this order: the context's `deps`, `overrides` by id, what the tool was bound to, the key's own `create`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import (
    AsyncContextDecorator,
    AsyncExitStack,
    ContextDecorator,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field
from types import AsyncGeneratorType, GeneratorType
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args, get_origin

import anyio

from holdfast.tool.context import LOGGER, Factory, ToolContext
from holdfast.tool.hints import Hints, hints_of, remembered

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
Span: TypeAlias = Literal["call", "session"]
# How long closing the dependencies of one call may take before they are left to themselves.
CLOSING_SECONDS = 30.0


@dataclass(frozen=True)
class DependencyKey(Generic[T_co]):
    """A dependency by name. `create` may be sync or async, a generator, or a context manager, and may itself
    have `Depends` parameters. `scope` says how long a value lives. A sync `create` runs on the event loop: make it
    async where it waits for something."""

    id: str
    create: Callable[..., T_co | Awaitable[T_co] | Generator[T_co, Any, Any] | AsyncGenerator[T_co, Any] | Any] = (
        field(repr=False)
    )
    scope: Span = "call"

    def __post_init__(self) -> None:
        hints_of(self.create)  # read here, where names of the function around it can still be seen

    def __hash__(self) -> int:
        return hash(self.id)  # looked up several times a call; equal keys have equal ids


@dataclass(frozen=True)
class Depends:
    """Marks a parameter as injected: `Annotated[Db, Depends(DB)]`, with a key or a plain callable, whose name
    is then the id to override it by."""

    source: DependencyKey[Any] | Callable[..., Any]

    @property
    def key(self) -> DependencyKey[Any]:
        source: Any = self.source
        if isinstance(source, DependencyKey):
            return cast("DependencyKey[Any]", source)
        return DependencyKey(getattr(source, "__name__", repr(source)), source)


def depends_of(annotation: Any) -> DependencyKey[Any] | None:
    """The key an annotation names, if it is an injected one."""
    if get_origin(annotation) is Annotated:
        for extra in get_args(annotation)[1:]:
            if isinstance(extra, Depends):
                return extra.key
    return None


def hides_depends(annotation: Any) -> bool:
    """Whether a Depends stands somewhere inside an annotation, where nothing would be injected."""
    return isinstance(annotation, Depends) or any(hides_depends(part) for part in get_args(annotation))


@dataclass(frozen=True, slots=True)
class Wants:
    """What a factory wants to be called with (None is the ToolContext), and why it can't be, if it can't."""

    needs: tuple[tuple[str, DependencyKey[Any] | None], ...]
    faults: tuple[str, ...]


@remembered
def wants_of(factory: Callable[..., Any]) -> Wants:
    parameters = _parameters(factory)
    hints = hints_of(factory) if parameters else Hints()
    needs: list[tuple[str, DependencyKey[Any] | None]] = []
    faults: list[str] = []
    for parameter in parameters.values():
        name, annotation = parameter.name, hints.types.get(parameter.name)
        key = depends_of(annotation)
        if key is not None or annotation is ToolContext:
            needs.append((name, key))
        elif name in hints.faults:
            faults.append(f"parameter `{name}`: {hints.faults[name]}")
        elif parameter.default is parameter.empty and parameter.kind not in _MANY:
            faults.append(f"parameter `{name}` has no default and no Depends")
    return Wants(tuple(needs), tuple(faults))


def _parameters(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):  # a builtin without a signature takes nothing from us
        return {}


def graph_faults(roots: Mapping[str, DependencyKey[Any]]) -> list[str]:
    """Cycles, factories that can't be called, and session values that would hold call values."""
    faults: list[str] = []
    done: set[DependencyKey[Any]] = set()

    def visit(key: DependencyKey[Any], trail: tuple[DependencyKey[Any], ...]) -> None:
        if key in trail:
            names = " -> ".join(k.id for k in (*trail[trail.index(key) :], key))
            faults.append(f"dependency cycle: {names}")
        elif key not in done:
            done.add(key)
            wants = wants_of(key.create)
            faults.extend(f"dependency `{key.id}`: {fault}" for fault in wants.faults)
            for need in (need for _, need in wants.needs if need is not None):
                if key.scope == "session" and need.scope == "call":
                    faults.append(f"dependency `{key.id}` lives for the session but needs `{need.id}`, of one call")
                visit(need, (*trail, key))

    for key in roots.values():
        visit(key, ())
    return faults


class _Turn:
    """Somebody makes a value; others who want it wait. Lighter than a lock, and it can't wait for itself."""

    __slots__ = ("_over", "owner")

    def __init__(self) -> None:
        self.owner = asyncio.current_task()
        self._over: asyncio.Event | None = None  # made when somebody waits, which is seldom

    async def wait_for(self, key: DependencyKey[Any]) -> None:
        if self.owner is asyncio.current_task():
            raise RuntimeError(f"dependency `{key.id}` needs itself, through an override")
        self._over = self._over or asyncio.Event()
        await self._over.wait()

    def end(self) -> None:
        if self._over is not None:
            self._over.set()


class Lifetime:
    """Values that live together and are closed together, newest first."""

    __slots__ = ("_making", "_stack", "_values", "closed")

    def __init__(self) -> None:
        self._values: dict[DependencyKey[Any], Any] = {}
        self._making: dict[DependencyKey[Any], _Turn] = {}
        self._stack: AsyncExitStack | None = None
        self.closed = False

    async def get(self, key: DependencyKey[Any], make: Callable[[], Awaitable[Any]]) -> Any:
        """The one value of a key, also for those who ask at the same time."""
        if key in self._values:
            return self._values[key]
        if self.closed:
            raise RuntimeError(f"dependency `{key.id}` was asked for after its session had ended")
        if key in self._making:
            await self._making[key].wait_for(key)
            return await self.get(key, make)
        turn = self._making[key] = _Turn()
        try:
            value = self._values[key] = await make()
        finally:
            del self._making[key]
            turn.end()
        return value

    async def enter(self, manager: Any) -> Any:
        if self._stack is None:
            self._stack = AsyncExitStack()
        if hasattr(manager, "__aenter__"):
            return await self._stack.enter_async_context(manager)
        return self._stack.enter_context(manager)

    async def close(self, error: BaseException | None = None) -> None:
        self.closed = True
        stack, self._stack = self._stack, None
        if stack is None:
            return
        with anyio.move_on_after(CLOSING_SECONDS, shield=True) as scope:
            await stack.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)
        if scope.cancelled_caught:
            LOGGER.warning("dependencies took more than %s s to close and were left", CLOSING_SECONDS)


class Resolver:
    """Gives the dependencies of one call, and keeps what lives for that call only."""

    __slots__ = ("_bound", "_call", "_ctx", "_ended")

    def __init__(self, ctx: ToolContext, bound: Mapping[str, Factory]) -> None:
        self._ctx = ctx
        self._bound = bound
        self._call: Lifetime | None = None
        self._ended = False

    async def fill(self, needs: Mapping[str, DependencyKey[Any]]) -> dict[str, Any]:
        return {name: await self.value(key) for name, key in needs.items()}

    async def value(self, key: DependencyKey[Any]) -> Any:
        if key.id in self._ctx.given:
            return self._ctx.given[key.id]
        lifetime = self._lifetime(key)
        value = await lifetime.get(key, lambda: self._make(key, lifetime))
        self._ctx.deps[key.id] = value
        return value

    def _lifetime(self, key: DependencyKey[Any]) -> Lifetime:
        if self._ended:
            raise RuntimeError(f"dependency `{key.id}` was asked for after the call had ended")
        if key.scope == "session" and self._ctx.lifetime is not None:
            return self._ctx.lifetime
        if self._call is None:
            self._call = Lifetime()
        return self._call

    async def _make(self, key: DependencyKey[Any], lifetime: Lifetime) -> Any:
        factory = self._factory(key)
        filled = {
            name: self._ctx if need is None else await self.value(need) for name, need in wants_of(factory).needs
        }
        made = factory(**filled)
        manager = _manager(factory, made)
        if manager is None and hasattr(cast("type[Any]", type(made)), "__await__"):
            made = await made
            manager = _manager(factory, made)
        return made if manager is None else await lifetime.enter(manager)

    def _factory(self, key: DependencyKey[Any]) -> Callable[..., Any]:
        for replaced in (self._ctx.overrides, self._bound):
            if key.id in replaced:
                return replaced[key.id]
        return key.create

    def end(self) -> Lifetime | None:
        """No more is given. What lived for the call, for the caller to close, if there is any."""
        self._ended = True
        return self._call


def _given(made: Any) -> Any:
    return made


def _manager(factory: Callable[..., Any], made: Any) -> Any:
    """What has to be entered and left, if what was made is such a thing. A value that a plain function returns is
    left as it is: a lock is not taken because someone depends on it."""
    if isinstance(made, AsyncGeneratorType):
        return asynccontextmanager(_given)(made)
    if isinstance(made, GeneratorType):
        return contextmanager(_given)(made)
    if isinstance(made, (AsyncContextDecorator, ContextDecorator)):
        return made
    if isinstance(factory, type) and (hasattr(made, "__aenter__") or hasattr(made, "__enter__")):
        return made
    return None
