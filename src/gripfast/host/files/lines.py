"""Windows of lines: any part of a file of any size, in bounded memory, by looking for newlines in large chunks."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import chain

from gripfast.host.files.encodings import TextForm
from gripfast.records import dataclass

CHUNK = 256 * 1024
SLICE = 64 * 1024
KEPT = 64 * 1024  # bytes kept of one line; for a longer one its length is reported too


@dataclass(frozen=True, slots=True)
class LineWindow:
    """Lines as bytes (UTF-8, or what the file is in), without their line ends.

    `first` is the number of the first line, from 1, or from the end and negative; `total` counts the file's lines
    and is None where nobody counted. `long` holds the whole length in bytes of lines that were not kept whole, by
    index. `more` says whether lines follow; `newline` whether the last line shown ends in one.
    """

    lines: list[bytes]
    first: int
    total: int | None
    more: bool
    newline: bool
    long: dict[int, int] = field(default_factory=dict[int, int])


@dataclass(frozen=True, slots=True)
class LinePiece:
    """Bytes from the inside of one line. `length` is that of the whole line; `more` says whether lines follow."""

    data: bytes
    length: int
    more: bool


def file_chunks(fd: int, end: int, start: int = 0) -> Iterator[bytes]:
    """A file's bytes from a position to `end`: what is appended meanwhile is not read. The first
    chunk is small: most windows are at the beginning."""
    size = 64 * 1024
    while data := os.pread(fd, min(size, end - start), start):
        yield data
        start += len(data)
        size = CHUNK


def data_chunks(data: bytes, start: int = 0) -> Iterator[bytes]:
    """Slices small enough that the allocator has them ready: larger ones are mapped again each time."""
    if len(data) <= SLICE and not start:
        yield from (data,) if data else ()
        return
    for at in range(start, len(data), SLICE):
        yield data[at : at + SLICE]


def as_utf8(chunks: Iterator[bytes], form: TextForm) -> Iterator[bytes]:
    """Chunks of a file in UTF-16 as UTF-8. What can't be decoded is shown as U+FFFD."""
    decoder = codecs.getincrementaldecoder(form.codec)("replace")
    skipped = len(form.bom)
    for chunk in chunks:
        if decoded := decoder.decode(chunk[skipped:]):
            yield decoded.encode("utf-8")
        skipped = 0
    if decoded := decoder.decode(b"", final=True):
        yield decoded.encode("utf-8")


def window(chunks: Iterator[bytes], offset: int, limit: int, *, budget: int, count: bool) -> LineWindow:
    """`limit` lines after `offset` ones. Stops early once `budget` bytes of lines are there. `count`: to the end."""
    skipped, rest = _skip(chunks, offset)
    if rest is None:
        return LineWindow([], offset + 1, skipped, more=False, newline=True)
    taken = _Taking(limit, budget)
    taken.run(rest, chunks)
    total = None
    if taken.ended:
        total = offset + len(taken.lines)
    elif count:
        total = offset + len(taken.lines) + _count(taken.rest, chunks)
    return LineWindow(taken.lines, offset + 1, total, not taken.ended, taken.newline, taken.long)


def line_piece(chunks: Iterator[bytes], offset: int, skip: int, size: int) -> LinePiece | None:
    """At most `size` bytes of the line after `offset` ones, without its first `skip` bytes; None past the end."""
    _, rest = _skip(chunks, offset)
    if rest is None:
        return None
    kept, length = bytearray(), 0
    for chunk in chain((rest,), chunks):
        end = chunk.find(b"\n")
        part = chunk if end < 0 else chunk[:end]
        begin = max(0, skip - length)
        kept += part[begin : begin + size - len(kept)]
        length += len(part)
        if end >= 0:
            return _ended(kept, length, skip, end + 1 < len(chunk) or next(chunks, None) is not None)
    return LinePiece(bytes(kept), length, False)


def _ended(kept: bytearray, length: int, skip: int, more: bool) -> LinePiece:
    """A piece of a line that has a line end; a CR there belongs to it."""
    at_end = skip + len(kept) == length and kept.endswith(b"\r")
    return LinePiece(bytes(kept[:-1] if at_end else kept), length - at_end, more)


def count_lines(chunks: Iterator[bytes]) -> int:
    return _count(b"", chunks)


def _count(rest: bytes, chunks: Iterator[bytes]) -> int:
    lines, last = rest.count(b"\n"), rest
    for chunk in chunks:
        lines += chunk.count(b"\n")
        last = chunk or last
    return lines + (1 if last and not last.endswith(b"\n") else 0)


