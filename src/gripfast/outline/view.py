"""The collapsed view: which rows of a text are shown, and what is folded between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice

from gripfast.outline.definition import BODIES, Definition, Parsed
from gripfast.outline.docs import doc_row
from gripfast.outline.folds import Fold, beside, folded
from gripfast.outline.text import SourceText
from gripfast.records import dataclass

LARGE = 120  # rows of a function from which on the definitions inside it are shown as well
TALLEST_HEAD = 16  # rows of a signature
SMALL_FILE = 30  # rows up to which folding saves nothing
SHORT_FILE = 200  # rows up to which it may be twice the share
MOST_BROKEN = 20  # places that don't parse
LONG_LIST = 8  # constants in a row, of which the rest is folded where room is short
NEAR = 2  # rows around a match outside any definition
WHOLE_CONTAINER = 60  # rows up to which a match between the members of a class shows all of it
_WORDLESS = frozenset({"constant", "variable", "declaration", "key"})  # they speak for themselves


@dataclass(frozen=True, slots=True)
class FoldedView:
    """Row numbers to show and folds between them, from top to bottom. `matches`: how many definitions and places
    between them match, if something was asked for. `cut`: the limit ended it before this row."""

    rows: tuple[int | Fold, ...]
    total: int
    matches: int = 0
    depth: int | None = None  # deeper definitions were folded to keep to the limit
    beside: bool = False  # folds are the rest of what is on the row before them, shown or not; others are not marked
    cut: int | None = None

    @property
    def shown(self) -> int:
        return sum(isinstance(row, int) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: definitions, and rows where the text matches."""

    is_named: Callable[[Definition], bool] = lambda _: False
    hits: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of a definition is shown, and which share of the text that may be."""

    docs: bool = True
    lists: bool = True  # all of a long list of constants
    signatures: bool = True  # else only the row that has the name
    beside: bool = False  # folds on the row of a name, and no others
    share: float = 1e9


LEAST = Detail(docs=False, lists=False, signatures=False, beside=True)


def collapsed(text: SourceText, found: Parsed, limit: int = 1000) -> FoldedView:
    """Everything that is defined, in as much detail as is short enough."""
    total = len(text.lines)
    if total <= SMALL_FILE:
        return FoldedView(tuple(range(1, total + 1)), total)
    visible = _visible(found.definitions)
    deepest = max((each.depth for each in visible), default=0)
    depth, detail, rows = _fitting(text, visible, _broken(found, visible), deepest, limit)
    if _share(text, rows) > 0.9:
        rows = range(1, total + 1)
    rows, cut = _cut(rows, limit, detail.beside)
    return FoldedView(tuple(rows), total, 0, depth if depth < deepest else None, detail.beside, cut)


def _fitting(
    text: SourceText, visible: list[Definition], broken: set[int], deepest: int, limit: int
) -> tuple[int, Detail, Sequence[int | Fold]]:
    """The first of the details whose view is short enough, or the least. Those that can't be are not tried: a hostile
    file has hundreds of thousands of definitions."""
    ample = 2 if len(text.lines) < SHORT_FILE else 1
    least = _least_rows(visible, deepest)
    for depth, detail in _details(deepest):
        if least[depth] <= limit:
            rows = _rows(text, _heads(visible, depth, detail), broken, detail)
            if _length(rows, detail.beside) <= limit and _share(text, rows) <= detail.share * ample:
                return depth, detail, rows
    top = islice((each for each in visible if not each.depth), limit + 1)
    return 0, LEAST, _rows(text, top, set(), LEAST)


def _rows(text: SourceText, heads: Iterable[Definition], more: set[int], detail: Detail) -> list[int | Fold]:
    """What is shown of definitions, and other rows, with folds."""
    rows, ends, last = set(more), set[int](), dict[int, int]()
    for each in heads:
        shown = list(_shown_of(text, each, detail.signatures))
        rows.update(shown)
        ends.add(each.end)
        last[shown[0]] = max(each.end, last.get(shown[0], 0))
        if detail.docs and each.kind not in _WORDLESS and (doc := doc_row(text, each)):
            rows.add(doc)
    return beside(text, rows, last) if detail.beside else folded(text, rows, ends)


def _length(rows: Sequence[int | Fold], is_beside: bool) -> int:
    """How many lines they take."""
    return sum(isinstance(row, int) for row in rows) if is_beside else len(rows)


def _least_rows(visible: list[Definition], deepest: int) -> list[int]:
    """For each depth, how many rows it takes to name everything down to it, except lists of constants."""
    rows: list[set[int]] = [set() for _ in range(deepest + 1)]
    for each in visible:
        if each.kind not in _WORDLESS:
            rows[each.depth].add(each.line)
    return list(accumulate(map(len, rows)))


def matching(text: SourceText, found: Parsed, wanted: Wanted, limit: int = 1000) -> FoldedView:
    """What is asked for, in full, with the heads of its containers. No rows if nothing matches."""
    rows, ends, count = _wanted_rows(text, found.definitions, wanted)
    if not rows:
        return FoldedView((), len(text.lines))
    shown, cut = _cut(folded(text, rows, ends), limit)
    return FoldedView(tuple(shown), len(text.lines), count, cut=cut)


def _details(deepest: int) -> Iterator[tuple[int, Detail]]:
    """From the most to the least: without the words, without long lists of constants, a row each, by level."""
    yield deepest, Detail(share=0.25)
    yield deepest, Detail(docs=False, share=0.4)
    yield deepest, Detail(docs=False, lists=False)
    yield deepest, Detail(docs=False, lists=False, signatures=False)
    for depth in range(deepest, -1, -1):
        yield depth, LEAST


def _share(text: SourceText, folded: Sequence[int | Fold]) -> float:
    """About what part of the text is shown, by characters and with the numbers."""
    shown = sum(len(text.lines[row - 1]) + 8 if isinstance(row, int) else 12 for row in folded)
    return shown / (text.characters or 1)


def _broken(found: Parsed, visible: list[Definition]) -> set[int]:
    """Rows that don't parse and are not inside what is folded."""
    bodies = [each for each in visible if each.kind in BODIES]
    rows = (first for first, _ in found.faults[:MOST_BROKEN])
    return {row for row in rows if not any(each.head < row <= each.end for each in bodies)}


