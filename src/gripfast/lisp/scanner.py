"""Splits source text into top-level units. Text is only matched; nothing is ever read or evaluated as Lisp.

A unit is what one call of the Lisp reader would consume: an object with its quotes, or `#+condition object`.
At depth 0 one regular expression classifies the next lexeme; inside a list only changes of depth matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gripfast.lisp.dialects import COMMON_LISP, Dialect, Grammar

NESTED = re.compile(r"\|\#|\#\|")
PREAMBLE = re.compile(r"\ufeff?(?:\#!(?![+-])[^\n]*)?")  # a byte order mark and a `#!` line
RECENT = 4096  # how many preceding units a stray `)` may be merged with

FAULTS = {
    '"': "a string is not closed",
    "|": "a |symbol| is not closed",
    "\\": "nothing follows the backslash",
    "?": "nothing follows the question mark",
    "end": "nothing follows a quote or condition",
    "#": "a lone #",
    "#|": "a #| comment is not closed",
}


class Fault(NamedTuple):
    """What is wrong with the source, and where."""

    at: int
    message: str
    stray: bool = False  # an extra closing bracket, rather than a missing one


class Unit(NamedTuple):
    """One unit, `text[start:end]`. `datum` is where the object itself begins, after quotes and conditions."""

    start: int
    datum: int
    end: int
    fault: Fault | None = None


def scan(text: str, dialect: Dialect = COMMON_LISP) -> Iterator[Unit]:
    """All units of a text, in order. Broken ones carry a fault; scanning continues after them."""
    preamble = PREAMBLE.match(text)
    at, length = preamble.end() if preamble else 0, len(text)
    # How many characters may be scanned again because of faults. Once it is spent, a `(` in column 0 ends any unit:
    # broken source must not cost quadratic time.
    rescan_budget = 2 * length + 65_536
    recent: list[Unit] = []
    while at < length:
        end = length if rescan_budget > 0 else _next_fence(text, at)
        unit = read_unit(text, at, end, dialect)
        if unit is None:
            at = end
            continue
        if unit.fault and unit.fault.stray:
            unit = _fold(text, recent, unit)
        elif unit.fault:
            rescan_budget -= end - unit.start
            unit = unit._replace(end=min(end, _next_fence(text, unit.start)))
        at = unit.end
        if _in_column_0(text, unit.start) or len(recent) >= RECENT:
            yield from recent
            recent.clear()
        recent.append(unit)
    yield from recent


def read_unit(text: str, at: int, end: int, dialect: Dialect = COMMON_LISP) -> Unit | None:
    """The first unit of `text[at:end]`, or None if only whitespace and comments are left."""
    grammar = dialect.grammar
    match = grammar.top.match
    start, needed = -1, 1
    while True:
        found = match(text, at, end)
        if found is None:
            return None if start < 0 else Unit(start, start, end, Fault(start, FAULTS["end"]))
        kind, place, at = found.lastgroup, found.start(), found.end()
        if kind == "skip":
            continue
        if kind == "block":
            past = _block_end(text, at, end)
            if isinstance(past, Fault):
                return Unit(place if start < 0 else start, place, end, past._replace(at=place))
            at = past
            continue
        if start < 0:
            start = place
        if kind == "prefix":
            continue
        if kind == "pair":
            needed += 1
            continue
        if kind == "open":
            past = _list_end(text, at, end, grammar)
            if isinstance(past, Fault):
                return Unit(start, place, end, past._replace(at=start))
            at = past
        elif kind == "close":
            return Unit(start, place, at, Fault(place, "an extra closing bracket", stray=True))
        elif kind == "bad":
            return Unit(start, place, end, Fault(start, FAULTS[text[place]]))
        needed -= 1
        if needed == 0:
            return Unit(start, place, at)


def _list_end(text: str, at: int, end: int, grammar: Grammar) -> int | Fault:
    """The end of the list whose opening bracket is just before `at`."""
    depth = 1
    while True:
        for found in grammar.inner.finditer(text, at, end):
            which = found.lastindex
            if which == 1:
                depth += found.end() - found.start(1)
            elif which == 2:
                depth -= found.end() - found.start(2)
                if depth <= 0:
                    return found.end() + depth
            elif which is None:
                return Fault(end, f"{depth} closing bracket{'s' if depth > 1 else ''} missing")
            else:
                if not found[3].endswith("|") or found[3] == "|":
                    return Fault(end, FAULTS[found[3][0]])
                past = _block_end(text, found.end(), end)
                if isinstance(past, Fault):
                    return past
                at = past
                break


def _block_end(text: str, at: int, end: int) -> int | Fault:
    """The end of the `#|` comment that opens just before `at`; comments nest."""
    depth = 1
    for found in NESTED.finditer(text, at, end):
        depth += 1 if found[0] == "#|" else -1
        if depth == 0:
            return found.end()
    return Fault(end, FAULTS["#|"])


def _fold(text: str, recent: list[Unit], stray: Unit) -> Unit:
    """Merges a stray bracket with the last unit that began in column 0, which was probably closed too early."""
    if not recent or not _in_column_0(text, recent[0].start):
        return stray
    first = recent[0]
    recent.clear()
    return Unit(first.start, first.datum, stray.end, first.fault or stray.fault)


def _next_fence(text: str, at: int) -> int:
    """The start of the next line that begins with `(`; a broken unit is assumed to end there."""
    found = text.find("\n(", at)
    return len(text) if found < 0 else found + 1


def _in_column_0(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"
