"""Dependency injection: what a tool needs and the model never sees.

A parameter `Annotated[Db, Depends(DB)]` gets the value of `DB = DependencyKey("db", connect)`. The value is looked
for in this order: the context's `deps`, `overrides` by id, what the tool was bound to, the key's own `create`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, cast, get_args, get_origin

import anyio

from holdfast.tool.context import Factory, ToolContext
from holdfast.tool.hints import hints_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Span: TypeAlias = Literal["call", "session"]
# How long closing the dependencies of one call may take before they are left to themselves.
CLOSING_SECONDS = 30.0


@dataclass(frozen=True)
class DependencyKey(Generic[T_co]):
    """A dependency by name. `create` may be sync or async, a generator, or a context manager, and may itself
    have `Depends` parameters. `scope` says how long a value lives."""

    id: str
    create: Callable[..., T_co | Awaitable[T_co] | Generator[T_co, Any, Any] | AsyncGenerator[T_co, Any] | Any] = (
        field(repr=False)
    )
    scope: Span = "call"


@dataclass(frozen=True)
class Depends:
    """Marks a parameter as injected: `Annotated[Db, Depends(DB)]`, with a key or a plain callable."""

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


@dataclass(frozen=True, slots=True)
class Recipe:
    """A factory, inspected once: how to call it and what it needs."""

    make: Callable[..., Any]
    kind: Literal["plain", "async", "context", "async-context"]
    needs: tuple[tuple[str, DependencyKey[Any] | None], ...]  # None: the ToolContext


_recipes: dict[Callable[..., Any], Recipe] = {}


def recipe_of(factory: Callable[..., Any]) -> Recipe:
    try:
        known = _recipes.get(factory)
    except TypeError:  # an unhashable callable: inspected each time
        return _inspect(factory)
    if known is None:
        known = _recipes[factory] = _inspect(factory)
    return known


def _inspect(factory: Callable[..., Any]) -> Recipe:
    make, kind = _kind_of(factory)
    return Recipe(make, kind, tuple(_needs_of(factory)))


def _kind_of(
    factory: Callable[..., Any],
) -> tuple[Callable[..., Any], Literal["plain", "async", "context", "async-context"]]:
    inner = inspect.unwrap(factory)
    if inspect.isasyncgenfunction(inner):
        return (asynccontextmanager(factory) if inner is factory else factory), "async-context"
    if inspect.isgeneratorfunction(inner):
        return (contextmanager(factory) if inner is factory else factory), "context"
    if inspect.isclass(factory):
        if hasattr(factory, "__aenter__"):
            return factory, "async-context"
        if hasattr(factory, "__enter__"):
            return factory, "context"
    if inspect.iscoroutinefunction(inner):
        return factory, "async"
    return factory, "plain"


def _needs_of(factory: Callable[..., Any]) -> list[tuple[str, DependencyKey[Any] | None]]:
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # a builtin without a signature takes nothing from us
        return []
    hints = hints_of(factory) if parameters else {}
    needs: list[tuple[str, DependencyKey[Any] | None]] = []
    for name in parameters:
        key = depends_of(hints.get(name))
        if key is not None:
            needs.append((name, key))
        elif hints.get(name) is ToolContext:
            needs.append((name, None))
    return needs


def faults_of(factory: Callable[..., Any]) -> list[str]:
    """Why a factory can't be called by us: parameters that nothing fills."""
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return []
    filled = {name for name, _ in recipe_of(factory).needs}
    open_ones = [
        p.name
        for p in parameters.values()
        if p.name not in filled and p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    return [f"parameter `{name}` has no default and no Depends" for name in open_ones]


def graph_faults(roots: Mapping[str, DependencyKey[Any]]) -> list[str]:
    """Cycles, factories that can't be called, and session values that would hold call values."""
    faults: list[str] = []
    done: set[DependencyKey[Any]] = set()

    def visit(key: DependencyKey[Any], trail: tuple[DependencyKey[Any], ...]) -> None:
        if key in trail:
            names = " -> ".join(k.id for k in (*trail[trail.index(key) :], key))
            faults.append(f"dependency cycle: {names}")
            return
        if key in done:
            return
        for fault in faults_of(key.create):
            faults.append(f"dependency `{key.id}`: {fault}")
        for _, need in recipe_of(key.create).needs:
            if need is None:
                continue
            if key.scope == "session" and need.scope == "call":
                faults.append(f"dependency `{key.id}` lives for the session but needs `{need.id}`, of one call")
            visit(need, (*trail, key))
        done.add(key)

    for key in roots.values():
        visit(key, ())
    return faults


class Lifetime:
    """Values that live together and are closed together, newest first."""

    def __init__(self) -> None:
        self._values: dict[DependencyKey[Any], Any] = {}
        self._locks: dict[DependencyKey[Any], anyio.Lock] = {}
        self.stack = AsyncExitStack()

    async def get(self, key: DependencyKey[Any], make: Callable[[], Awaitable[Any]]) -> Any:
        if key in self._values:
            return self._values[key]
        lock = self._locks.setdefault(key, anyio.Lock())
        async with lock:
            if key not in self._values:
                self._values[key] = await make()
        return self._values[key]

    def known(self) -> Mapping[str, Any]:
        return {key.id: value for key, value in self._values.items()}

    async def close(self, error: BaseException | None = None) -> None:
        with anyio.move_on_after(CLOSING_SECONDS, shield=True):
            await self.stack.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)


class Resolver:
    """Gives the dependencies of one call; closes what lived for that call only."""

    def __init__(self, ctx: ToolContext, bound: Mapping[str, Factory]) -> None:
        self._ctx = ctx
        self._bound = bound
        self._given = dict(ctx.deps)
        self._call = Lifetime()
        session = ctx.session
        self._session: Lifetime = session if session is not None else self._call

    async def value(self, key: DependencyKey[Any]) -> Any:
        if key.id in self._given:
            return self._given[key.id]
        lifetime = self._session if key.scope == "session" else self._call
        value = await lifetime.get(key, lambda: self._make(key, lifetime))
        self._ctx.deps[key.id] = value
        return value

    async def _make(self, key: DependencyKey[Any], lifetime: Lifetime) -> Any:
        factory = self._ctx.overrides.get(key.id) or self._bound.get(key.id) or key.create
        recipe = recipe_of(factory)
        filled: dict[str, Any] = {}
        for name, need in recipe.needs:
            filled[name] = self._ctx if need is None else await self.value(need)
        made = recipe.make(**filled)
        if recipe.kind == "async-context":
            return await lifetime.stack.enter_async_context(made)
        if recipe.kind == "context":
            return lifetime.stack.enter_context(made)
        return await made if inspect.isawaitable(made) else made

    async def fill(self, needs: Mapping[str, DependencyKey[Any]]) -> dict[str, Any]:
        return {name: await self.value(key) for name, key in needs.items()}

    async def close(self, error: BaseException | None = None) -> None:
        await self._call.close(error)
