"""What is left out between the shown rows of a text: the rest of each definition, and other code."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from gripfast.outline.docs import comment_above, is_remark
from gripfast.outline.text import SourceText
from gripfast.records import dataclass


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows that are left out, both inclusive."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"… {self.first}" if self.first == self.last else f"… {self.first}–{self.last}"


def folded(text: SourceText, rows: Iterable[int], ends: Iterable[int]) -> list[int | Fold]:
    """The rows in order with a fold wherever something is left out. `ends` are the last rows of the definitions that
    are shown: a fold ends there, and what follows has one of its own."""
    seen: list[int | Fold] = []
    stops = sorted(set(ends))
    total = len(text.lines)
    for before, row in pairwise([0, *sorted(rows), total + 1]):
        if row - before > 1:
            seen += _between(text, before + 1, row - 1, stops)
        if row <= total:
            seen.append(row)
    return seen


def beside(text: SourceText, rows: Iterable[int], ends: Mapping[int, int]) -> list[int | Fold]:
    """The rows in order, and after a row that has an end a fold for the rest of that definition, even if rows of that
    follow. Nothing else is marked."""
    seen: list[int | Fold] = []
    for row in sorted(rows):
        seen.append(row)
        if row < ends.get(row, 0):
            seen += _fold(text.lines, row + 1, ends[row])
    return seen


def _between(text: SourceText, first: int, last: int, stops: Sequence[int]) -> Iterator[Fold]:
    for stop in stops[bisect_left(stops, first) : bisect_right(stops, last)]:
        yield from _fold(text.lines, first, stop)
        first = stop + 1
    yield from _fold(text.lines, first, last if last == len(text.lines) else _last_of_code(text, first, last))


def _fold(lines: Sequence[str], first: int, last: int) -> Iterator[Fold]:
    """Without the blank lines around it; none if there is nothing else."""
    while first <= last and not lines[first - 1].strip():
        first += 1
    while first <= last and not lines[last - 1].strip():
        last -= 1
    if first <= last:
        yield Fold(first, last)


def _last_of_code(text: SourceText, first: int, last: int) -> int:
    """Comments belong to what is shown below them and have no fold; nor does a bracket alone. `first - 1` if there is
    nothing else."""
    while first <= last:
        above = max(first, comment_above(text, last + 1))
        if above <= last:
            last = above - 1
        elif _is_spare(text.lines[last - 1].strip(), text):
            last -= 1
        else:
            return last
    return last


def _is_spare(line: str, text: SourceText) -> bool:
    return not line or line == "{" or is_remark(line, text.comment) or line in text.idle
