"""Standard input and output as a wire of lines: read and written by the event loop, kept from everyone else.

While a wire is claimed, descriptor 0 is the null device and 1 is standard error, so that nothing else in the
process, and no child of it, can read from the wire or write a stray word onto it.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import sys
from collections import deque
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager, suppress

import anyio
import anyio.to_thread

_CHUNK = 1 << 18
_HIGH_WATER = 1 << 22


class LineTooLong(Exception):
    """A line longer than the wire takes; it was read to its end and thrown away."""


@contextmanager
def claim_wire(limit: int) -> Generator[Wire]:
    """Takes standard input and output for the protocol, and gives them back at the end."""
    fds = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    try:
        _divert()
        yield Wire(fds[0], fds[1], limit)
    finally:
        _flush()
        os.dup2(fds[0], 0)
        os.dup2(fds[1], 1)
        for fd in fds:
            os.close(fd)


def _divert() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without a standard error
        os.dup2(null, 1)
    os.close(null)


def _flush() -> None:
    """What a tool printed may still wait in a buffer; given back first, it would end up on the wire."""
    with suppress(OSError, ValueError):  # full, or closed
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - started without one
            sys.stdout.flush()


class Wire:
    """Lines in, bytes out, without a thread between: a thread costs each message more than the work does."""

    def __init__(self, source: int, sink: int, limit: int) -> None:
        self._source = source
        self._sink = sink
        self._limit = limit
        self._chunks: deque[bytes] = deque()
        self._waiting = 0
        self._arrived = asyncio.Event()
        self._ended = False
        self._reading = False
        self._writable = select.poll()
        self._writable.register(sink, select.POLLOUT)

    async def lines(self) -> AsyncIterator[bytes | LineTooLong]:
        """Every line without its end; one that is too long comes as a LineTooLong in its place."""
        rest, seen, dropping = bytearray(), 0, False
        async for chunk in self._stream():
            rest += chunk
            while (end := rest.find(b"\n", seen)) >= 0:
                line = bytes(rest[:end])
                del rest[: end + 1]
                seen = 0
                yield LineTooLong() if dropping or len(line) > self._limit else line
                dropping = False
            seen = len(rest)
            if seen > self._limit:
                rest, seen, dropping = bytearray(), 0, True
        if dropping or rest:
            yield LineTooLong() if dropping else bytes(rest)

    async def _stream(self) -> AsyncIterator[bytes]:
        try:
            self._listen()
        except PermissionError:  # a regular file: the loop can't wait for one
            while chunk := await anyio.to_thread.run_sync(os.read, self._source, _CHUNK, abandon_on_cancel=True):
                yield chunk
            return
        try:
            while chunk := await self._next():
                yield chunk
        finally:
            self._pause()

    async def _next(self) -> bytes:
        while not self._chunks:
            if self._ended:
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        chunk = self._chunks.popleft()
        self._waiting -= len(chunk)
        if not self._ended and self._waiting < _HIGH_WATER:
            self._listen()
        return chunk

    def _listen(self) -> None:
        if not self._reading:
            asyncio.get_running_loop().add_reader(self._source, self._take)
            self._reading = True

    def _pause(self) -> None:
        if self._reading:
            asyncio.get_running_loop().remove_reader(self._source)
            self._reading = False

    def _take(self) -> None:
        try:
            chunk = os.read(self._source, _CHUNK)
        except BlockingIOError:  # somebody else at the other end made it non-blocking
            return
        except OSError:
            chunk = b""
        if chunk:
            self._chunks.append(chunk)
            self._waiting += len(chunk)
        else:
            self._ended = True
        if self._ended or self._waiting >= _HIGH_WATER:
            self._pause()
        self._arrived.set()

    async def write(self, data: bytes) -> None:
        """All of it, in pieces that a ready pipe takes without blocking. BrokenPipeError when nobody reads."""
        view = memoryview(data)
        while view:
            if not self._writable.poll(0):
                await anyio.wait_writable(self._sink)
            try:
                view = view[os.write(self._sink, view[: select.PIPE_BUF]) :]
            except BlockingIOError:
                await anyio.wait_writable(self._sink)
