"""When a store collects its garbage: in the background, now and then and after so many bytes, one run at a time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from gripfast.errors import ToolError

_LOGGER = logging.getLogger("gripfast")


class Collector:
    """Starts `collect` in a thread of its own when it is due; it is due after the first output."""

    def __init__(self, collect: Callable[[], None], *, every: float, or_bytes: int) -> None:
        self._collect = collect
        self._every = every
        self._or_bytes = or_bytes
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._bytes = 0
        self._next = 0.0

    def added(self, size: int) -> None:
        """An output of that size was stored."""
        with self._lock:
            self._bytes += size
            busy = self._thread is not None and self._thread.is_alive()
            if busy or (self._bytes <= self._or_bytes and time.monotonic() < self._next):
                return
            self._bytes = 0
            self._next = time.monotonic() + self._every
            self._thread = threading.Thread(target=self._run, name="gripfast-collector", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait for a run that is under way."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        try:
            self._collect()
        except ToolError as failure:
            _LOGGER.warning("collecting old outputs failed: %s", failure.message)
