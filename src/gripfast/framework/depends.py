"""Dependency injection: parameters that a tool needs and the model never sees.

A parameter `Annotated[Db, Depends(DB)]` gets the value of `DB = DependencyKey("db", connect)`. The value comes from
the first of these that has it: the context's `deps`, its `overrides`, the tool's `bind`, the key's own `create`.
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
from dataclasses import field
from types import AsyncGeneratorType, GeneratorType
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args, get_origin

import anyio

from gripfast.framework.context import LOGGER, Factory, ToolContext
from gripfast.framework.hints import Hints, cached_per_function, hints_of
from gripfast.records import dataclass

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
DependencyScope: TypeAlias = Literal["call", "session"]
# How long closing the dependencies of one call may take before it is given up.
CLOSING_SECONDS = 30.0


@dataclass(frozen=True)
class DependencyKey(Generic[T_co]):
    """A named dependency. `create` may be sync or async, a generator or a context manager, and may itself have
    `Depends` parameters. `scope` says how long a value lives. A sync `create` runs on the event loop, so make it
    async if it waits for something."""

    id: str
    create: Callable[..., T_co | Awaitable[T_co] | Generator[T_co, Any, Any] | AsyncGenerator[T_co, Any]] = field(
        repr=False
    )
    scope: DependencyScope = "call"

    def __post_init__(self) -> None:
        hints_of(self.create)  # read now, while the local names of the enclosing function can still be seen

    def __hash__(self) -> int:
        return hash(self.id)  # cheap, because keys are looked up several times in a call; equal keys have equal ids


@dataclass(frozen=True)
class Depends:
    """Marks a parameter as injected: `Annotated[Db, Depends(DB)]`. Takes a key, or a plain callable, whose name is
    then the id for overrides."""

    source: DependencyKey[Any] | Callable[..., Any]

    @property
    def key(self) -> DependencyKey[Any]:
        source: Any = self.source
        if isinstance(source, DependencyKey):
            return cast("DependencyKey[Any]", source)
        return DependencyKey(getattr(source, "__name__", repr(source)), source)


def depends_of(annotation: Any) -> DependencyKey[Any] | None:
    """The dependency key in an annotation, or None if the parameter is not injected."""
    if get_origin(annotation) is Annotated:
        for extra in get_args(annotation)[1:]:
            if isinstance(extra, Depends):
                return extra.key
    return None


def hides_depends(annotation: Any) -> bool:
    """Whether a Depends is nested inside an annotation, where it would have no effect."""
    return isinstance(annotation, Depends) or any(hides_depends(part) for part in get_args(annotation))


@dataclass(frozen=True, slots=True)
class FactoryParameters:
    """The parameters to pass to a factory (None stands for the ToolContext), or why it can't be called."""

    needs: tuple[tuple[str, DependencyKey[Any] | None], ...]
    faults: tuple[str, ...]


@cached_per_function
def factory_parameters(factory: Callable[..., Any]) -> FactoryParameters:
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
        elif parameter.default is parameter.empty and parameter.kind not in _VARIADIC:
            faults.append(f"parameter `{name}` has no default and no Depends")
    return FactoryParameters(tuple(needs), tuple(faults))


def _parameters(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):  # a builtin without a signature: nothing to inject
        return {}


def graph_faults(roots: Mapping[str, DependencyKey[Any]]) -> list[str]:
    """Faults in a dependency graph: cycles, factories that can't be called, session values that need call values."""
    faults: list[str] = []
    done: set[DependencyKey[Any]] = set()

    def visit(key: DependencyKey[Any], trail: tuple[DependencyKey[Any], ...]) -> None:
        if key in trail:
            names = " -> ".join(k.id for k in (*trail[trail.index(key) :], key))
            faults.append(f"dependency cycle: {names}")
        elif key not in done:
            done.add(key)
            parameters = factory_parameters(key.create)
            faults.extend(f"dependency `{key.id}`: {fault}" for fault in parameters.faults)
            for need in (need for _, need in parameters.needs if need is not None):
                if key.scope == "session" and need.scope == "call":
                    faults.append(
                        f"dependency `{key.id}` lives for the session but needs `{need.id}`, which lives for one call"
                    )
                visit(need, (*trail, key))

    for key in roots.values():
        visit(key, ())
    return faults


