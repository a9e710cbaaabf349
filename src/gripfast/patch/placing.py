"""Finds the place of each chunk in a file: one place only, or it is refused."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from gripfast.patch.grammar import Chunk, PatchRow
from gripfast.patch.lines import FileLines, LineEdit
from gripfast.records import dataclass
from gripfast.text.match import UnknownIndentError, reindented

# The passes, in their order: what is left of a line, and what was tolerated then.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
    }
)
_PASSES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("", lambda line: line),
    ("space at the end of lines", str.rstrip),
    ("indentation", str.strip),
    ("typographic dashes, quotes or spaces", lambda line: line.translate(_PLAIN).strip()),
)
_INDENTED = 2  # from this pass on, the indentation may differ
NUMBERED = "line numbers in front of lines"
_NUMBER = re.compile(r"\s*(\d{1,9})[\t|→](.*)", re.DOTALL)
_MOST_HEADS = 200  # places of a header whose blocks are looked at


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A chunk that has no place, or several: `lines` (from 1) are where it fits. `missing` is the text that was not
    found, `above` where it is if that is too far up."""

    chunk: Chunk
    lines: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    is_header: bool = False
    above: int | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """The edits of a hunk, from top to bottom, and what was tolerated to find them."""

    edits: tuple[LineEdit, ...]
    tolerated: tuple[str, ...]


def place(lines: FileLines, chunks: Sequence[Chunk]) -> Placed | list[Misplaced]:
    """The places of all chunks, or every chunk that has none of its own."""
    text = _Searched(lines)
    found = _in_order(text, chunks)
    if not isinstance(found, list) or not any(one.above is not None for one in found):
        return found
    apart = _in_any_order(text, chunks)
    return found if apart is None else apart


class _Searched:
    """The lines of a file, ready to be searched in each pass."""

    def __init__(self, lines: FileLines) -> None:
        self.lines = lines
        self._passes: dict[int, tuple[list[str], dict[str, list[int]]]] = {}
        self._block_ends: dict[int, int] = {}

    def find(self, wanted: Sequence[str], number: int) -> list[int]:
        """Where all these lines follow each other, in one pass."""
        texts, places = self._passes.get(number) or self._prepare(number)
        form = _PASSES[number][1]
        normal = [form(line) for line in wanted]
        rarest = min(range(len(normal)), key=lambda at: len(places.get(normal[at], ())))
        starts = (at - rarest for at in places.get(normal[rarest], ()))
        return [at for at in starts if at >= 0 and texts[at : at + len(normal)] == normal]

    def _prepare(self, number: int) -> tuple[list[str], dict[str, list[int]]]:
        form = _PASSES[number][1]
        texts = [form(line) for line in self.lines.texts] if number else self.lines.texts
        places: dict[str, list[int]] = {}
        for at, line in enumerate(texts):
            places.setdefault(line, []).append(at)
        self._passes[number] = texts, places
        return texts, places

    def first_pass(
        self, wanted: Sequence[str], accept: Callable[[list[int]], list[int]]
    ) -> tuple[list[int], int] | None:
        """The places in the first pass that has some, and its number."""
        for number in range(len(_PASSES)):
            found = accept(self.find(wanted, number))
            if found:
                return found, number
        return None

    def beginning_with(self, header: str, low: int) -> list[int]:
        """Lines of which a header names the beginning only, such as `class A` for `class A(B):`."""
        bare = header.strip()
        return [at for at in range(low, len(self.lines)) if self.lines.texts[at].lstrip().startswith(bare)]

    def block_end(self, head: int) -> int:
        """The line after the block below a line: everything indented further, and brackets that close or open it."""
        if head not in self._block_ends:
            texts, indent = self.lines.texts, _indent(self.lines.texts[head])
            at = head + 1
            while at < len(texts) and _is_inside(texts[at], indent):
                at += 1
            self._block_ends[head] = at
        return self._block_ends[head]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_inside(line: str, indent: int) -> bool:
    bare = line.strip()
    return not bare or _indent(line) > indent or (_indent(line) == indent and bare[0] in ")]}{")


