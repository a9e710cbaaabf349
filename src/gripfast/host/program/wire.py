"""Standard input and output as a wire of lines, read and written by the event loop and by nobody else.

While a wire is claimed, descriptor 0 is the null device and 1 is standard error, so that nothing else in the
process, and no child of it, can read from the wire or write to it by accident.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import select
import socket
import stat
import sys
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import contextmanager, suppress
from itertools import islice

import anyio
import anyio.to_thread

_CHUNK = 1 << 18
_HIGH_WATER = 1 << 22
_MANY_UNSENT = 512
_AT_ONCE = 64  # messages in one write
_PTMX = (5, 2)


class LineTooLong(Exception):
    """Stands for a line that was too long: it was read to its end and discarded."""


@contextmanager
def claim_wire(limit: int, first: bytes = b"") -> Generator[Wire]:
    """Takes standard input and output for the protocol, and restores them at the end. `first` are bytes that were
    already read from standard input."""
    fds = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1))
    wire = None
    try:
        wire = Wire(fds[0], fds[1], limit, first)
        _divert()
        yield wire
    finally:
        if wire is not None:
            wire.close()
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
    """Flushes what a tool has printed: if standard output were restored first, the text would end up on the wire."""
    with suppress(OSError, ValueError):  # the disk is full, or the stream is closed
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison] - started without one
            sys.stdout.flush()


class Wire:
    """Lines in, bytes out, without a thread in between: a thread costs each message more than the work itself."""

    def __init__(self, source: int, sink: int, limit: int, first: bytes = b"") -> None:
        self._source = source
        self._sink = _WireSink(sink)
        self._limit = limit
        self._chunks: deque[bytes] = deque([first] if first else [])
        self._waiting = len(first)
        self.waits = 0  # how often there was nothing to read yet
        self._arrived = asyncio.Event()
        self._ended = False
        self._reading = False
        self._unsent: deque[_Message] = deque()
        self._unsent_bytes = self._sent_bytes = 0
        self._relief = asyncio.Event()  # set briefly whenever there is room to write again
        self._sending = self._is_due = self._is_closed = False
        self.fault: OSError | None = None
        """Why nothing can be sent any more, if so."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        self._is_closed = True
        self._stop_sending()
        self._sink.close()

    async def lines(self) -> AsyncGenerator[bytes | LineTooLong]:
        """Yields every line without its newline, and a LineTooLong in place of one that is too long."""
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
        except PermissionError:  # epoll_ctl(2) refuses regular files with EPERM
            while self._chunks:
                yield self._chunks.popleft()
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
            self.waits += 1
            await self._arrived.wait()
        chunk = self._chunks.popleft()
        self._waiting -= len(chunk)
        if not self._ended and self._waiting < _HIGH_WATER:
            self._listen()
        return chunk

    def _listen(self) -> None:
        if not self._reading:
            self._loop.add_reader(self._source, self._take)
            self._reading = True

    def _pause(self) -> None:
        if self._reading:
            self._loop.remove_reader(self._source)
            self._reading = False

    def _take(self) -> None:
        try:
            chunk = os.read(self._source, _CHUNK)
        except BlockingIOError:  # another process that shares this descriptor made it non-blocking
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
        """Returns when everything is written; raises OSError if nobody reads. Once begun, a message is written to its
        end even if the caller is cancelled: half a message would spoil every one after it."""
        done = self._loop.create_future()
        message = self._queued(data, lambda: done.done() or done.set_result(None))  # done: its sender was cancelled
        if not self._sending:
            self._send()
        await done
        if self.fault is not None and message.rest:
            raise self.fault

    def post(self, data: bytes, settled: Callable[[], object], *, together: bool = False) -> None:
        """Sends a message without waiting for it; `settled` is called when it is sent, or can't be: see `fault`. With
        `together`, what is posted until the event loop has run what is ready is sent with it."""
        self._queued(data, settled)
        if self._sending or self._is_due:
            return
        if together:
            self._is_due = True
            self._loop.call_soon(self._send)
        else:
            self._send()

    def _queued(self, data: bytes, settled: Callable[[], object]) -> _Message:
        message = _Message(memoryview(data), settled)
        self._unsent.append(message)
        self._unsent_bytes += len(data)
        return message

    async def flush(self) -> None:
        """Returns when everything posted so far is sent, or can't be."""
        if self._unsent:
            done = self._loop.create_future()
            last, settled = self._unsent[-1], self._unsent[-1].settled
            last.settled = lambda: (settled(), done.done() or done.set_result(None))
            await done

    async def room(self, patience: float) -> bool:
        """Waits while too many bytes wait to be sent. False if the other end has closed its own side and has read
        nothing for `patience` seconds."""
        while self.is_crowded:
            sent = self._sent_bytes
            with anyio.move_on_after(patience):
                await self._relief.wait()
            if self.is_crowded and sent == self._sent_bytes and (self._ended or _is_hung_up(self._source)):
                return False
        return True

    @property
    def is_crowded(self) -> bool:
        """Whether too many bytes wait to be sent."""
        return len(self._unsent) > _MANY_UNSENT or self._unsent_bytes > _HIGH_WATER

    def _send(self) -> None:
        """Sends as much as the other end takes now. The event loop calls it again when there is room for more."""
        self._is_due = False
        if self._is_closed:
            return
        try:
            while self._unsent:
                self._advance(self._sink.put([message.rest for message in islice(self._unsent, _AT_ONCE)]))
            self._stop_sending()
        except BlockingIOError:
            self._keep_sending()
        except OSError as fault:
            self.fault = fault
            self._stop_sending()
            self._give_up()
        if not self.is_crowded:
            self._relief.set()
            self._relief.clear()

    def _advance(self, count: int) -> None:
        self._sent_bytes += count
        self._unsent_bytes -= count
        while count:
            message = self._unsent[0]
            size = min(count, len(message.rest))
            message.rest = message.rest[size:]
            count -= size
            if not message.rest:
                self._unsent.popleft()
                message.settled()

    def _give_up(self) -> None:
        given_up, self._unsent = self._unsent, deque[_Message]()
        self._unsent_bytes = 0
        for message in given_up:
            message.settled()

    def _keep_sending(self) -> None:
        if not self._sending:
            self._loop.add_writer(self._sink.fd, self._send)
            self._sending = True

    def _stop_sending(self) -> None:
        if self._sending:
            self._loop.remove_writer(self._sink.fd)
            self._sending = False


