"""A source text as its lines, numbered as Read does it, and which of them a character is on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from gripfast.records import dataclass


def lines_of(text: str) -> list[str]:
    """The lines without their ends. A final newline starts no further line."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


@dataclass(frozen=True)
class SourceText:
    """The lines of a file, how a comment line in it begins, whether docstrings stand inside, and marks before a
    definition that are not worth a line."""

    lines: Sequence[str]
    comment: tuple[str, ...] = ()
    docstring: bool = False
    idle: tuple[str, ...] = ()

    @cached_property
    def characters(self) -> int:
        return sum(map(len, self.lines)) + len(self.lines)


class RowIndex:
    """Finds the row (from 1) of a position in a text."""

    def __init__(self, text: str) -> None:
        self._ends: list[int] = []
        at = text.find("\n")
        while at >= 0:
            self._ends.append(at)
            at = text.find("\n", at + 1)

    def of(self, position: int) -> int:
        return bisect_left(self._ends, position) + 1
