"""A text in a language nobody knows here, folded by indentation; prose by its paragraphs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gripfast.outline.definition import Definition, Parsed

_CLOSING = re.compile(r"\s*[)}\]>;,]*\s*$")
_SHARE = 5  # at most one row of so many, before only the first of each paragraph is kept


def by_indentation(lines: Sequence[str]) -> Parsed:
    """What stands at the left edge, each with what is indented below it."""
    rows = _at_the_edge(lines)
    if len(rows) > max(40, len(lines) // _SHARE):
        rows = [row for row in rows if _begins_something(lines, row)]
    ends = [*(row - 1 for row in rows[1:]), len(lines)]
    return Parsed(tuple(Definition("block", "", row, row, row, end) for row, end in zip(rows, ends, strict=False)))


def _at_the_edge(lines: Sequence[str]) -> list[int]:
    indents = [(len(line) - len(line.lstrip()), row) for row, line in enumerate(lines, 1) if not _CLOSING.match(line)]
    edge = min((indent for indent, _ in indents), default=0)
    return [row for indent, row in indents if indent == edge]


def _begins_something(lines: Sequence[str], row: int) -> bool:
    """After an empty line, or with indented lines below."""
    line, before = lines[row - 1], lines[row - 2] if row > 1 else ""
    after = lines[row] if row < len(lines) else ""
    deeper = bool(after.strip()) and len(after) - len(after.lstrip()) > len(line) - len(line.lstrip())
    return not before.strip() or deeper
