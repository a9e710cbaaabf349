"""Idle HTTP connections: how long one may stay open without a request, and how many there may be."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 15.0
"""A connection has this long to send the complete headers of a request, however slowly they arrive."""
MOST_WAITING = 256
"""The most connections without a request. One more, and the one that has waited longest is closed."""

_NUMBERS = itertools.count(1)
CONNECTION = "gripfast_connection"
"""Where a request's scope has its connection, in the part `state`."""


class HttpConnection(H11Protocol):
    """A connection that is closed if no request comes, so that idle connections never keep another client out."""

    waiting: dict[HttpConnection, asyncio.TimerHandle]
    """The server's connections without a request, the one that has waited longest first."""
    keep_seconds: float | None = None
    """How long it may stay open without a request, if something lasts as long as it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn does
        super().connection_made(transport)
        self.closed = asyncio.Event()
        self.number = next(_NUMBERS)
        self.app_state = {**self.app_state, CONNECTION: self}
        self._await_request()

    def keep(self, seconds: float) -> None:
        """Keeps it open between requests for so long: something lasts as long as this connection."""
        self.keep_seconds = seconds
        self.timeout_keep_alive = max(1, round(seconds))

    def handle_events(self) -> None:
        super().handle_events()
        if self.has_request:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.has_request:  # otherwise the client had already sent its next one
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.closed.set()
        super().connection_lost(exc)

    @property
    def has_request(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    def _await_request(self) -> None:
        self._stop_waiting()
        if self.transport.is_closing() or self.keep_seconds is not None:
            return
        self.waiting[self] = self.loop.call_later(HEADER_SECONDS, self.transport.abort)
        if len(self.waiting) > MOST_WAITING:
            oldest = next(iter(self.waiting))
            oldest._stop_waiting()
            oldest.transport.abort()

    def _stop_waiting(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()


def connections() -> type[Any]:
    """The class of one server's connections."""
    return type("HttpConnection", (HttpConnection,), {"waiting": {}})
