"""What a running tool knows of its call: cancellation, clock, log, progress, dependencies."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from holdfast.errors import Cancelled

if TYPE_CHECKING:
    from holdfast.tool.depends import DependencyKey, Resolver

T = TypeVar("T")
Factory: TypeAlias = Callable[..., Any]
LOGGER = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is. `total` is None while nobody knows."""

    progress: float
    total: float | None = None
    message: str | None = None


def utc_now() -> datetime:
    return datetime.now(UTC)


class _Sent:
    """What report_progress returns, so that it may be awaited or not."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


_SENT = _Sent()


class ToolContext:
    """One call's surroundings. Every field is optional: `ToolContext()` runs any tool.

    `overrides` replaces dependencies by id with a factory; `deps` gives ready values by id, and during the
    call holds what was resolved so far.
    """

    __slots__ = ("_now", "_resolver", "_session", "_stop", "deps", "logger", "overrides", "progress")

    def __init__(
        self,
        *,
        overrides: Mapping[str, Factory] | None = None,
        deps: Mapping[str, Any] | None = None,
        logger: logging.Logger | None = None,
        now: Callable[[], datetime] | None = None,
        progress: Callable[[Progress], None] | None = None,
        session: Any = None,
    ) -> None:
        self.overrides: Mapping[str, Factory] = overrides if overrides is not None else {}
        self.deps: dict[str, Any] = dict(deps) if deps else {}
        self.logger = logger or LOGGER
        self.progress = progress
        self._now = now or utc_now
        self._session = session
        self._resolver: Resolver | None = None
        self._stop = False

    @property
    def cancelled(self) -> bool:
        """True once the caller has given up. An async tool is also cancelled at its next await."""
        return self._stop

    def cancel(self) -> None:
        self._stop = True

    def check_cancelled(self) -> None:
        """For loops in sync tools: raises CANCELLED once the caller has given up."""
        if self._stop:
            raise Cancelled("the call was cancelled")

    def now(self) -> datetime:
        return self._now()

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Tell whoever waits how far this is. Never blocks; works from sync and async tools alike."""
        if self.progress is not None:
            self.progress(Progress(progress, total, message))
        return _SENT

    async def resolve(self, key: DependencyKey[T]) -> T:
        """The value of a dependency in this call: the same one an injected parameter gets."""
        if self._resolver is None:
            raise RuntimeError("ctx.resolve works while a tool runs, from the tool's own call")
        return await self._resolver.value(key)

    def attach(self, resolver: Resolver | None) -> None:
        """Used by the walk of a call: binds this context to the dependencies of that call."""
        self._resolver = resolver

    @property
    def session(self) -> Any:
        """Where session-scoped dependencies live: a `Lifetime`, or None outside a session."""
        return self._session
