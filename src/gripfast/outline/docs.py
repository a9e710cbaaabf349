"""The line of words that belongs to a definition: of its docstring, or of the comment right above it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gripfast.outline.definition import Definition
from gripfast.outline.text import SourceText

FARTHEST = 200  # rows a comment is followed upwards
_STRING = re.compile(r"\s*[rRbBuUfF]{0,2}(\"\"\"|'''|\"|')")
_WORD = re.compile(r"\w")


def doc_row(text: SourceText, definition: Definition) -> int | None:
    """The row of the first line with words, or None."""
    inside = _docstring(text.lines, definition.head, definition.end) if text.docstring else None
    return inside or _above(text, definition.start)


def _docstring(lines: Sequence[str], head: int, end: int) -> int | None:
    row = _next_with_text(lines, head + 1, end)
    opening = _STRING.match(lines[row - 1]) if row else None
    if row is None or opening is None:
        return None
    return row if lines[row - 1][opening.end() :].strip() else _next_with_text(lines, row + 1, end)


def _next_with_text(lines: Sequence[str], row: int, end: int) -> int | None:
    return next((at for at in range(row, min(end, row + 5) + 1) if lines[at - 1].strip()), None)


def _above(text: SourceText, start: int) -> int | None:
    first = comment_above(text, start)
    return next((row for row in range(first, start) if _WORD.search(text.lines[row - 1])), None)


def comment_above(text: SourceText, start: int) -> int:
    """The first row of the comment that ends right above a row; that row itself if there is none."""
    lines, comment = text.lines, text.comment
    first = start
    lowest = max(1, start - FARTHEST)
    while first > lowest and (line := lines[first - 2].strip()) and _belongs(line, comment):
        first -= 1
        if "*/" in line and "/*" not in line and "/*" in comment:
            first = _opening(lines, first, lowest)
    return first


def is_remark(line: str, comment: tuple[str, ...]) -> bool:
    """Whether a line without its indentation is a comment, or inside one that marks its lines."""
    return bool(comment) and f"{line} ".startswith(comment)


def _belongs(line: str, comment: tuple[str, ...]) -> bool:
    return is_remark(line, comment) or (line.endswith("*/") and "/*" in comment and "/*" not in line)


def _opening(lines: Sequence[str], row: int, lowest: int) -> int:
    """The row on which a block comment begins."""
    return next((at for at in range(row, lowest - 1, -1) if "/*" in lines[at - 1]), row)
