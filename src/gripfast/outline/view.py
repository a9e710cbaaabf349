"""The collapsed view: which rows of a text are shown, and what is folded between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gripfast.outline.definition import BODIES, Definition, Parsed
from gripfast.outline.docs import doc_row, is_remark
from gripfast.outline.text import SourceText

LARGE = 120  # rows of a function from which on the definitions inside it are shown as well
TALLEST_HEAD = 16  # rows of a signature
SMALL_FILE = 30  # rows up to which folding saves nothing
SHORT_FILE = 200  # rows up to which it may be twice the share
MOST_BROKEN = 20  # places that don't parse
LONG_LIST = 8  # constants in a row, of which the rest is folded where room is short
NEAR = 2  # rows around a match that lies in no definition
WHOLE_CONTAINER = 60  # rows up to which a match between the members of a class shows all of it
_WORDLESS = frozenset({"constant", "variable", "declaration", "key"})  # they speak for themselves
_SPARE = re.compile(r"[\s)}\]>;,]*(?:end|fi|done|esac|\*/|/\*+|#+|//+)?[\s;)}]*$")


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows that are left out, both inclusive."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"… {self.first}" if self.first == self.last else f"… {self.first}–{self.last}"


@dataclass(frozen=True, slots=True)
class FoldedView:
    """Row numbers to show and folds between them, from top to bottom. `cut`: the limit ended it before this row."""

    rows: tuple[int | Fold, ...]
    total: int
    definitions: int = 0
    expanded: int = 0
    depth: int | None = None  # deeper definitions were folded to keep to the limit
    cut: int | None = None

    @property
    def shown(self) -> int:
        return sum(isinstance(row, int) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is shown in full: definitions, and rows where the text matches."""

    is_named: Callable[[Definition], bool] = lambda _: False
    hits: Sequence[int] = ()


NOTHING = Wanted()


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of a definition is shown, and which share of the text that may be."""

    docs: bool = True
    lists: bool = True  # all of a long list of constants
    share: float = 1e9


def collapsed(text: SourceText, found: Parsed, wanted: Wanted = NOTHING, limit: int = 1000) -> FoldedView:
    """The most detailed view that is short enough. What is asked for is kept before everything else."""
    total = len(text.lines)
    full, expanded = _in_full(found, wanted, total)
    if total <= SMALL_FILE and not full:
        return FoldedView(tuple(range(1, total + 1)), total, len(found.definitions))
    visible = _visible(found.definitions)
    deepest = max((each.depth for each in visible), default=0)
    always = full | _broken(found, visible)
    folded: list[int | Fold] = []
    depth = deepest
    ample = 2 if total < SHORT_FILE else 1
    for depth, detail in _details(deepest):
        folded = _folded(text, always | _heads(text, visible, depth, detail))
        if len(folded) <= limit and (full or _share(text, folded) <= detail.share * ample):
            break
    if not full and _share(text, folded) > 0.9:
        folded = list(range(1, total + 1))
    shown, cut = _cut(folded, limit)
    return FoldedView(tuple(shown), total, len(found.definitions), expanded, depth if depth < deepest else None, cut)


def _details(deepest: int) -> Iterator[tuple[int, Detail]]:
    """From the most to the least: without the words, without long lists of constants, level by level."""
    yield deepest, Detail(share=0.25)
    yield deepest, Detail(docs=False, share=0.4)
    for depth in range(deepest, -1, -1):
        yield depth, Detail(docs=False, lists=False)


def _share(text: SourceText, folded: list[int | Fold]) -> float:
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


def _in_full(found: Parsed, wanted: Wanted, total: int) -> tuple[set[int], int]:
    rows: set[int] = set()
    chosen = {index for index, each in enumerate(found.definitions) if wanted.is_named(each)}
    for hit in wanted.hits:
        index = _innermost(found.definitions, hit)
        if index is None:
            rows.update(range(max(1, hit - NEAR), min(total, hit + NEAR) + 1))
        else:
            chosen.add(index)
    for index in chosen:
        rows.update(range(found.definitions[index].start, found.definitions[index].end + 1))
    return rows, len(chosen)


def _innermost(definitions: Sequence[Definition], row: int) -> int | None:
    """The definition around a row that is worth showing for it: not a class for a line between its methods."""
    inside = [i for i, each in enumerate(definitions) if each.start <= row <= each.end and not each.local]
    if not inside:
        return None
    each = definitions[inside[-1]]
    fits = each.kind in BODIES or each.end - each.start < WHOLE_CONTAINER
    return inside[-1] if fits else None


def _heads(text: SourceText, visible: Iterable[Definition], depth: int, detail: Detail) -> set[int]:
    rows: set[int] = set()
    runs: dict[int, int] = {}  # of constants, by their depth
    for each in visible:
        runs[each.depth] = runs.get(each.depth, 0) + 1 if each.kind in _WORDLESS else 0
        if each.depth > depth or (runs[each.depth] > LONG_LIST and not detail.lists):
            continue
        rows.update(range(each.start, min(each.head, each.start + TALLEST_HEAD) + 1))
        if detail.docs and each.kind not in _WORDLESS and (doc := doc_row(text, each)):
            rows.add(doc)
    return rows


def _folded(text: SourceText, rows: set[int]) -> list[int | Fold]:
    """The rows in order with a fold wherever something is left out."""
    folded: list[int | Fold] = []
    total = len(text.lines)
    for before, row in pairwise([0, *sorted(rows), total + 1]):
        folded += _gap(text, before + 1, row - 1)
        if row <= total:
            folded.append(row)
    return folded


def _gap(text: SourceText, first: int, last: int) -> Iterator[Fold]:
    """Blank lines, lone brackets and what else there is of a comment are not worth a mark."""
    lines = text.lines
    while first <= last and not lines[first - 1].strip():
        first += 1
    while first <= last and _SPARE.match(lines[last - 1]):
        last -= 1
    if first > last or all(_is_spare(lines[row - 1], text.comment) for row in range(first, last + 1)):
        return
    yield Fold(first, last)


def _is_spare(line: str, comment: tuple[str, ...]) -> bool:
    bare = line.strip()
    return not bare or bare == "{" or (bool(comment) and is_remark(bare, comment))


def _cut(rows: list[int | Fold], limit: int) -> tuple[list[int | Fold], int | None]:
    if len(rows) <= limit:
        return rows, None
    following = rows[limit]
    return rows[:limit], following if isinstance(following, int) else following.first
