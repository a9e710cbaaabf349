"""Finds a guard in the source by its function, its shape and the names it mentions, and takes it away.

A place is `file::function`, `file::Class.method`, `file::function.inner`, `file::VARIABLE` or the file alone. There,
a cut names one spot by its shape and by names that occur in it (variables, attributes, functions, constants) or,
after a `!`, that don't. Comments, layout, messages and the order of statements don't matter. If a spot that fits
contains another, the inner one is meant.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from torture.shapes import Shape, Spot, definitions, spots


@dataclass(frozen=True)
class Cut:
    """A spot, and what stands there afterwards; None: nothing."""

    shape: Shape
    names: tuple[str, ...]
    by: str | None

    def __str__(self) -> str:
        return f"{self.shape} with {', '.join(map(repr, self.names))}"


def never(*names: str) -> Cut:
    """The condition of an `if`, a `while`, a filter or an `a if b else c` becomes False."""
    return Cut("condition", names, "False")


def always(*names: str) -> Cut:
    return Cut("condition", names, "True")


def condition(*names: str, by: str) -> Cut:
    return Cut("condition", names, by)


def skip(*names: str) -> Cut:
    """A statement becomes `pass`."""
    return Cut("statement", names, "pass")


def statement(*names: str, by: str) -> Cut:
    return Cut("statement", names, by)


def drop(*names: str) -> Cut:
    """An operand of `and`, `or` or `|`, an item, an argument, a filter or a decorator is left out."""
    return Cut("part", names, None)


def part(*names: str, by: str) -> Cut:
    return Cut("part", names, by)


def call(function: str, *names: str, by: str) -> Cut:
    """A call of a function or method. `$0` and `$1` in `by` are its arguments, `$on` is the object of a method."""
    return Cut("call", (function, *names), by)


def value(name: str, *names: str, by: str) -> Cut:
    """What a variable, an attribute, a keyword argument or a key gets. Here and elsewhere, `$it` is what it was."""
    return Cut("value", (name, *names), by)


def loop(*names: str, by: str) -> Cut:
    """What a `for` goes through."""
    return Cut("loop", names, by)


def handler(*names: str, by: str) -> Cut:
    """What an `except` catches."""
    return Cut("handler", names, by)


def text(piece: str, *, by: str) -> Cut:
    """A piece of a string, for what is written in another language."""
    return Cut("text", (piece,), by)


_SHOWN = 6


class LostPlace(Exception):
    """A guard is not where the list says."""


class ManyPlaces(LostPlace):
    """A guard may be in several places."""


@dataclass(frozen=True)
class Guard:
    """A guard: its place, how to take it away, and the tests that must then fail."""

    name: str
    place: str
    cuts: Cut | tuple[Cut, ...]
    tests: str

    @property
    def file(self) -> str:
        return self.place.partition("::")[0]

    def without(self, source: str) -> str:
        """The text of the guard's file without the guard; LostPlace if it is not in exactly one place."""
        tree = ast.parse(source)
        for cut in self.cuts if isinstance(self.cuts, tuple) else (self.cuts,):
            _apply(cut, _only_spot(tree, self.place, cut))
        return ast.unparse(ast.fix_missing_locations(tree))

    def taken_from(self, source: Path) -> str:
        """The text of the guard's file, below the directory `source`, without the guard."""
        try:
            return self.without((source / self.file).read_text(encoding="utf-8"))
        except ManyPlaces as fault:
            what = str(fault)
        except LostPlace as fault:
            what = f"{fault}{_elsewhere(source, self)}"
        except FileNotFoundError:
            what = f"there is no {self.file}{_elsewhere(source, self)}"
        raise LostPlace(f"the guard {self.name!r} is lost: {what}; mend it in torture/*_guards.py")


def _only_spot(tree: ast.Module, place: str, cut: Cut) -> Spot:
    file, _, name = place.partition("::")
    scopes = [node for known, node in definitions(tree) if known == name] if name else [tree]
    if not scopes:
        raise LostPlace(f"{file} has no `{name}`")
    found = [spot for scope in scopes for spot in spots(scope, cut.shape, cut.names)]
    if not found:
        raise LostPlace(f"{place} has no {cut}")
    if len(found) > 1:
        lines = ", ".join(f"{spot.line}" for spot in found)
        raise ManyPlaces(f"{place} has more than one {cut} (lines {lines}); add a name that only the guard mentions")
    return found[0]


def _elsewhere(source: Path, guard: Guard) -> str:
    """Where a guard may have gone: other places in its file that fit or, if there are none, places in other files."""
    cut = guard.cuts[0] if isinstance(guard.cuts, tuple) else guard.cuts
    own = source / guard.file
    found = own.is_file() and _fitting(source, own, cut)
    others = (place for file in sorted(source.rglob("*.py")) for place in _fitting(source, file, cut))
    places = found or list(islice(others, _SHOWN))
    return f"; it may be in {' or '.join(places)}" if places else ""


def _fitting(source: Path, file: Path, cut: Cut) -> list[str]:
    known = definitions(ast.parse(file.read_text(encoding="utf-8")))
    names = [name for name, node in known if len(spots(node, cut.shape, cut.names)) == 1]
    inner = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
    return [f"{file.relative_to(source)}::{name}" for name in inner]


def _apply(cut: Cut, spot: Spot) -> None:
    if cut.by is None:
        _remove(spot)
    elif isinstance(spot.node, ast.Constant) and cut.shape == "text":
        spot.node.value = _reworded(spot.node.value, cut.names[0], cut.by)
    elif isinstance(spot.node, ast.stmt):
        getattr(spot.owner, spot.field)[spot.index : (spot.index or 0) + 1] = ast.parse(cut.by).body
    else:
        _put(spot, ast.parse(_filled(cut.by, spot.node), mode="eval").body)


def _reworded(old: object, piece: str, by: str) -> str | bytes:
    if isinstance(old, bytes):
        return old.replace(piece.encode(), by.encode())
    return str(old).replace(piece, by)


def _remove(spot: Spot) -> None:
    if spot.index is None:
        _put(spot, ast.Constant(0))  # an operand of `|`
    else:
        del getattr(spot.owner, spot.field)[spot.index]


def _put(spot: Spot, node: ast.expr) -> None:
    if spot.index is None:
        setattr(spot.owner, spot.field, node)
    else:
        getattr(spot.owner, spot.field)[spot.index] = node


def _filled(by: str, node: ast.AST) -> str:
    """The replacement with `$it`, `$on`, `$0` and `$1` filled in."""
    by = by.replace("$it", f"({ast.unparse(node)})")
    if isinstance(node, ast.Call):
        for at, argument in enumerate(node.args):
            by = by.replace(f"${at}", f"({ast.unparse(argument)})")
        if isinstance(node.func, ast.Attribute):
            by = by.replace("$on", f"({ast.unparse(node.func.value)})")
    return by
