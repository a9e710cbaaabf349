"""Numbered lines, as Read shows them: clipped when long, and never more than the cap."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from holdfast.call.cache import CAP

LONGEST_LINE = 2_000
ROOM = CAP - 1_024  # bytes for lines; the rest is for what is said below them

_prefixes: list[str] = []


def numbered(rows: Sequence[str], first: int, longer: dict[int, int] | None = None) -> list[str]:
    """Rows with their numbers. `longer` tells by index the bytes that a row had before it was cut to size."""
    longest = max(map(len, rows), default=0)
    if longer or longest > LONGEST_LINE:
        rows = [_clipped(row, (longer or {}).get(at)) for at, row in enumerate(rows)]
        longest = LONGEST_LINE * 2
    shown = list(map(operator.add, _prefixed(first, len(rows)), rows))
    return shown if len(shown) * (longest + 8) * 4 < ROOM else _fitting(shown)


def _prefixed(first: int, count: int) -> Sequence[str]:
    if first < 1 or first + count > 100_000:
        return [f"{number:6d}\t" for number in range(first, first + count)]
    while len(_prefixes) < first + count:
        _prefixes.append(f"{len(_prefixes):6d}\t")
    return _prefixes[first : first + count]


def _clipped(row: str, size: int | None) -> str:
    if size is not None:
        return f"{row[:LONGEST_LINE]} [... {size - len(row[:LONGEST_LINE].encode())} more bytes]"
    if len(row) <= LONGEST_LINE:
        return row
    return f"{row[:LONGEST_LINE]} [... {len(row) - LONGEST_LINE} more characters]"


def _fitting(rows: list[str]) -> list[str]:
    """The first rows, as many as there is room for; one at least."""
    if sum(map(len, rows)) * 4 < ROOM:
        return rows
    room = ROOM
    for at, row in enumerate(rows):
        room -= len(row.encode("utf-8", "replace")) + 1
        if room < 0 and at:
            return rows[:at]
    return rows