def _skip(chunks: Iterator[bytes], lines: int) -> tuple[int, bytes | None]:
    """Pass over lines. What follows them in the chunk where they end, or None: the file has no more lines.

    Chunks are never empty."""
    if lines == 0:
        return 0, next(chunks, None)
    passed, tail = 0, b"\n"
    for chunk in chunks:
        here = chunk.count(b"\n")
        if passed + here >= lines:
            return lines, chunk[_after_newline(chunk, lines - passed) :] or next(chunks, None)
        passed += here
        tail = chunk[-1:] or tail
    return passed + (tail != b"\n"), None


def _after_newline(chunk: bytes, number: int) -> int:
    """The position after the `number`-th newline of a chunk, found by bisection and then by single steps."""
    low, high = 0, len(chunk)
    while number > 8 and high - low > 256:
        middle = (low + high) // 2
        here = chunk.count(b"\n", low, middle)
        if here >= number:
            high = middle
        else:
            number -= here
            low = middle
    for _ in range(number):
        low = chunk.index(b"\n", low) + 1
    return low


class _Taking:
    """Collects whole lines from chunks until there are enough, keeping the beginning of very long ones."""

    def __init__(self, limit: int, budget: int) -> None:
        self.lines: list[bytes] = []
        self.long: dict[int, int] = {}
        self.rest = b""
        self.ended = False
        self.newline = False
        self._limit = limit
        self._budget = budget
        self._open = b""  # the beginning of a line whose end is not here yet
        self._open_length = 0

    def run(self, chunk: bytes | None, chunks: Iterator[bytes]) -> None:
        while chunk is not None:
            if self._enough():
                self.rest = chunk
                return
            self._take(chunk)
            chunk = self.rest if self.rest else next(chunks, None)
            self.rest = b""
        self.ended = True
        self.newline = not self._open_length
        if self._open_length:
            self._close(b"", b"")

    def _enough(self) -> bool:
        return len(self.lines) >= self._limit or self._budget <= 0

    def _take(self, chunk: bytes) -> None:
        parts = chunk.split(b"\n", self._limit - len(self.lines))
        last = parts.pop()
        enough = len(parts) == self._limit - len(self.lines)
        if self._take_at_once(parts, len(chunk) - len(last), b"\r" in chunk):
            parts = []
        for position, part in enumerate(parts):
            self._close(part, b"\r")
            if self._budget <= 0 and position + 1 < len(parts):
                self.rest = b"\n".join([*parts[position + 1 :], last])
                return
        if enough or self._budget <= 0:
            self.rest = last
            self.newline = True
            return
        self._open_length += len(last)
        self._open = (self._open + last[:KEPT])[:KEPT] if len(self._open) < KEPT else self._open

    def _take_at_once(self, parts: list[bytes], size: int, returns: bool) -> bool:
        """The common case: lines that all fit, none of them too long to be kept."""
        cost = size + 7 * len(parts)
        if self._open_length or not parts or cost >= self._budget or (size > KEPT and max(map(len, parts)) > KEPT):
            return False
        self._budget -= cost
        self.lines += [part.removesuffix(b"\r") for part in parts] if returns else parts
        return True

    def _close(self, part: bytes, stripped: bytes) -> None:
        length = self._open_length + len(part)
        line = self._open + part if self._open else part
        if length > KEPT:
            line = line[:KEPT]
            self.long[len(self.lines)] = length
        else:
            line = line.removesuffix(stripped)
        self._budget -= min(len(line), 8192) + 8
        self.lines.append(line)
        self._open, self._open_length = b"", 0


def tail_start(fd: int, size: int, lines: int, step: Callable[[], None] = lambda: None) -> tuple[int, int]:
    """Where the last `lines` lines of a file begin, found from the end; and how many there really are. `step` is
    called before every chunk, and may raise to give up."""
    end, wanted = size, lines
    if size and os.pread(fd, 1, size - 1) == b"\n":
        wanted += 1
    found = 0
    while end > 0:
        step()
        begin = max(0, end - CHUNK)
        chunk = os.pread(fd, end - begin, begin)
        here = chunk.count(b"\n")
        if found + here >= wanted:
            return begin + _after_newline(chunk, here - (wanted - found) + 1), lines
        found += here
        end = begin
    return 0, found if wanted > lines else found + (1 if size else 0)
