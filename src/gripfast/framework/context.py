"""What a running tool knows about its call: cancellation, clock, log, progress, dependencies."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from gripfast.clock import utc_now
from gripfast.errors import Cancelled
from gripfast.records import dataclass

if TYPE_CHECKING:
    from gripfast.framework.depends import DependencyKey, Lifetime, Resolver

T = TypeVar("T")
Factory: TypeAlias = Callable[..., Any]
LOGGER = logging.getLogger("gripfast")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call has got. `total` is None if it is not known."""

    progress: float
    total: float | None = None
    message: str | None = None


class Interruption(BaseException):
    """Raised by an edge to leave a call and run it again later. It is not a failure, and passes every handler."""


class _Done:
    """What report_progress returns: something that may be awaited, but need not be."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


_DONE = _Done()


class ToolContext:
    """The surroundings of a call. Every field is optional: `ToolContext()` runs any tool, any number of times.

    `overrides` replaces dependencies by id with a factory; `deps` provides ready values by id. Each call gets a
    context of its own, derived from this one, whose `deps` also hold what that call has resolved so far.
    """

    __slots__ = (
        "_caller_loop",
        "_now",
        "_parent",
        "_resolver",
        "_stop",
        "deps",
        "lifetime",
        "logger",
        "overrides",
        "progress",
        "provided",
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
        self.provided: Mapping[str, Any] = dict(deps) if deps else {}
        self.deps: dict[str, Any] = dict(self.provided)
        self.logger = logger or LOGGER
        self.progress = progress
        self.lifetime = lifetime  # holds dependencies of scope "session"; without it they live for one call
        self._now = now or utc_now
        self._parent: ToolContext | None = None
        self._resolver: Resolver | None = None
        self._caller_loop: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._stop = False

    def for_call(
        self, progress: Callable[[Progress], None] | None = None, deps: Mapping[str, Any] | None = None
    ) -> ToolContext:
        """The context of one call, with its own cancellation and dependencies. `deps` are for this call only."""
        child = ToolContext.__new__(ToolContext)
        child.overrides = self.overrides
        child.provided = {**self.deps, **deps} if deps else self.deps
        child.deps = dict(child.provided)
        child.logger = self.logger
        child.progress = progress or self.progress
        child.lifetime = self.lifetime
        child._now = self._now
        child._parent = self
        child._resolver = None
        child._caller_loop = (threading.get_ident(), asyncio.get_running_loop()) if child.progress else None
        child._stop = False
        return child

    @property
    def cancelled(self) -> bool:
        """True once the caller has cancelled. An async tool is also cancelled at its next await."""
        return self._stop or (self._parent is not None and self._parent.cancelled)

    def cancel(self) -> None:
        self._stop = True

    def check_cancelled(self) -> None:
        """For loops in sync tools: raises CANCELLED once the caller has cancelled."""
        if self.cancelled:
            raise Cancelled("the call was cancelled")

    def now(self) -> datetime:
        return self._now()

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Tell the caller how far this has got. Never blocks; may also be called from a thread."""
        if self.progress is not None and self._caller_loop is not None:
            report = Progress(progress, total, message)
            thread, loop = self._caller_loop
            if thread == threading.get_ident():
                self.progress(report)
            else:
                loop.call_soon_threadsafe(self.progress, report)
        return _DONE

    async def resolve(self, key: DependencyKey[T]) -> T:
        """The value of a dependency in this call, the same one that an injected parameter gets."""
        if self._resolver is None:
            raise RuntimeError("ctx.resolve works only while a tool runs, on the context passed to that tool")
        return await self._resolver.value(key)

    def attach(self, resolver: Resolver | None) -> None:
        """Internal: binds this context to the dependencies of its call."""
        self._resolver = resolver


def _callables(overrides: Mapping[str, Factory]) -> dict[str, Factory]:
    for id, factory in overrides.items():
        if not callable(factory):
            kind = type(factory).__name__
            raise TypeError(f"override `{id}` must be a callable, not {kind}; to pass a ready value, use deps=")
    return dict(overrides)
