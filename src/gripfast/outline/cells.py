"""The cells of a notebook, in the text that Read shows of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gripfast.outline.definition import Definition, Parsed

_CELL = re.compile(r"<cell (\d+) (\w+)(?: \[\d+\])?>$")


def cells_of(lines: Sequence[str]) -> Parsed:
    """Each cell with its first line of source; the rest of it and its outputs are folded."""
    starts: list[tuple[int, str]] = []
    for row, line in enumerate(lines, 1):
        mark = _CELL.match(line)
        if mark and int(mark[1]) == len(starts) + 1:
            starts.append((row, f"cell {mark[1]}"))
    ends = [*(row - 1 for row, _ in starts[1:]), len(lines)][: len(starts)]
    return Parsed(
        tuple(
            Definition("section", name, row, row, _head(lines, row, end), end)
            for (row, name), end in zip(starts, ends, strict=True)
        )
    )


def _head(lines: Sequence[str], row: int, end: int) -> int:
    """The cell's mark and its first line; of code the first three, which say more."""
    wanted = 3 if " code" in lines[row - 1] else 1
    outputs = next((at for at in range(row + 1, end + 1) if lines[at - 1] == "<output>"), end + 1)
    return min(row + wanted, outputs - 1)
