"""Lines of a log on standard error, written by a thread: a reader that is slow, or gone, holds up no call."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TextIO

MOST_WAITING = 10_000
"""Lines that may wait to be written. More are dropped, and the log says how many."""
LAST_SECONDS = 2.0


class LogLines:
    """A queue of lines, and the thread that writes them."""

    def __init__(self, stream: TextIO | int = 2) -> None:
        self._to = stream if isinstance(stream, int) else stream.fileno()
        self._lines: deque[str] = deque()
        self._dropped = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="gripfast-log", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Adds a line, which has no newline of its own. Never blocks."""
        with self._changed:
            if len(self._lines) < MOST_WAITING:
                self._lines.append(line)
                self._changed.notify()
            else:
                self._dropped += 1

    def close(self) -> None:
        """Writes what waits, if somebody reads it soon."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(LAST_SECONDS)

    def _write_all(self) -> None:
        while (lines := self._next()) is not None:
            data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
            try:
                while data:
                    data = data[os.write(self._to, data) :]
            except OSError:  # nobody reads it any more
                continue

    def _next(self) -> list[str] | None:
        """Waits for lines. Returns None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._closed)
            lines = list(self._lines)
            self._lines.clear()
            if self._dropped:
                lines.append(self.dropped_line(self._dropped))
                self._dropped = 0
            return lines or None

    def dropped_line(self, count: int) -> str:
        """What the log says about lines that it lacks."""
        return f"{count} lines of this log were dropped: they were not read in time"
