"""The line index of a stored output: line counts for each block, so that line n is found without a full scan.

A line ends with LF; a CR before it belongs to the line end. Nothing after the final line end counts as a line.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import accumulate
from typing import Any, cast

from gripfast.errors import Internal
from gripfast.records import dataclass
from gripfast.text.cut import character_start

CAP = 64 * 1024
"""The most bytes of one output that go into a message, for every tool."""
PIECE = 8_000
"""Bytes of one line that are shown at once when it is read from its middle on."""

BLOCK = 64 * 1024
"""Bytes covered by one entry of the line index."""

ReadBytes = Callable[[int, int], bytes]


class LineCount:
    """Counts line ends for each block of a stream, whatever pieces the stream arrives in."""

    def __init__(self) -> None:
        self.size = 0
        self._counts: list[int] = []
        self._open_line = False

    def add(self, data: bytes | bytearray) -> None:
        position = 0
        while position < len(data):
            if self.size % BLOCK == 0:
                self._counts.append(0)
            step = min(len(data) - position, BLOCK - self.size % BLOCK)
            self._counts[-1] += data.count(b"\n", position, position + step)
            position += step
            self.size += step
        if data:
            self._open_line = data[-1] != 0x0A

    @property
    def lines(self) -> int:
        return sum(self._counts) + self._open_line

    def card(self, parts: list[dict[str, Any]] | None = None) -> Card:
        return Card(self.size, self.lines, tuple(self._counts), tuple(parts or ()))


@dataclass(frozen=True, slots=True)
class Card:
    """The index card of an output: what the cache needs to read it; stored next to its bytes."""

    text_size: int
    lines: int
    counts: tuple[int, ...] = field(repr=False)
    parts: tuple[dict[str, Any], ...] = ()

    def pack(self) -> bytes:
        head = {"version": 1, "text_size": self.text_size, "lines": self.lines, "parts": self.parts}
        counts = struct.pack(f"<{len(self.counts)}I", *self.counts)
        return json.dumps(head, separators=(",", ":")).encode() + b"\n" + counts

    @staticmethod
    def unpack(packed: bytes) -> Card:
        head, _, counts = packed.partition(b"\n")
        try:
            fields = cast(dict[str, Any], json.loads(head))
            numbers = struct.unpack(f"<{len(counts) // 4}I", counts)
            return Card(int(fields["text_size"]), int(fields["lines"]), numbers, tuple(fields["parts"]))
        except (ValueError, KeyError, TypeError, struct.error) as fault:
            raise Internal("the output cache has a damaged entry; run the call again") from fault

    @property
    def longest_line(self) -> int:
        """An upper bound for the length of a line, from the longest run of blocks without a line end."""
        run = longest = 0
        for count in self.counts:
            run = 0 if count else run + 1
            longest = max(longest, run)
        return (longest + 2) * BLOCK


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line of a window, or a part of it: `text` is its bytes from `start` to `end`, and `cut` bytes follow."""

    number: int
    text: str
    cut: int = 0
    start: int = 0
    end: int = 0


class OutputLines:
    """The lines of a stored output, located through the index and read in pieces."""

    def __init__(self, card: Card, read: ReadBytes) -> None:
        self._card = card
        self._read = read
        self._before = list(accumulate(card.counts, initial=0))

    def start_of(self, line: int) -> int:
        """The byte offset of line `line` (from 0); the size of the text for a line past the last."""
        if line <= 0:
            return 0
        if line > self._before[-1]:
            return self._card.text_size
        block = bisect_left(self._before, line) - 1
        data = self._block(block)
        return block * BLOCK + _after_line_end(data, line - self._before[block])

    def number_at(self, start: int) -> int:
        """The number (from 1) of the line that begins at byte `start`."""
        block = min(start // BLOCK, len(self._before) - 1)
        return self._before[block] + self._read(block * BLOCK, start - block * BLOCK).count(b"\n") + 1

    def window(self, first: int, limit: int, *, clip: int) -> Iterator[OutputLine]:
        """Lines starting at `first` (from 0), each clipped to `clip` characters."""
        last = min(self._card.lines, first + limit)
        room = clip * 4 + 2
        number, position, held = first, self.start_of(first), b""
        while number < last:
            end = held.find(b"\n")
            if end < 0 and len(held) < room and position + len(held) < self._card.text_size:
                held += self._piece(position + len(held))
                continue
            after = position + end + 1 if end >= 0 else self._end_of(number, position, held)
            length = after - position - self._has_line_end(number)
            yield _line(number + 1, held[: end if end >= 0 else room], length, clip)
            held = held[after - position :]
            number, position = number + 1, after

    def piece(self, line: int, skip: int, size: int) -> OutputLine | None:
        """At most `size` bytes of line `line` (from 0), after its first `skip` ones; None past the last line."""
        if line >= self._card.lines:
            return None
        begin = self.start_of(line)
        length = self.start_of(line + 1) - begin - self._has_line_end(line)
        skip = min(skip, length)
        before = min(skip, 3)  # the character that `skip` falls into may begin there
        held = self._read(begin + skip - before, min(size + before + 1, length - skip + before))
        start = character_start(held, before)
        end = character_start(held, start + size) if len(held) > start + size else len(held)
        at = skip - before
        return OutputLine(line + 1, decode(held[start:end]), length - at - end, at + start, at + end)

    def _has_line_end(self, number: int) -> bool:
        return number < self._before[-1]

    def _end_of(self, number: int, position: int, held: bytes) -> int:
        if position + len(held) >= self._card.text_size:
            return self._card.text_size
        return self.start_of(number + 1)

    def _piece(self, start: int) -> bytes:
        return self._read(start, min(CAP, self._card.text_size - start))

    def _block(self, block: int) -> bytes:
        return self._read(block * BLOCK, min(BLOCK, self._card.text_size - block * BLOCK))


def _after_line_end(data: bytes, count: int) -> int:
    """The position after the `count`th line end: bisection with `bytes.count`, then one line at a time."""
    low, high = 0, len(data)
    while high - low > 1024:
        middle = (low + high) // 2
        found = data.count(b"\n", low, middle)
        if found >= count:
            high = middle
        else:
            low, count = middle, count - found
    position = low
    for _ in range(count):
        position = data.find(b"\n", position) + 1
        if position == 0:
            raise Internal("the output cache has a damaged entry; run the call again")
    return position


def _line(number: int, body: bytes, length: int, clip: int) -> OutputLine:
    """A line of `length` bytes, of which `body` may be only the beginning."""
    text = decode(body.removesuffix(b"\r"))
    if len(text) <= clip and length == len(body):
        return OutputLine(number, text)
    end = min(length, _clipped_size(body, clip))
    return OutputLine(number, decode(body[:end]), length - end, end=end)


def _clipped_size(body: bytes, clip: int) -> int:
    """The size in bytes of the first `clip` characters; an invalid byte counts as one character."""
    return len(body.decode("utf-8", "surrogateescape")[:clip].encode("utf-8", "surrogateescape"))


def decode(data: bytes | bytearray) -> str:
    """Bytes of an output as text; invalid UTF-8 becomes U+FFFD."""
    return data.decode("utf-8", "replace")


def encode(text: str) -> bytes:
    """Text as stored bytes; lone surrogates, which UTF-8 can't encode, are written as `\\udXXX`."""
    return text.encode("utf-8", "backslashreplace")
