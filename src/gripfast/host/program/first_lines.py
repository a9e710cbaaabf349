"""Reads and answers the first lines on standard input while the rest of the program is still being loaded."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

_CHUNK = 1 << 16
_LARGEST_LINE = 1 << 20
_MOST_LINES = 64


class FirstLines:
    """A thread that answers lines as long as `answer` can. `answer` takes one line and returns the bytes to write,
    which may be empty, or None if this line and all that follow must wait for the complete program."""

    def __init__(self, answer: Callable[[bytes], bytes | None], source: int = 0, sink: int = 1) -> None:
        self._answer = answer
        self._source, self._sink = source, sink
        self._rest = b""
        self._lines = 0
        self._over = False
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._work, name="first lines", daemon=True)

    def start(self) -> None:
        """Answers the lines that have already arrived, then waits for more in the background."""
        while not self._over and select.select([self._source], [], [], 0)[0]:
            self._take()
        self._thread.start()

    def end(self) -> bytes:
        """Stops reading. Returns what was read but not answered."""
        os.write(self._wake, b"x")
        self._thread.join()
        os.close(self._wake)
        os.close(self._woken)
        return self._rest

    def _work(self) -> None:
        while not self._over:
            ready, _, _ = select.select([self._source, self._woken], [], [])
            if self._woken in ready:
                return
            self._take()

    def _take(self) -> None:
        try:
            chunk = os.read(self._source, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        self._rest += chunk
        if not chunk or not self._answer_whole_lines() or len(self._rest) > _LARGEST_LINE:
            self._over = True  # the complete program continues to read, and finds the end itself

    def _answer_whole_lines(self) -> bool:
        while (end := self._rest.find(b"\n")) >= 0:
            self._lines += 1
            answer = self._answer(self._rest[:end]) if self._lines <= _MOST_LINES else None
            if answer is None:
                return False
            self._rest = self._rest[end + 1 :]
            if not self._write(answer):
                return False
        return True

    def _write(self, data: bytes) -> bool:
        while data:
            try:
                data = data[os.write(self._sink, data) :]
            except BlockingIOError:
                select.select([], [self._sink], [])
            except OSError:  # the client is gone; the complete program will notice that too
                return False
        return True
