"""What a running tool knows of its call: cancellation, clock, log, progress, dependencies."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from holdfast.errors import Cancelled

if TYPE_CHECKING:
    from holdfast.tool.depends import DependencyKey, Lifetime, Resolver

T = TypeVar("T")
Factory: TypeAlias = Callable[..., Any]
LOGGER = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is. `total` is None while nobody knows."""

    progress: float
    total: float | None = None
    message: str | None = None


class Interruption(BaseException):
    """What an edge raises through a call to take it up again later. No failure: the walk lets it pass."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class _Sent:
    """What report_progress returns, so that it may be awaited or not."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


_SENT = _Sent()


class ToolContext:
    """What surrounds a call. Every field is optional: `ToolContext()` runs any tool, any number of times.

    `overrides` replaces dependencies by id with a factory; `deps` gives ready values by id. A running tool gets a
    context of its own, made from this one: its `deps` also hold what was resolved in that call so far.
    """

    __slots__ = (
        "_caller",
        "_home",
        "_now",
        "_resolver",
        "_stop",
        "deps",
        "given",
        "lifetime",
        "logger",
        "overrides",
        "progress",
    )

    def __init__(
        self,
        *,
        overrides: Mapping[str, Factory] | None = None,
        deps: Mapping[str, Any] | None = None,
        logger: logging.Logger | None = None,
        now: Callable[[], datetime] | None = None,
        progress: Callable[[Progress], None] | None = None,
        lifetime: Lifetime | None = None,
    ) -> None:
        self.overrides: Mapping[str, Factory] = _callables(overrides) if overrides else {}
        self.given: Mapping[str, Any] = dict(deps) if deps else {}
        self.deps: dict[str, Any] = dict(self.given)
        self.logger = logger or LOGGER
        self.progress = progress
        self.lifetime = lifetime  # where dependencies of scope "session" live; without one they live for the call
        self._now = now or utc_now
        self._caller: ToolContext | None = None
        self._resolver: Resolver | None = None
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._stop = False

    def for_call(self, progress: Callable[[Progress], None] | None = None) -> ToolContext:
        """The context of one call: it can be cancelled, and resolves dependencies, by itself."""
        mine = ToolContext.__new__(ToolContext)
        mine.overrides = self.overrides
        mine.given = self.deps
        mine.deps = self.deps.copy()
        mine.logger = self.logger
        mine.progress = progress or self.progress
        mine.lifetime = self.lifetime
        mine._now = self._now
        mine._caller = self
        mine._resolver = None
        mine._home = (threading.get_ident(), asyncio.get_running_loop()) if mine.progress else None
        mine._stop = False
        return mine

    @property
    def cancelled(self) -> bool:
        """True once the caller has given up. An async tool is also cancelled at its next await."""
        return self._stop or (self._caller is not None and self._caller.cancelled)

    def cancel(self) -> None:
        self._stop = True

    def check_cancelled(self) -> None:
        """For loops in sync tools: raises CANCELLED once the caller has given up."""
        if self.cancelled:
            raise Cancelled("the call was cancelled")

    def now(self) -> datetime:
        return self._now()

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Tell whoever waits how far this is. Never blocks; from a thread it is told on the caller's loop."""
        if self.progress is not None and self._home is not None:
            told = Progress(progress, total, message)
            thread, loop = self._home
            if thread == threading.get_ident():
                self.progress(told)
            else:
                loop.call_soon_threadsafe(self.progress, told)
        return _SENT

    async def resolve(self, key: DependencyKey[T]) -> T:
        """The value of a dependency in this call: the same one an injected parameter gets."""
        if self._resolver is None:
            raise RuntimeError("ctx.resolve works while a tool runs, with the context that the tool was given")
        return await self._resolver.value(key)

    def attach(self, resolver: Resolver | None) -> None:
        """Used by the walk of a call: binds this context to the dependencies of that call."""
        self._resolver = resolver


def _callables(overrides: Mapping[str, Factory]) -> dict[str, Factory]:
    for id, factory in overrides.items():
        if not callable(factory):
            kind = type(factory).__name__
            raise TypeError(f"override `{id}` is a {kind}, not a factory; give a callable, or the value in deps=")
    return dict(overrides)
