"""What a language engine finds in a source text, whatever the language: definitions and places that don't parse.

Named tuples: a worker that starts for its first file would spend longer on importing `dataclasses` than on the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

# Kinds whose inside is an implementation. What is defined in there is local: folded with the body.
BODIES = frozenset({"function", "method"})
DEEPEST = 50  # levels; deeper definitions are folded into the one around them
_NO_SCOPES = frozenset({"type", "declaration"})


class Definition(NamedTuple):
    """Rows count from 1 and are all inclusive: `start` has the decorators, `line` the name's own beginning, `head` is
    the last row of the signature, `end` the last row of all. `name` is qualified, as in `Class.method`."""

    kind: str
    name: str
    start: int
    line: int
    head: int
    end: int
    depth: int = 0
    local: bool = False

    @property
    def own_name(self) -> str:
        """The name without its containers. A computed name, as in `Box.[Symbol.iterator]`, is one name."""
        before, bracket, computed = self.name.rpartition(".[")
        if self.name.endswith("]") and (bracket or self.name.startswith("[")):
            return f"[{computed}" if before else self.name
        return self.name.rpartition(".")[2]

    def moved(self, rows: int) -> Definition:
        """The same, so many rows further down."""
        start, line, head, end = (row + rows for row in self[2:6])
        return self._replace(start=start, line=line, head=head, end=end)


class Parsed(NamedTuple):
    """The definitions of a text from first to last, outer before inner; and the rows that don't parse."""

    definitions: tuple[Definition, ...] = ()
    faults: tuple[tuple[int, int], ...] = ()


Span: TypeAlias = tuple[int, int]


def nested(found: Iterable[tuple[Span, Definition]]) -> tuple[Definition, ...]:
    """In order, each with its depth and its name qualified by its containers. Spans are of bytes or characters:
    two definitions may share a row, and one node may define two names."""
    done: list[Definition] = []
    around: list[tuple[Span, Definition]] = []
    for span, each in sorted(found, key=lambda one: (one[0][0], -one[0][1])):
        while around and not _lies_in(span, around[-1][0]):
            around.pop()
        if len(around) > DEEPEST:
            continue
        inner = _inside(around[-1][1], each) if around else each
        done.append(inner)
        around.append((span, inner))
    return tuple(done)


def _lies_in(span: Span, outer: Span) -> bool:
    return outer[0] <= span[0] and span[1] <= outer[1] and span != outer


def _inside(outer: Definition, each: Definition) -> Definition:
    kind, name, start, line, head, end, _, _ = each
    if outer.kind not in _NO_SCOPES and outer.name:
        name = f"{outer.name}.{name}"
    return Definition(kind, name, start, line, head, end, outer.depth + 1, outer.local or outer.kind in BODIES)


def to_plain(found: Parsed) -> dict[str, Any]:
    """As plain lists, to be sent between processes."""
    return {"definitions": found.definitions, "faults": found.faults}


def from_plain(plain: dict[str, Any]) -> Parsed:
    definitions = tuple(Definition(*row) for row in plain["definitions"])
    return Parsed(definitions, tuple((first, last) for first, last in plain["faults"]))
