"""Sweep: finds files that changed without an event in their directory, by comparing all of them in the background.

A file with several names (hard links) may be written by one that lies outside what is watched. The kernel reports the
write there, and the new link only to those who watch the file itself (see inotify(7)).
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from gripfast.host.files.tree_index import TreeIndex

_REST = 20  # times as long as a sweep took: it may use a twentieth of one processor


class Sweep:
    """Compares the ctime of every file with the index. `lock` guards the index."""

    def __init__(self, index: TreeIndex, lock: threading.RLock) -> None:
        self._index, self._lock = index, lock
        self._found: set[str] = set()
        self._thread: threading.Thread | None = None
        self._due = False
        self._began, self._took = float("-inf"), 0.0
        self._closed = False

    def start(self) -> None:
        """After a command: compares in the background, unless that was done a moment ago."""
        self._due = True
        rested = time.monotonic() - self._began >= _REST * self._took
        if rested and (self._thread is None or not self._thread.is_alive()):
            thread = threading.Thread(target=self._run, name="gripfast-sweep", daemon=True)
            with suppress(RuntimeError):  # no more threads: the next look compares
                thread.start()
                self._thread, self._due = thread, False

    def finish(self) -> None:
        """Compares what has not been compared since the last command."""
        if self._thread is not None:
            self._thread.join()
        if self._due:
            self._due = False
            self._run()

    def take(self) -> list[str]:
        """The files found so far, each once. Some may have had an event meanwhile."""
        with self._lock:
            found, self._found = sorted(self._found), set()
        return found

    def close(self) -> None:
        self._closed = True
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        self._began = time.monotonic()
        with self._lock:
            directories = self._index.directories()
        for directory in directories:
            if self._closed:
                return
            with self._lock:
                self._found.update(self._index.moved(directory))
        self._took = time.monotonic() - self._began