class _Pending:
    """A value that one task is creating and others may wait for. Lighter than a lock; detects waiting for itself."""

    __slots__ = ("_over", "owner")

    def __init__(self) -> None:
        self.owner = asyncio.current_task()
        self._over: asyncio.Event | None = None  # created only if another task waits, which is rare

    async def wait_for(self, key: DependencyKey[Any]) -> None:
        if self.owner is asyncio.current_task():
            raise RuntimeError(f"dependency `{key.id}` needs itself, through an override")
        self._over = self._over or asyncio.Event()
        await self._over.wait()

    def end(self) -> None:
        if self._over is not None:
            self._over.set()


class Lifetime:
    """A group of values that are closed together, newest first."""

    __slots__ = ("_making", "_stack", "_values", "closed")

    def __init__(self) -> None:
        self._values: dict[DependencyKey[Any], Any] = {}
        self._making: dict[DependencyKey[Any], _Pending] = {}
        self._stack: AsyncExitStack | None = None
        self.closed = False

    async def get(self, key: DependencyKey[Any], make: Callable[[], Awaitable[Any]]) -> Any:
        """The value of a key, made only once even if several tasks ask at the same time."""
        if key in self._values:
            return self._values[key]
        if self.closed:
            raise RuntimeError(f"dependency `{key.id}` was requested after its session had ended")
        if key in self._making:
            await self._making[key].wait_for(key)
            return await self.get(key, make)
        pending = self._making[key] = _Pending()
        try:
            value = self._values[key] = await make()
        finally:
            del self._making[key]
            pending.end()
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
            LOGGER.warning("dependencies did not close within %s s and were abandoned", CLOSING_SECONDS)


class Resolver:
    """Resolves the dependencies of one call, and owns those that live only for that call."""

    __slots__ = ("_bound", "_call", "_ctx", "_ended")

    def __init__(self, ctx: ToolContext, bound: Mapping[str, Factory]) -> None:
        self._ctx = ctx
        self._bound = bound
        self._call: Lifetime | None = None
        self._ended = False

    async def fill(self, needs: Mapping[str, DependencyKey[Any]]) -> dict[str, Any]:
        return {name: await self.value(key) for name, key in needs.items()}

    async def value(self, key: DependencyKey[Any]) -> Any:
        if key.id in self._ctx.provided:
            return self._ctx.provided[key.id]
        lifetime = self._lifetime(key)
        value = await lifetime.get(key, lambda: self._make(key, lifetime))
        self._ctx.deps[key.id] = value
        return value

    def _lifetime(self, key: DependencyKey[Any]) -> Lifetime:
        if self._ended:
            raise RuntimeError(f"dependency `{key.id}` was requested after the call had ended")
        if key.scope == "session" and self._ctx.lifetime is not None:
            return self._ctx.lifetime
        if self._call is None:
            self._call = Lifetime()
        return self._call

    async def _make(self, key: DependencyKey[Any], lifetime: Lifetime) -> Any:
        factory = self._factory(key)
        filled = {
            name: self._ctx if need is None else await self.value(need)
            for name, need in factory_parameters(factory).needs
        }
        made = factory(**filled)
        manager = _manager(factory, made)
        if manager is None and hasattr(cast("type[Any]", type(made)), "__await__"):
            made = await made
            manager = _manager(factory, made)
        return made if manager is None else await lifetime.enter(manager)

    def _factory(self, key: DependencyKey[Any]) -> Callable[..., Any]:
        for factories in (self._ctx.overrides, self._bound):
            if key.id in factories:
                return factories[key.id]
        return key.create

    def end(self) -> Lifetime | None:
        """Stops resolving. Returns the values that lived for the call, if any, for the caller to close."""
        self._ended = True
        return self._call


def _unchanged(made: Any) -> Any:
    return made


def _manager(factory: Callable[..., Any], made: Any) -> Any:
    """The context manager to enter for a created value, or None. A context manager that a plain function returns is
    used as a value, not entered: depending on a lock does not acquire it."""
    if isinstance(made, AsyncGeneratorType):
        return asynccontextmanager(_unchanged)(made)
    if isinstance(made, GeneratorType):
        return contextmanager(_unchanged)(made)
    if isinstance(made, (AsyncContextDecorator, ContextDecorator)):
        return made
    if isinstance(factory, type) and (hasattr(made, "__aenter__") or hasattr(made, "__enter__")):
        return made
    return None
