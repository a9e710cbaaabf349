"""Ending a search from outside: from another thread, or when the caller gives up."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from typing import TypeVar

from anyio import to_thread

Value = TypeVar("Value")


class Stop:
    """Ends a search from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._process = process
            if self.stopped:
                process.kill()

    def stop(self) -> None:
        with self._lock:
            self.stopped = True
            if self._process is not None:
                self._process.kill()


async def stoppable(work: Callable[[Stop], Value]) -> Value:
    """Run a search in a worker thread; when the caller gives up, the search ends with it."""
    stop = Stop()
    try:
        return await to_thread.run_sync(work, stop, abandon_on_cancel=True)
    finally:
        stop.stop()
