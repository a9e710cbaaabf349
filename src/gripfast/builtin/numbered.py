"""Numbered lines as Read shows them: long ones clipped, all together within the output cap."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from gripfast.call.cache import CAP, PIECE
from gripfast.records import dataclass

__all__ = ["LONGEST_LINE", "PIECE", "ROOM", "Clipped", "clipped", "cut_note", "numbered", "numbered_piece"]

LONGEST_LINE = 2_000
ROOM = CAP - 1_024  # bytes for lines; the rest is for the notes below them

_prefixes: list[str] = []


@dataclass(frozen=True, slots=True)
class Clipped:
    """The beginning of a long line, to byte `end`."""

    row: str
    end: int


def clipped(line: bytes, length: int, codec: str) -> Clipped:
    """The first characters of a line of `length` bytes, and how many bytes are missing."""
    kept = line.decode(codec, "surrogateescape")[:LONGEST_LINE].encode(codec, "surrogateescape")
    return Clipped(f"{kept.decode(codec, 'backslashreplace')}{_missing(length - len(kept))}", len(kept))


def numbered_piece(number: int, text: str, start: int, missing: int) -> str:
    """A row that may begin and end inside its line."""
    before = f"[after {start} bytes] " if start else ""
    return f"{number:6d}\t{before}{text}{_missing(missing)}"


def cut_note(cuts: Sequence[tuple[int, int]], call: Callable[[str], str]) -> list[str]:
    """A note on how to read the rest of the first line that is cut. `cuts` are line numbers and the bytes shown."""
    if not cuts:
        return []
    number, end = cuts[0]
    offset = number - 1 if number > 0 else number
    more = len(cuts) - 1
    others = f"; {more} more line{' is' if more == 1 else 's are'} cut" if more else ""
    return [f"[the rest of line {number}: {call(f'offset={offset}, line_offset={end}')}{others}]"]


def _missing(size: int) -> str:
    return f" [... {size} more bytes]" if size > 0 else ""


def numbered(rows: Sequence[str], first: int) -> list[str]:
    """Rows with their numbers, as many as fit."""
    longest = max(map(len, rows), default=0)
    shown = list(map(operator.add, _prefixed(first, len(rows)), rows))
    return shown if len(shown) * (longest + 8) * 4 < ROOM else _fitting(shown)


def _prefixed(first: int, count: int) -> Sequence[str]:
    if first < 1 or first + count > 100_000:
        return [f"{number:6d}\t" for number in range(first, first + count)]
    while len(_prefixes) < first + count:
        _prefixes.append(f"{len(_prefixes):6d}\t")
    return _prefixes[first : first + count]


def _fitting(rows: list[str]) -> list[str]:
    """As many of the first rows as fit, and at least one."""
    if sum(map(len, rows)) * 4 < ROOM:
        return rows
    room = ROOM
    for at, row in enumerate(rows):
        room -= len(row.encode("utf-8", "replace")) + 1
        if room < 0 and at:
            return rows[:at]
    return rows