def _visible(definitions: Iterable[Definition]) -> list[Definition]:
    """Not what is local to a function, unless that function is a large one."""
    around: list[tuple[Definition, bool]] = []  # and whether what is inside it is shown
    visible: list[Definition] = []
    for each in definitions:
        while around and around[-1][0].depth >= each.depth:
            around.pop()
        shown = all(opens for _, opens in around)
        if shown:
            visible.append(each)
        around.append((each, each.kind not in BODIES or each.end - each.head >= LARGE))
    return visible


def _wanted_rows(
    text: SourceText, definitions: Sequence[Definition], wanted: Wanted
) -> tuple[set[int], set[int], int]:
    """With the ends of the definitions they are of, and how many definitions and other places match."""
    rows, ends = set[int](), set[int]()
    chosen = {index for index, each in enumerate(definitions) if wanted.is_named(each)}
    places = 0
    for hit, around in enclosing(definitions, wanted.hits):
        index = next((index for index in reversed(around) if not definitions[index].local), None)
        if index is not None and _is_worth_showing(definitions[index]):
            chosen.add(index)
            continue
        places += hit not in rows
        rows.update(range(max(1, hit - NEAR), min(len(text.lines), hit + NEAR) + 1))
        ends.update(definitions[outer].end for outer in around)
        rows.update(row for outer in around for row in _head_rows(definitions[outer]))
    for index, around in _chains(definitions):
        if index in chosen:
            rows.update(_all_rows(text, definitions[index]))
            ends.update(definitions[outer].end for outer in around)
            rows.update(row for outer in around for row in _head_rows(definitions[outer]))
    return rows, ends, places + len(chosen)


def enclosing(definitions: Sequence[Definition], rows: Iterable[int]) -> Iterator[tuple[int, list[int]]]:
    """Each row, from the first to the last, with the indexes of the definitions around it, the outermost first."""
    chains = _chains(definitions)
    around: list[int] = []
    begun = 0  # definitions that begin above the row or on it
    for row in sorted(rows):
        while begun < len(definitions) and definitions[begun].start <= row:
            index, outer = next(chains)
            around = [*outer, index]
            begun += 1
        while around and definitions[around[-1]].end < row:
            around.pop()
        yield row, around


def _chains(definitions: Sequence[Definition]) -> Iterator[tuple[int, list[int]]]:
    """The index of each definition with those around it, the outermost first."""
    around: list[int] = []
    for index, each in enumerate(definitions):
        while around and definitions[around[-1]].depth >= each.depth:
            around.pop()
        yield index, around
        around.append(index)


def _is_worth_showing(each: Definition) -> bool:
    """For one line inside it: not a large class for a line between its methods."""
    return each.kind in BODIES or each.end - each.start < WHOLE_CONTAINER


def _all_rows(text: SourceText, each: Definition) -> range:
    """With the comment above it."""
    return range(min(each.start, doc_row(text, each) or each.start), each.end + 1)


def _head_rows(each: Definition) -> range:
    return range(each.start, min(each.head, each.start + TALLEST_HEAD) + 1)


def _heads(visible: Iterable[Definition], depth: int, detail: Detail) -> Iterator[Definition]:
    """The definitions of which something is shown."""
    runs: dict[int, int] = {}  # of constants, by their depth
    for each in visible:
        runs[each.depth] = runs.get(each.depth, 0) + 1 if each.kind in _WORDLESS else 0
        if each.depth <= depth and (runs[each.depth] <= LONG_LIST or detail.lists):
            yield each


def _shown_of(text: SourceText, each: Definition, signature: bool) -> Iterator[int]:
    """The signature, or only the row of it that has the name. The name of a `typedef struct { … } name;` comes
    last."""
    named = named_row(text, each)
    if signature:
        before = named or each.line
        yield from (row for row in _head_rows(each) if row >= before or text.lines[row - 1].strip() not in text.idle)
    else:
        yield named or each.line
    if named is None and each.own_name in text.lines[each.end - 1]:
        yield each.end


def named_row(text: SourceText, each: Definition) -> int | None:
    """The row of a signature that has the name: annotations may stand before it, or the type of the result."""
    rows = range(each.line, min(each.head, each.start + TALLEST_HEAD) + 1)
    return next((row for row in rows if each.own_name in text.lines[row - 1]), None)


def _cut(rows: Sequence[int | Fold], limit: int, is_beside: bool = False) -> tuple[Sequence[int | Fold], int | None]:
    """As many as are allowed, and the row before which it ends."""
    if _length(rows, is_beside) <= limit:
        return rows, None
    numbers = [at for at, row in enumerate(rows) if isinstance(row, int) or not is_beside]
    following = rows[numbers[limit]]
    return rows[: numbers[limit]], following if isinstance(following, int) else following.first
