"""Pump: moves the output of a command in the background from its pipe into a file, while the event loop runs."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import IO

from gripfast.host.shell.broker import CHUNK, PIPE_SIZE


class Pump:
    """Owns the read end of a pipe. What the file can't take is dropped, so that the command never waits for it."""

    def __init__(self, out: int, spool: IO[bytes], cap: int) -> None:
        self._out = out
        self._spool = spool
        self._left = cap
        self._lock = threading.Lock()
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(out, self._move)

    def stop(self) -> None:
        """Moves what is in the pipe, and nothing after that. May be called from any thread, more than once."""
        with self._lock:
            if self._stopped:
                return
            self._moved()
            self._stopped = True
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close)

    def _move(self) -> None:
        with self._lock:
            if not self._stopped and self._moved():
                return
            self._stopped = True
        self._close()

    def _moved(self) -> bool:
        """Moves at most about what a large pipe holds. False at the end of the output."""
        taken = 0
        while taken < PIPE_SIZE:
            try:
                data = os.read(self._out, CHUNK)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            taken += len(data)
            self._write(data[: self._left])
        return True

    def _write(self, data: bytes) -> None:
        try:
            self._left -= os.write(self._spool.fileno(), data) if data else 0
        except OSError:
            self._left = 0  # the disk is full

    def _close(self) -> None:
        if self._out >= 0:
            self._loop.remove_reader(self._out)
            os.close(self._out)
            self._out = -1