class _Message:
    """The unsent rest of a message, and what is called when it is sent or can't be."""

    __slots__ = ("rest", "settled")

    def __init__(self, rest: memoryview, settled: Callable[[], object]) -> None:
        self.rest = rest
        self.settled = settled


def _is_hung_up(fd: int) -> bool:
    """Whether the other end was closed; there may still be something left to read. See poll(2)."""
    poll = select.poll()
    poll.register(fd, getattr(select, "POLLRDHUP", 0))  # POLLHUP always comes; POLLRDHUP (half closed) is Linux only
    return bool(poll.poll(0))


class _WireSink:
    """Writes bytes without ever blocking, and without changing the descriptor for others that share it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._socket: socket.socket | None = None
        self._own = False
        found = os.fstat(fd)
        if stat.S_ISSOCK(found.st_mode):
            self._socket = socket.socket(fileno=os.dup(fd))
        elif _can_be_opened_again(found):
            with suppress(OSError):  # another user's pipe, or no /proc
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
                self.fd = os.open(f"/proc/self/fd/{fd}", flags)
                self._own = True
        self._ready = select.poll()
        self._ready.register(self.fd, select.POLLOUT)

    def put(self, data: list[memoryview]) -> int:
        """Writes some bytes and returns how many. Raises BlockingIOError if none could be written."""
        if self._socket is not None:
            return self._socket.sendmsg(data, (), socket.MSG_DONTWAIT)
        if self._own:
            return os.writev(self.fd, data)
        if not self._ready.poll(0):
            raise BlockingIOError
        return os.write(self.fd, data[0][: select.PIPE_BUF])

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._own:
            os.close(self.fd)


def _can_be_opened_again(found: os.stat_result) -> bool:
    """Whether opening /proc/self/fd/N gives the same pipe or terminal; a pty's master end would give a new pair."""
    if stat.S_ISCHR(found.st_mode):
        return (os.major(found.st_rdev), os.minor(found.st_rdev)) != _PTMX
    return stat.S_ISFIFO(found.st_mode)
