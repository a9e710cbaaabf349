"""Each client's share of an HTTP server. Shares are equal, so that no client can starve another.

A client is the holder of a token. Programs that use the same token have one share between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext

import anyio
import anyio.to_thread

MOST_SESSIONS = 1000
MOST_REQUESTS = 512
CALLS_AT_ONCE = 64
"""How many calls of one client run at the same time; more wait for their turn. Each call may use a thread."""


class Quotas:
    """Divides a server among its clients."""

    def __init__(self, clients: int, sessions: int = MOST_SESSIONS, requests: int = MOST_REQUESTS) -> None:
        self._all_sessions = sessions
        self._all_requests = requests
        self._threads = 0
        self.divide(clients)
        self._requests: Counter[str] = Counter()
        self._calls: dict[str, anyio.CapacityLimiter] = {}

    def divide(self, clients: int) -> None:
        """Divides the server among this many clients from now on."""
        self.clients = max(1, clients)
        self.sessions = max(1, self._all_sessions // self.clients)
        self.requests = max(1, self._all_requests // self.clients)

    @contextmanager
    def request(self, owner: str) -> Generator[bool]:
        """Counts a request while it is served. Yields False if its client already has too many."""
        self._requests[owner] += 1
        try:
            yield self._requests[owner] <= self.requests
        finally:
            self._requests[owner] -= 1

    def call(self, owner: str) -> AbstractAsyncContextManager[object]:
        """Enter it while a call runs, so that a client's calls take no more threads than its share. On stdio there is
        no owner and no limit."""
        if not owner:
            return nullcontext()
        return self._calls.setdefault(owner, anyio.CapacityLimiter(CALLS_AT_ONCE))

    def divide_threads(self) -> None:
        """Makes the thread pool that all calls use large enough for every client's share."""
        pool = anyio.to_thread.current_default_thread_limiter()
        needed = self.clients * CALLS_AT_ONCE
        pool.total_tokens += needed - self._threads
        self._threads = needed
