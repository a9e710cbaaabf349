"""What a language engine finds in a source text, whatever the language: definitions and places that don't parse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

# Kinds whose inside is an implementation. What is defined in there is local: folded with the body.
BODIES = frozenset({"function", "method"})
_NO_SCOPES = frozenset({"type", "declaration"})


@dataclass(frozen=True, slots=True)
class Definition:
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
        return self.name.rpartition(".")[2]

    def moved(self, rows: int) -> Definition:
        """The same, so many rows further down."""
        return replace(
            self, start=self.start + rows, line=self.line + rows, head=self.head + rows, end=self.end + rows
        )


@dataclass(frozen=True, slots=True)
class Parsed:
    """The definitions of a text from first to last, outer before inner; and the rows that don't parse."""

    definitions: tuple[Definition, ...] = ()
    faults: tuple[tuple[int, int], ...] = ()


Span: TypeAlias = tuple[int, int]


def nested(found: Iterable[tuple[Span, Definition]]) -> tuple[Definition, ...]:
    """In order, each with its depth and its name qualified by what it lies in. Spans are of bytes or characters:
    two definitions may share a row, and one node may define two names."""
    done: list[Definition] = []
    around: list[tuple[Span, Definition]] = []
    for span, each in sorted(found, key=lambda one: (one[0][0], -one[0][1])):
        while around and not _lies_in(span, around[-1][0]):
            around.pop()
        inner = _inside(around[-1][1], each) if around else each
        done.append(inner)
        around.append((span, inner))
    return tuple(done)


def _lies_in(span: Span, outer: Span) -> bool:
    return outer[0] <= span[0] and span[1] <= outer[1] and span != outer


def _inside(outer: Definition, each: Definition) -> Definition:
    scoped = outer.kind not in _NO_SCOPES and outer.name
    return replace(
        each,
        name=f"{outer.name}.{each.name}" if scoped else each.name,
        depth=outer.depth + 1,
        local=outer.local or outer.kind in BODIES,
    )


def to_plain(found: Parsed) -> dict[str, Any]:
    """As plain lists, to be sent between processes."""
    rows = [[d.kind, d.name, d.start, d.line, d.head, d.end, d.depth, d.local] for d in found.definitions]
    return {"definitions": rows, "faults": [list(fault) for fault in found.faults]}


def from_plain(plain: dict[str, Any]) -> Parsed:
    definitions = tuple(Definition(*row) for row in plain["definitions"])
    return Parsed(definitions, tuple((first, last) for first, last in plain["faults"]))
