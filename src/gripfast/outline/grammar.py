"""Definitions by a tree-sitter grammar and one of our query files.

In a query a definition is captured by its kind (`@function`, `@class` ...). Its name is the node's field `name`, or
what its declarator ends in; its body the field `body`: the lines before it are the signature. Where a grammar has no
such fields, `@name` and `@body` say what they are, `@value` which node has the body, or `@head` what the signature
is. `@scope` qualifies a name from outside (a Go method's receiver). `@wrap` with `@inner` is a node whose lines
belong to a definition (`export`, decorators); so do the lines of a `@mark` right above it. `@fault` is what a grammar
takes for code though it is not.

Patterns without children cost nothing to compile; over the others a large grammar takes long.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import pkgutil
import re
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from gripfast.outline.definition import Definition, Parsed, Span, nested
from gripfast.outline.mending import Attempt, attempts, bodies, emptied
from gripfast.outline.skimming import SKIMS, closed, skimmed

if TYPE_CHECKING:
    from tree_sitter import Node, QueryCursor, Tree
    from tree_sitter import Parser as TreeParser

    from gripfast.outline.language import Language

MOST_FAULTS = 100
LONG_FAULT = 3  # rows after its first
LONGEST_NAME = 200
_EDGE = re.compile(rb"(?<=\n\n)(?=[A-Za-z_@$#/])|(?<=\n}\n)(?=[A-Za-z_@$#/])|(?<=\*/\n)(?=[A-Za-z_@$#])")
_ANY_DEPTH = 0xFFFFFFFF
_ALL_HEAD = frozenset({"function", "method", "declaration"})  # without a body they are a signature and nothing else
_AROUND_A_NAME = frozenset({"parenthesized_declarator", "reference_declarator", "attributed_declarator"})
_PARTS = frozenset("name body value head scope declarator inner wrap mark called tag attribute".split())


def is_installed(language: Language) -> bool:
    return importlib.util.find_spec(language.module) is not None


def query_text(name: str) -> str:
    """A query file; one that begins with `; inherits: x` has those of x as well."""
    data = pkgutil.get_data(__name__.rpartition(".")[0], f"queries/{name}.scm")  # importlib.resources loads slowly
    if data is None:
        raise FileNotFoundError(name)
    text = data.decode("utf-8")
    first = text.partition("\n")[0]
    base = first.partition("; inherits:")[2].strip()
    return f"{query_text(base)}\n{text}" if base else text


@functools.cache
def _loaded(module: str, function: str, query: str) -> tuple[TreeParser, QueryCursor]:
    from tree_sitter import Language, Parser, Query, QueryCursor  # noqa: PLC0415 - of the extra

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # some grammars are wrapped the old way
        pointer: Any = getattr(_bound(module), function)()
        language = Language(pointer)  # pyright: ignore[reportDeprecated] - which way depends on the grammar
    return Parser(language), QueryCursor(Query(language, query_text(query)))


def _bound(module: str) -> Any:
    """The compiled half of a grammar's package. The other half would load `importlib.resources`, for query files that
    are not used: a quarter of the time to the first answer."""
    package = importlib.util.find_spec(module)
    places = package.submodule_search_locations if package else None
    spec = importlib.machinery.PathFinder.find_spec(f"{module}._binding", places) if places else None
    if spec is None or spec.loader is None:
        return importlib.import_module(module)
    binding = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(binding)
    return binding


def parsed(whole: bytes, language: Language) -> Parsed:
    """What is defined in a source text. Takes as long as it takes: whoever calls it bounds it."""
    parser, cursor = _loaded(language.module, language.function, language.query)
    query = _GrammarQuery(cursor, language.shallow, language.comment[0].encode() if language.docstring else b"")
    source = skimmed(whole, language.query)
    tree, attempt, faults = _best(source, parser, language.mend)
    if faults and language.query in SKIMS and not language.mend:  # which is of C, that seldom parses as a whole
        source, (tree, attempt, faults) = _whole_or_closed(whole, parser, language)
    definitions = _read(source, tree, query, attempt.marks)
    if faults and language.mend in ("c", "c++"):
        ends = {end for (_, end), _ in definitions}
        lost = [body for body in bodies(attempt.source) if body[1] not in ends]
        if lost:
            tree = _less_faulty(tree, parser.parse(emptied(attempt.source, lost)))
            definitions = _read(source, tree, query, attempt.marks)
    found = _SourcePiece(definitions, faults)
    if tree.root_node.is_error or (faults and not language.mend and _swallows(tree)):
        pieces = [_piece(piece, parser.parse(piece), query, at) for piece, at in _pieces(attempt.source)]
        found = max(found, _joined(pieces), key=_understood)
    strays = [(each.line, each.end) for _, each in found.definitions if each.kind == "fault"]
    definitions = [(span, each) for span, each in found.definitions if each.kind != "fault"]
    return Parsed(nested(definitions), tuple(sorted([*found.faults, *strays])[:MOST_FAULTS]))


class _GrammarQuery(NamedTuple):
    """`shallow` as for a language; `trailing` begins a comment where only indentation ends a definition."""

    cursor: QueryCursor
    shallow: bool
    trailing: bytes

    def matches(self, root: Node) -> list[tuple[int, dict[str, list[Node]]]]:
        """Where something does not parse, anything may lie deeper than it should."""
        self.cursor.set_max_start_depth(1 if self.shallow and not root.has_error else _ANY_DEPTH)
        return self.cursor.matches(root)


def _best(source: bytes, parser: TreeParser, mend: str) -> tuple[Tree, Attempt, list[tuple[int, int]]]:
    """The tree with the fewest faults, of the text as it is or mended."""
    tried: list[tuple[Tree, Attempt, list[tuple[int, int]]]] = []
    for attempt in attempts(source, mend):
        tree = parser.parse(attempt.source)
        tried.append((tree, attempt, _faults(tree)))
        if not tree.root_node.has_error:
            return tried[-1]
    return min(tried, key=lambda one: (one[0].root_node.is_error, len(one[2])))


def _whole_or_closed(
    whole: bytes, parser: TreeParser, language: Language
) -> tuple[bytes, tuple[Tree, Attempt, list[tuple[int, int]]]]:
    """The text as it is, or with ends where functions have none if it parses then."""
    source, rows = closed(whole, language.query)
    tree = parser.parse(source) if rows else None
    if tree is not None and not tree.root_node.has_error:
        return source, (tree, Attempt(source, {}), [(row, row) for row in rows])
    return whole, _best(whole, parser, language.mend)


def _less_faulty(tree: Tree, other: Tree) -> Tree:
    return other if len(_faults(other)) < len(_faults(tree)) else tree


class _SourcePiece(NamedTuple):
    """What was read of a text or a part of it."""

    definitions: list[tuple[Span, Definition]]
    faults: list[tuple[int, int]]


def _pieces(source: bytes) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """A text that does not parse as a whole, cut where something begins at the left edge, so that a fault in one part
    does not hide what the others define. With each part the bytes and rows before it."""
    starts = [0, *(found.start() for found in _EDGE.finditer(source)), len(source)]
    row = 0
    for start, end in pairwise(starts):
        piece = source[start:end]
        yield piece, (start, row)
        row += piece.count(b"\n")


def _understood(found: _SourcePiece) -> tuple[int, int]:
    """How many definitions it has, and how few rows of faults."""
    return len(found.definitions), -sum(last - first + 1 for first, last in found.faults)


def _joined(pieces: list[_SourcePiece]) -> _SourcePiece:
    return _SourcePiece(
        [each for piece in pieces for each in piece.definitions], [each for piece in pieces for each in piece.faults]
    )


def _read(source: bytes, tree: Tree, query: _GrammarQuery, marks: dict[int, int]) -> list[tuple[Span, Definition]]:
    reading = _GrammarReading(source, query.trailing, dict(marks))
    for pattern, captures in query.matches(tree.root_node):
        reading.take(pattern, captures)
    return reading.done()


def _piece(source: bytes, tree: Tree, query: _GrammarQuery, at: tuple[int, int]) -> _SourcePiece:
    (start, row), found = at, _read(source, tree, query, {})
    definitions = [((a + start, b + start), each.moved(row)) for (a, b), each in found]
    return _SourcePiece(definitions, [(first + row, last + row) for first, last in _faults(tree)])


def _faults(tree: Tree) -> list[tuple[int, int]]:
    """Where the parser was lost. Only nodes that have an error inside are looked into. Of an error that has swallowed
    many rows, those that are wrong."""
    found: set[tuple[int, int]] = set()
    open_nodes = [tree.root_node] if tree.root_node.has_error else []
    while open_nodes and len(found) < MOST_FAULTS:
        node = open_nodes.pop()
        inside = _faulty(node)
        given_up = node.is_error and node.parent is not None and not (inside and _is_long(_rows(node)))
        if node.is_missing or given_up:
            found.add(_rows(node))
        else:
            open_nodes += reversed(inside)
    return sorted(found) or ([_rows(tree.root_node)] if tree.root_node.has_error else [])


def _faulty(node: Node) -> list[Node]:
    return [child for child in node.children if child.has_error or child.is_missing]


def _swallows(tree: Tree) -> bool:
    """Whether an error reaches over rows that may parse by themselves."""
    open_nodes = _faulty(tree.root_node)
    while open_nodes:
        node = open_nodes.pop()
        if node.is_error and _is_long(_rows(node)):
            return True
        open_nodes += _faulty(node)
    return False


def _is_long(rows: tuple[int, int]) -> bool:
    return rows[1] - rows[0] >= LONG_FAULT


def _rows(node: Node) -> tuple[int, int]:
    """The first and last row of a node, from 1. One that ends before a row's first column does not reach it."""
    (first, _), (last, column) = node.start_point, node.end_point
    return first + 1, (last if column == 0 and last > first else last + 1)


