"""Streams output into the cache while a command runs, in bounded memory."""

from __future__ import annotations

import threading

from anyio import to_thread

from gripfast.call.cache.lines import CAP, Card, LineCount, decode
from gripfast.call.cache.store import Store, Writer
from gripfast.call.cache.view import MARKER_ROOM, NO_STORE, SaveResult, head_tail_view, show_size
from gripfast.errors import ToolError
from gripfast.messages import OutputRef
from gripfast.records import dataclass
from gripfast.text.redact import Redactor

ROOM = CAP - 4 * 1024
"""Size of the view in bytes; leaves 4 KiB of CAP for the tool's own text around it."""


FLUSH = 256 * 1024
"""Bytes that are collected before they are written to the store."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A finished stream: its text, or head and tail with a marker between them if something is left out."""

    text: str
    ref: OutputRef | None
    size: int
    lines: int


class Sink:
    """Takes bytes until `finish`. Never fails: the view says what could not be stored."""

    def __init__(
        self,
        store: Store | None,
        session: str,
        *,
        room: int,
        limit: int,
        readers: tuple[str, ...] = (),
        redactor: Redactor | None = None,
    ) -> None:
        self._store = store
        self._session = session
        self._fits = room
        self._room = max(room, 2 * MARKER_ROOM)
        self._limit = limit
        self._readers = readers
        self._lock = threading.Lock()
        self._redactor = redactor
        self._waiting = b""  # the end of the output so far, in which a secret may begin
        self._size = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._pending = bytearray()
        self._count = LineCount()  # of everything that has left _pending
        self._writer: Writer | None = None
        self._card: Card | None = None  # of what was stored, once the limit is reached
        self._lost: str | None = None if store else NO_STORE

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._size

    def write(self, data: bytes) -> None:
        """Take bytes, from any thread. May block on the disk or the network; on the event loop use `feed`."""
        with self._lock:
            self._take(data)
            if len(self._pending) >= FLUSH:
                self._flush()

    async def feed(self, data: bytes) -> None:
        """`write` for the event loop: uses a thread only when a block is full."""
        if len(self._pending) + len(data) >= FLUSH or not self._lock.acquire(blocking=False):
            await to_thread.run_sync(self.write, data)
            return
        try:
            self._take(data)
        finally:
            self._lock.release()

    def read(self, start: int, size: int) -> bytes:
        """Bytes written so far, from `start`; fewer or none where they were not stored."""
        with self._lock:
            flushed = self._count.size
            if start >= flushed:
                return bytes(self._pending[start - flushed : start - flushed + size])
            saved = self._card.text_size if self._card else flushed
            if self._writer is not None and start < saved:
                return self._read_back(self._writer, start, min(size, saved - start))
            return self._read_memory(start, size)

    def take_back(self) -> bytes:
        """Takes the beginning of a secret, if the output so far ends with one, for whoever gets the rest of it."""
        with self._lock:
            size = 0 if self._redactor is None else self._redactor.begun_secret(self._waiting)
            end = len(self._waiting) - size
            taken, self._waiting = self._waiting[end:], self._waiting[:end]
        return taken

    async def finish(self) -> Streamed:
        """End the stream and return what to show and a ref to the rest. Nothing is stored if everything fits."""
        if self._redactor is not None and self._waiting:
            with self._lock:
                self._add(self._redactor.bytes(self._waiting))
                self._waiting = b""
        if self._size <= self._fits:
            self._count.add(self._pending)
            return Streamed(decode(self._head), None, self._size, self._count.lines)
        saved = await to_thread.run_sync(self._commit)
        view = head_tail_view(self._head, self._tail, self._room, count=self._count, saved=saved)
        return Streamed(view, saved.ref, self._size, self._count.lines)

    def abandon(self) -> None:
        """Discard the stream and leave nothing in the store. Does nothing after `finish`."""
        with self._lock:
            self._drop_writer()

    def _take(self, data: bytes) -> None:
        if self._redactor is not None:
            data, self._waiting = self._redactor.split(self._waiting + data)
        self._add(data)

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        if len(self._head) < self._room:
            self._head += data[: self._room - len(self._head)]
        self._tail += data[-self._room :]
        if len(self._tail) > 2 * self._room:
            del self._tail[: -self._room]
        self._pending += data

    def _flush(self) -> None:
        data, self._pending = self._pending, bytearray()
        keep = self._limit - self._count.size
        if self._lost is None and len(data) > keep:
            self._send(data[:keep])
            self._count.add(data[:keep])
            self._card = self._count.card()
            self._lost = self._lost or f"only the first {show_size(self._limit)} were stored"
            data = data[keep:]
        elif self._lost is None:
            self._send(data)
        self._count.add(data)

    def _send(self, data: bytearray) -> None:
        try:
            if self._writer is None and self._store is not None:
                self._writer = self._store.writer(self._session)
            if self._writer is not None:
                self._writer.write(data)
        except (ToolError, OSError) as fault:
            self._lose(fault)

    def _lose(self, fault: ToolError | OSError) -> None:
        self._lost = failed(fault)
        self._drop_writer()

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None

    def _commit(self) -> SaveResult:
        with self._lock:
            self._flush()
            if self._writer is None:
                return SaveResult(None, self._lost)
            card = self._card or self._count.card()
            try:
                ref = OutputRef(self._writer.commit(card.pack()), card.text_size, card.lines)
            except (ToolError, OSError) as fault:
                self._lose(fault)
                return SaveResult(None, self._lost)
            self._writer = None
            return SaveResult(ref, self._lost, self._readers)

    def _read_back(self, writer: Writer, start: int, size: int) -> bytes:
        try:
            return writer.read(start, size)
        except (ToolError, OSError) as fault:
            self._lose(fault)
            return self._read_memory(start, size)

    def _read_memory(self, start: int, size: int) -> bytes:
        if start < len(self._head):
            return bytes(self._head[start : start + size])
        begin = self._size - len(self._tail)
        return bytes(self._tail[start - begin : start - begin + size]) if start >= begin else b""


class Failures:
    """How often a store failed since the program started."""

    def __init__(self) -> None:
        self.count = 0


FAILURES = Failures()


def failed(fault: ToolError | OSError) -> str:
    """Counts a failure of a store. Returns why it failed, in a few words and without a path."""
    FAILURES.count += 1
    if isinstance(fault, ToolError):
        return fault.message
    return f"the output cache failed: {fault.strerror or type(fault).__name__}"
