"""Definitions in Lisp source, by our own scanner."""

from __future__ import annotations

from collections.abc import Iterator

from gripfast.lisp.dialects import DIALECTS
from gripfast.lisp.forms import Form, understand
from gripfast.lisp.scanner import scan
from gripfast.outline.definition import Definition, Parsed, Span, nested
from gripfast.outline.text import RowIndex

MOST_FAULTS = 100


def forms(text: str, dialect_name: str) -> Parsed:
    """Every defining form and what wraps some, and where the brackets don't fit."""
    dialect = next(one for one in DIALECTS if one.name == dialect_name)
    rows = RowIndex(text)
    found: list[tuple[Span, Definition]] = []
    faults: list[tuple[int, int]] = []
    for unit in scan(text, dialect):
        if unit.fault:
            faults.append((rows.of(unit.fault.at), rows.of(unit.fault.at)))
        found += _definitions(understand(text, unit, dialect), text, rows)
    return Parsed(nested(found), tuple(faults[:MOST_FAULTS]))


def _definitions(form: Form, text: str, rows: RowIndex) -> Iterator[tuple[Span, Definition]]:
    inside = [each for inner in form.inside for each in _definitions(inner, text, rows)]
    if form.kind == "definition" or inside:
        start, end = form.unit.start, form.unit.end
        first, last = rows.of(start), rows.of(max(start, end - 1))
        kind, name = ("module", "") if form.kind == "wrapper" else ("function", form.name)
        yield (start, end), Definition(kind, name, first, first, min(last, _head(form, text, rows)), last)
    yield from inside


def _head(form: Form, text: str, rows: RowIndex) -> int:
    """The row the lambda list ends on: that of the first bracket which closes, if it closes soon."""
    start = form.unit.start
    first = rows.of(start)
    depth = 0
    for at in range(start, min(form.unit.end, start + 400)):
        depth += (text[at] in "([") - (text[at] in ")]")
        if depth == 1 and text[at] in ")]":
            return min(rows.of(at), first + 3)
    return first