# --- candidates ---


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Where a chunk may be: the first of its `height` lines in the file, of which one is chosen."""

    chunk: Chunk
    starts: tuple[int, ...]
    height: int
    number: int = 0
    tolerated: tuple[str, ...] = ()

    def only(self, start: int) -> _Candidates:
        return replace(self, starts=(start,))


def _candidates(text: _Searched, chunk: Chunk, low: int) -> _Candidates | Misplaced:
    heads = _heads(text, chunk, low)
    if isinstance(heads, Misplaced):
        return heads
    if not chunk.old:
        is_below = heads is not None and not chunk.at_end
        starts = tuple(head + 1 for head in heads or ()) if is_below else (len(text.lines),)
        return _Candidates(chunk, starts, 0)
    for variant, note in _variants(chunk):
        found = text.first_pass(variant.old, lambda starts, chunk=variant: _fitting(text, chunk, starts, low, heads))
        if found is not None:
            starts, number = found
            notes = tuple(one for one in (note, _PASSES[number][0]) if one)
            return _Candidates(variant, tuple(starts), len(variant.old), number, notes)
    return _by_numbers(text, chunk, low) or _nowhere(text, chunk, low)


def _variants(chunk: Chunk) -> Iterable[tuple[Chunk, str]]:
    """The chunk as it is, then without the empty lines at its end, one after the other."""
    yield chunk, ""
    while chunk.rows[-1].sign == " " and not chunk.rows[-1].text.strip() and len(chunk.old) > 1:
        chunk = replace(chunk, rows=chunk.rows[:-1])
        yield chunk, "an empty line at the end"


def _fitting(
    text: _Searched, chunk: Chunk, starts: Sequence[int], low: int, heads: Sequence[int] | None
) -> list[int]:
    found = [at for at in starts if at >= low]
    if chunk.at_end:
        found = [at for at in found if at + len(chunk.old) == len(text.lines)]
    return found if heads is None else _below(text, found, heads)


def _below(text: _Searched, found: Sequence[int], heads: Sequence[int]) -> list[int]:
    """Those in the block of a header; else all that follow the first one."""
    if len(heads) <= _MOST_HEADS:
        inside = [at for at in found if any(head <= at < text.block_end(head) for head in heads)]
        if inside:
            return inside
    return [at for at in found if at >= heads[0]]


def _heads(text: _Searched, chunk: Chunk, low: int) -> list[int] | Misplaced | None:
    """Where the last `@@` header is, each narrowing the next; None without headers."""
    heads: list[int] | None = None
    for header in chunk.headers:
        above = heads
        found = text.first_pass(
            [header], lambda starts, above=above: _next_heads(text, [at for at in starts if at >= low], above)
        )
        heads = found[0] if found else _next_heads(text, text.beginning_with(header, low), above)
        if not heads:
            higher = text.first_pass([header], lambda starts: [at for at in starts if at < low])
            return Misplaced(chunk, missing=(header,), is_header=True, above=higher[0][0] + 1 if higher else None)
    if chunk.hint and heads is None:
        found = text.first_pass([chunk.hint], lambda starts: [at for at in starts if at >= low])
        heads = found[0] if found is not None else None
    return heads


def _next_heads(text: _Searched, found: Sequence[int], above: Sequence[int] | None) -> list[int]:
    return list(found) if above is None else _below(text, [at for at in found if at > above[0]], above)


def _by_numbers(text: _Searched, chunk: Chunk, low: int) -> _Candidates | None:
    """A chunk copied with line numbers, where every line carries the file's own."""
    old = [_NUMBER.fullmatch(line) for line in chunk.old]
    first = int(old[0][1]) - 1 if old[0] else -1
    if first < low or not all(one and int(one[1]) == first + at + 1 for at, one in enumerate(old)):
        return None
    added = [_NUMBER.fullmatch(row.text) for row in chunk.rows if row.sign == "+"]
    if any(added) and not all(added):
        return None
    rows = tuple(_bare(row) if row.sign != "+" or any(added) else row for row in chunk.rows)
    bare = replace(chunk, rows=rows)
    found = text.first_pass(bare.old, lambda starts: [at for at in starts if at == first])
    return None if found is None else _Candidates(bare, (first,), len(bare.old), found[1], (NUMBERED,))


def _bare(row: PatchRow) -> PatchRow:
    found = _NUMBER.fullmatch(row.text)
    return PatchRow(row.sign, found[2] if found else row.text)


def _nowhere(text: _Searched, chunk: Chunk, low: int) -> Misplaced:
    above = text.first_pass(chunk.old, lambda starts: [at for at in starts if at < low])
    return Misplaced(chunk, missing=chunk.old, above=above[0][0] + 1 if above and not chunk.at_end else None)


# --- one place each ---