class _GrammarReading:
    """The matches of one query, taken one by one."""

    def __init__(self, source: bytes, trailing: bytes, marks: dict[int, int]) -> None:
        self._source = source
        self._trailing = trailing
        self._found: dict[tuple[int, int], tuple[int, str, Node, dict[str, list[Node]]]] = {}
        self._wraps: dict[int, Node] = {}
        self._kinds: dict[int, str] = {}  # of the query's patterns
        self._marks = marks  # last row to first row

    def take(self, pattern: int, captures: dict[str, list[Node]]) -> None:
        if "wrap" in captures:
            self._wraps[captures["inner"][0].id] = captures["wrap"][0]
            return
        if "mark" in captures:
            first, last = _rows(captures["mark"][0])
            self._marks[last] = first
            return
        kind = self._kinds.get(pattern)
        if kind is None:
            kind = self._kinds[pattern] = next(name for name in captures if name not in _PARTS)
        node, names = captures[kind][0], captures.get("name") or captures.get("declarator")
        key = (node.id, names[0].id if names else 0)
        if key not in self._found or self._found[key][0] > pattern:
            self._found[key] = (pattern, kind, node, captures)

    def done(self) -> list[tuple[Span, Definition]]:
        return [self._definition(kind, node, captures) for _, kind, node, captures in self._found.values()]

    def _definition(self, kind: str, node: Node, captures: dict[str, list[Node]]) -> tuple[Span, Definition]:
        first, last = line, end = _rows(node)
        outer = node
        while (wrap := self._wraps.get(outer.id)) is not None:
            first, last = _rows(outer := wrap)
        while (above := self._marks.get(first - 1)) is not None:
            first = above
        last = self._without_comments(max(end, last), outer)
        head = min(self._head(kind, node, captures), last)
        name = self._name(kind, node, captures)
        return (node.start_byte, node.end_byte), Definition(kind, name, first, line, head, last)

    def _without_comments(self, last: int, node: Node) -> int:
        """The last row of code, where only indentation ends a definition: comments after it are not its own."""
        if not self._trailing:
            return last
        source, end, first = self._source, node.end_byte, node.start_point[0] + 1
        row = node.end_point[0] + 1
        while row > first:
            begin = source.rfind(b"\n", 0, end) + 1
            text = source[begin:end].strip()
            if text and not (text.startswith(self._trailing) and _is_comment(node, source.index(text, begin))):
                break
            row, end = row - 1, begin - 1
        return row

    def _head(self, kind: str, node: Node, captures: dict[str, list[Node]]) -> int:
        """The last row of the signature: the one a body begins on, unless the body has lines of its own."""
        if "head" in captures:
            return _rows(captures["head"][0])[1]
        line = node.start_point[0] + 1
        if "body" in captures:
            body = captures["body"][0]
        else:
            body = (captures["value"][0] if "value" in captures else node).child_by_field_name("body")
        if body is None:
            return _rows(node)[1] if kind in _ALL_HEAD else line
        (row, column), start = body.start_point, body.start_byte
        if self._source[start - column : start].strip():
            return row + 1
        before = body.prev_sibling
        while before is not None and (before.is_extra or before.type == "comment"):
            before = before.prev_sibling
        return line if before is None else max(line, before.end_point[0] + 1)

    def _name(self, kind: str, node: Node, captures: dict[str, list[Node]]) -> str:
        names = captures.get("name")
        own = self._text(names[0], names[-1]) if names else self._field_name(node, captures)
        if kind == "impl":
            own = own.partition("<")[0]
        scope = captures.get("scope")
        return f"{self._text(scope[0], scope[0])}.{own}" if scope else own

    def _field_name(self, node: Node, captures: dict[str, list[Node]]) -> str:
        """What a node's own fields call it; a node that only has a keyword is called by that."""
        found = captures["declarator"][0] if "declarator" in captures else node.child_by_field_name("name")
        found = found or node.child_by_field_name("declarator") or (node.child(0) if node.child_count else None)
        while found is not None and (inner := _declared(found)) is not None:
            found = inner
        return self._text(found, found) if found is not None else ""

    def _text(self, first: Node, last: Node) -> str:
        text = self._source[first.start_byte : min(last.end_byte, first.start_byte + LONGEST_NAME)]
        words = " ".join(text.decode("utf-8", "replace").replace('"', "").split())
        return (words.strip("'`*&") or words).replace("::", ".")


def _is_comment(node: Node, at: int) -> bool:
    """Whether that is what stands there; it may also be a line of a string."""
    found = node.descendant_for_byte_range(at, at + 1)
    return found is not None and found.type == "comment"


def _declared(node: Node) -> Node | None:
    """One step down a declarator, as of `*(*name)(int)`."""
    if node.type == "operator_cast":
        return None
    inner = node.child_by_field_name("declarator")
    if inner is None and node.type in _AROUND_A_NAME:
        inner = node.named_child(0)
    return inner
