"""Runs work on hostile input in separate processes, with limits on time and memory; a crash there does no harm."""

from __future__ import annotations

import json
import os
import queue
import select
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from gripfast.errors import Cancelled
from gripfast.host.program.programs import installed_places, interpreter

SECONDS = 10.0
MOST = 4
_LOOK_SECONDS = 0.1
_CHILD = str(Path(__file__).with_name("worker_child.py"))
_OWN = str(Path(__file__).parents[3])  # the directory that contains this package
_LENGTHS = struct.Struct("!II")
_PIECE = 1 << 16


class WorkerFault(Exception):
    """A request was not answered. The message says why, as the end of a sentence about the data."""


class _BrokeDown(WorkerFault):
    """The process ended instead of answering."""


class Workers:
    """Up to `MOST` processes that run one function, named as `module:function`, which takes a request (`order`) and
    bytes and returns a dict. They start when they are needed, and end when they are idle or this is closed."""

    def __init__(self, function: str, *, seconds: float = SECONDS) -> None:
        self._function = function
        self._seconds = seconds
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._places = threading.BoundedSemaphore(self.count)
        self._closed = False

    @property
    def count(self) -> int:
        """How many requests are being worked on."""
        return max(1, min(MOST, os.cpu_count() or 1))

    def ask(
        self, order: dict[str, Any], data: bytes, *, is_cancelled: Callable[[], bool] = lambda: False
    ) -> dict[str, Any]:
        """The answer to one request. May be called from several threads. Raises WorkerFault if there is none."""
        with self._places:
            answer = self._answer(order, data, is_cancelled)
        if "fault" in answer:
            raise WorkerFault(str(answer["fault"]))
        return answer

    def _answer(self, order: dict[str, Any], data: bytes, is_cancelled: Callable[[], bool]) -> dict[str, Any]:
        worker = self._taken()
        try:
            answer = worker.ask(order, data, time.monotonic() + self._seconds, is_cancelled)
        except _BrokeDown:
            worker.end()
            if worker.is_new:
                raise
            return self._answer(order, data, is_cancelled)  # it may have died while it was idle: try another
        except BaseException:
            worker.end()
            raise
        self._give_back(worker)
        return answer

    def _taken(self) -> _Worker:
        while True:
            try:
                worker = self._idle.get_nowait()
            except queue.Empty:
                return _Worker(self._function)
            if worker.is_alive:
                return worker
            worker.end()

    def _give_back(self, worker: _Worker) -> None:
        worker.is_new = False
        self._idle.put(worker)
        if self._closed:
            self.close()

    def close(self) -> None:
        """Ends the idle processes; busy ones end after their request."""
        self._closed = True
        while True:
            try:
                self._idle.get_nowait().end()
            except queue.Empty:
                return

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Worker:
    """One process."""

    def __init__(self, function: str) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [interpreter(), "-I", "-S", _CHILD],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            bufsize=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._input, False)
        start = {"path": [*installed_places(), _OWN], "function": function, "parent": os.getpid()}
        self._unsent = _framed(start, b"")
        self.is_new = True  # it has not answered yet

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(
        self, order: dict[str, Any], data: bytes, until: float, is_cancelled: Callable[[], bool]
    ) -> dict[str, Any]:
        unsent = memoryview(self._unsent + _framed(order, data))
        self._unsent = b""
        received = bytearray()
        while (length := _complete(received)) is None:
            if is_cancelled():
                raise Cancelled("the call was cancelled")
            if time.monotonic() > until:
                raise WorkerFault("it took too long")
            unsent = self._exchange(unsent, received)
        return json.loads(received[_LENGTHS.size : length])

    def _exchange(self, unsent: memoryview, received: bytearray) -> memoryview:
        """Waits briefly until something can be written or read, then writes or reads it."""
        sending = [self._input] if unsent else []
        readable, writable, _ = select.select([self._output], sending, [], _LOOK_SECONDS)
        if readable:
            piece = os.read(self._output, _PIECE)
            if not piece:
                raise _BrokeDown("the process that reads it crashed")
            received += piece
        if writable:
            try:
                return unsent[os.write(self._input, unsent[:_PIECE]) :]
            except BlockingIOError:
                return unsent
            except BrokenPipeError:
                raise _BrokeDown("the process that reads it crashed") from None
        return unsent

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def _framed(order: dict[str, Any], data: bytes) -> bytes:
    head = json.dumps(order).encode()
    return _LENGTHS.pack(len(head), len(data)) + head + data


def _complete(received: bytearray) -> int | None:
    """The length of the answer with its header, once all of it has arrived."""
    if len(received) < _LENGTHS.size:
        return None
    length = _LENGTHS.size + _LENGTHS.unpack_from(received)[0]
    return length if len(received) >= length else None