def _in_order(text: _Searched, chunks: Sequence[Chunk]) -> Placed | list[Misplaced]:
    """Chunks follow each other from top to bottom; so a chunk that fits twice may still have one place."""
    faults: list[Misplaced] = []
    found: list[_Candidates] = []
    low = 0
    for chunk in chunks:
        one = _candidates(text, chunk, low)
        if isinstance(one, Misplaced):
            faults.append(one)
            continue
        found.append(one)
        if not _is_at_the_end(one):
            low = one.starts[0] + one.height
    if faults:
        return faults
    chosen = _chosen(found)
    return chosen if isinstance(chosen, list) else _placed(text, chosen)


def _is_at_the_end(one: _Candidates) -> bool:
    """Lines for the end of the file, which no later chunk has to follow."""
    return not one.chunk.old and (one.chunk.at_end or not (one.chunk.headers or one.chunk.hint))


def _chosen(found: Sequence[_Candidates]) -> tuple[_Candidates, ...] | list[Misplaced]:
    """The one way in which all chunks have a place, each below the one before."""
    ordered = [one for one in found if not _is_at_the_end(one)]
    kept: list[tuple[int, ...]] = []
    latest: float = float("inf")
    for one in reversed(ordered):  # what leaves room for all that follow
        kept.append(one.starts[: bisect_left(one.starts, True, key=lambda at, one=one: at + one.height > latest)])
        latest = kept[-1][-1] if kept[-1] else -1
    possible = list(reversed(kept))
    low = 0
    for at, one in enumerate(ordered):
        possible[at] = tuple(start for start in possible[at] if start >= low)
        low = (possible[at][0] if possible[at] else one.starts[0]) + one.height
    faults = [
        Misplaced(one.chunk, tuple(start + bool(one.height) for start in starts))
        for one, starts in zip(ordered, possible, strict=True)
        if len(starts) != 1
    ]
    if faults:
        return faults
    chosen = iter([one.only(starts[0]) for one, starts in zip(ordered, possible, strict=True)])
    return tuple(one if _is_at_the_end(one) else next(chosen) for one in found)


def _in_any_order(text: _Searched, chunks: Sequence[Chunk]) -> Placed | None:
    """Chunks that each have exactly one place in the whole file, apart from each other."""
    found = [_candidates(text, chunk, 0) for chunk in chunks]
    good = [one for one in found if isinstance(one, _Candidates) and len(one.starts) == 1]
    if len(good) < len(found):
        return None
    good.sort(key=lambda one: (one.starts[0], one.height))
    if any(one.starts[0] + one.height > two.starts[0] for one, two in pairwise(good)):
        return None
    placed = _placed(text, good)
    if not isinstance(placed, Placed):
        return None
    return replace(placed, tolerated=("chunks out of order", *placed.tolerated))


# --- edits ---


def _placed(text: _Searched, chosen: Sequence[_Candidates]) -> Placed | list[Misplaced]:
    edits: list[LineEdit] = []
    faults: list[Misplaced] = []
    for one in chosen:
        try:
            edits += _edits(text.lines, one)
        except UnknownIndentError:
            faults.append(Misplaced(one.chunk, missing=one.chunk.old))
    if faults:
        return faults
    edits.sort(key=lambda edit: (edit.start, edit.stop))
    notes = [note for one in chosen for note in one.tolerated]
    return Placed(tuple(edits), tuple(dict.fromkeys(notes)))


def _edits(lines: FileLines, one: _Candidates) -> list[LineEdit]:
    """The lines that change; those of the context stay the file's own."""
    edits: list[LineEdit] = []
    at = start = one.starts[0]
    new: list[str] = []
    for row in (*_rows(lines, one), PatchRow(" ", "")):
        if row.sign == "+":
            new.append(row.text)
        elif row.sign == "-":
            at += 1
        else:
            if at > start or new:
                edits.append(LineEdit(start, at, tuple(new)))
            at, new = at + 1, []
            start = at
    return edits


def _rows(lines: FileLines, one: _Candidates) -> Sequence[PatchRow]:
    """The rows of a chunk; added ones with the file's indentation where the patch has another."""
    rows = one.chunk.rows
    added = [row.text for row in rows if row.sign == "+"]
    if one.number < _INDENTED or not added:
        return rows
    matched = [line.encode() for line in lines.texts[one.starts[0] : one.starts[0] + one.height]]
    new = iter(reindented("\n".join(one.chunk.old).encode(), "\n".join(added).encode(), matched).decode().split("\n"))
    return [PatchRow("+", next(new)) if row.sign == "+" else row for row in rows]
