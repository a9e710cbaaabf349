"""The shapes a guard can have in a syntax tree: a condition, a statement, a call, and so on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

Shape = Literal["condition", "part", "statement", "call", "value", "loop", "handler", "text"]


@dataclass(frozen=True)
class Spot:
    """A node, and where it hangs in the tree: `owner.field`, or `owner.field[index]`."""

    owner: ast.AST
    field: str
    index: int | None
    node: ast.AST

    @property
    def line(self) -> int:
        return getattr(self.node, "lineno", getattr(self.owner, "lineno", 0))


def spots(scope: ast.AST, shape: Shape, names: tuple[str, ...]) -> list[Spot]:
    """Every spot of a shape in `scope` that mentions all the names, without those that only contain another one."""
    found = [spot for spot in _all_spots(scope) if _fits(spot, shape, names)]
    return [spot for spot in found if not any(_contains(spot, other) for other in found)]


def definitions(scope: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every function, class and variable outside functions, with its qualified name."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + child.name, child
            yield from definitions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign) and not _is_function(scope):
            yield from ((prefix + name, child) for name in _targets(child))
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from definitions(child, prefix)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _all_spots(scope: ast.AST) -> Iterator[Spot]:
    for owner in ast.walk(scope):
        for field, value in ast.iter_fields(owner):
            if isinstance(value, ast.AST):
                yield Spot(owner, field, None, value)
            elif isinstance(value, list):
                nodes = enumerate(cast(list[object], value))
                yield from (Spot(owner, field, at, node) for at, node in nodes if isinstance(node, ast.AST))


def _contains(spot: Spot, other: Spot) -> bool:
    return spot.node is not other.node and any(node is other.node for node in ast.walk(spot.node))


def _fits(spot: Spot, shape: Shape, names: tuple[str, ...]) -> bool:
    match shape:
        case "condition":
            whole = spot.owner if isinstance(spot.owner, ast.IfExp) else spot.node
            return _is_condition(spot) and _mentions(whole, names)
        case "part":
            return _is_part(spot) and _mentions(spot.node, names)
        case "statement":
            return isinstance(spot.node, ast.stmt) and not hasattr(spot.node, "body") and _mentions(spot.node, names)
        case "call":
            called = spot.node.func if isinstance(spot.node, ast.Call) else None
            return names[0] in _own_names(called) and _mentions(spot.node, names)
        case "value":
            return names[0] in _given_to(spot) and _mentions(spot.node, names[1:])
        case "loop":
            loops = ast.For | ast.AsyncFor | ast.comprehension
            return isinstance(spot.owner, loops) and spot.field == "iter" and _mentions(spot.node, names)
        case "handler":
            return isinstance(spot.owner, ast.ExceptHandler) and spot.field == "type" and _mentions(spot.node, names)
        case "text":
            return names[0] in _text(spot.node) and not isinstance(spot.owner, ast.Expr)


def _is_condition(spot: Spot) -> bool:
    if isinstance(spot.owner, ast.comprehension):
        return spot.field == "ifs"
    return isinstance(spot.owner, ast.If | ast.While | ast.IfExp) and spot.field == "test"


def _is_part(spot: Spot) -> bool:
    """Whether what holds it can do without it: an operand, an item, an argument, a decorator, a filter."""
    if isinstance(spot.owner, ast.BinOp):
        return isinstance(spot.owner.op, ast.BitOr) and spot.field in ("left", "right")
    return spot.field in ("values", "elts", "args", "keywords", "decorator_list", "ifs") and isinstance(
        spot.node, ast.expr | ast.keyword
    )


def _given_to(spot: Spot) -> list[str]:
    """The names that get this value: of a variable or an attribute, of an argument, of a key."""
    if isinstance(spot.owner, ast.keyword):
        return [spot.owner.arg or ""]
    if isinstance(spot.owner, ast.Dict) and spot.field == "values" and spot.index is not None:
        return list(_own_names(spot.owner.keys[spot.index]))
    return _targets(spot.owner) if spot.field == "value" else []


def _targets(node: ast.AST) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [name for target in targets for name in _own_names(target)]


def _mentions(node: ast.AST, names: tuple[str, ...]) -> bool:
    """Whether each of the names occurs in a node; a name after `!` must not."""
    mentioned = {name for each in ast.walk(node) for name in _own_names(each)}
    return all(name[1:] not in mentioned if name.startswith("!") else name in mentioned for name in names)


def _own_names(node: ast.AST | None) -> tuple[str, ...]:
    """What a node itself is called: a name, an attribute, a keyword, or a constant as it reads."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)) | ast.arg(arg=name):
            return (name,)
        case ast.Constant(value=bytes() | str()):
            return (_text(node),)
        case ast.Constant(value=value):
            return (repr(value),)
        case _:
            return ()


def _text(node: ast.AST) -> str:
    value = node.value if isinstance(node, ast.Constant) else ""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""
