"""Lines of a stored output: how many each block holds, and so where line n begins without a scan.

A line ends with LF; a CR before it belongs to the line end. A final line end starts no further line.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, cast

from holdfast.errors import Internal

CAP = 64 * 1024
"""Bytes of one output that go into a message, for every tool."""

BLOCK = 64 * 1024
"""Bytes that share one entry of the line index."""

Read = Callable[[int, int], bytes]


class LineCount:
    """Counts line ends per block of a stream, however the stream is cut into pieces."""

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
    """What the cache must know of an output to read it: kept by the store beside the bytes."""

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
            facts = cast(dict[str, Any], json.loads(head))
            numbers = struct.unpack(f"<{len(counts) // 4}I", counts)
            return Card(int(facts["text_size"]), int(facts["lines"]), numbers, tuple(facts["parts"]))
        except (ValueError, KeyError, TypeError, struct.error) as fault:
            raise Internal("the output cache has a damaged entry; run the call again") from fault

    @property
    def longest_line(self) -> int:
        """No line is longer than this: a line of three blocks leaves a block without a line end."""
        run = longest = 0
        for count in self.counts:
            run = 0 if count else run + 1
            longest = max(longest, run)
        return (longest + 2) * BLOCK


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a window: `cut` says how many of its bytes are not in `text`."""

    number: int
    text: str
    cut: int = 0


class Lines:
    """The lines of a stored output, found by index and read in pieces."""

    def __init__(self, card: Card, read: Read) -> None:
        self._card = card
        self._read = read
        self._before = list(accumulate(card.counts, initial=0))

    def start_of(self, line: int) -> int:
        """The byte where line `line` (from 0) begins; the end for a line past the last."""
        if line <= 0:
            return 0
        if line > self._before[-1]:
            return self._card.text_size
        block = bisect_left(self._before, line) - 1
        data = self._block(block)
        return block * BLOCK + _after_line_end(data, line - self._before[block])

    def number_at(self, start: int) -> int:
        """The number, from 1, of the line that begins at byte `start`."""
        block = min(start // BLOCK, len(self._before) - 1)
        return self._before[block] + self._read(block * BLOCK, start - block * BLOCK).count(b"\n") + 1

    def window(self, first: int, limit: int, *, clip: int) -> Iterator[Line]:
        """Lines from `first` (from 0), each no longer than `clip` characters."""
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
    """The position after the `count`th line end: halving by C-speed counts, then stepping."""
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


def _line(number: int, body: bytes, length: int, clip: int) -> Line:
    """`length` is that of the whole line in bytes; `body` may be its beginning only."""
    text = decode(body.removesuffix(b"\r"))
    if len(text) <= clip and length == len(body):
        return Line(number, text)
    text = text[:clip]
    return Line(number, text, max(0, length - len(encode(text))))


def decode(data: bytes | bytearray) -> str:
    """Bytes of an output as text for a reader; what is no UTF-8 shows as U+FFFD."""
    return data.decode("utf-8", "replace")


def encode(text: str) -> bytes:
    """Text as it is stored; lone surrogates, which no encoding has, are spelled out."""
    return text.encode("utf-8", "backslashreplace")
