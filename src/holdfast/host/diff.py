"""Unified diffs straight from where an edit was made; the file itself is never compared."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.host.match import Splice

CONTEXT = 3
_COMPARED = 2_000  # lines that are compared one by one when added and removed ones are counted


@dataclass(frozen=True, slots=True)
class _Region:
    """Whole lines of the old text, from byte `start` to `end`, and what they become."""

    start: int
    end: int
    new: bytes


def unified(body: bytes, splices: Sequence[Splice], name: str, *, created: bool = False) -> list[str]:
    """The diff of a text and its splices, as lines without line ends."""
    hunks: list[str] = []
    shift = 0
    for group in _grouped(body, _regions(body, splices)):
        lines, grown = _hunk(body, group, shift)
        hunks += lines
        shift += grown
    return [f"--- {'/dev/null' if created else name}", f"+++ {name}", *hunks] if hunks else []


def _regions(body: bytes, splices: Sequence[Splice]) -> list[_Region]:
    """The splices grown to whole lines; those that share a line are one."""
    regions: list[_Region] = []
    for one in splices:
        start = body.rfind(b"\n", 0, one.start) + 1
        end = _line_end(body, one)
        if regions and start < regions[-1].end:
            last = regions.pop()
            head = last.new[: len(last.new) - (last.end - one.start)]
            regions.append(
                _Region(last.start, max(end, last.end), head + one.new + body[one.end : max(end, last.end)])
            )
        else:
            regions.append(_Region(start, end, body[start : one.start] + one.new + body[one.end : end]))
    return regions


def _line_end(body: bytes, one: Splice) -> int:
    """The end of the last line a splice touches. One that begins and ends at line beginnings touches no next line."""
    at_line_start = one.end == 0 or body[one.end - 1 : one.end] == b"\n"
    joins_next = bool(one.new) and not one.new.endswith(b"\n")
    cuts_line = one.start > 0 and body[one.start - 1 : one.start] != b"\n" and not one.new.endswith(b"\n")
    if at_line_start and one.end > one.start and not joins_next and not cuts_line:
        return one.end
    newline = body.find(b"\n", one.end)
    return len(body) if newline < 0 else newline + 1


def _grouped(body: bytes, regions: Sequence[_Region]) -> list[list[_Region]]:
    """Regions whose context would touch share a hunk."""
    groups: list[list[_Region]] = []
    for region in regions:
        if groups and body.count(b"\n", groups[-1][-1].end, region.start) <= 2 * CONTEXT:
            groups[-1].append(region)
        else:
            groups.append([region])
    return groups


def _hunk(body: bytes, group: Sequence[_Region], shift: int) -> tuple[list[str], int]:
    """One hunk's lines, and by how many lines the text grows in it."""
    begin, stop = _back(body, group[0].start), _on(body, group[-1].end)
    rows: list[str] = []
    at = begin
    for region in group:
        rows += _rows(" ", body[at : region.start])
        rows += _changed(body[region.start : region.end], region.new)
        at = region.end
    rows += _rows(" ", body[at:stop])
    removed, added = (sum(row[0] == sign for row in rows) for sign in "-+")
    if not removed and not added:
        return [], 0
    common = sum(row[0] == " " for row in rows)
    first = body.count(b"\n", 0, begin) + 1
    old, new = removed + common, added + common
    header = f"@@ -{_range(first, old)} +{_range(first + shift, new)} @@"
    return [header, *(line for row in rows for line in row.split("\n"))], added - removed


def _range(first: int, count: int) -> str:
    start = first if count else first - 1
    return str(start) if count == 1 else f"{start},{count}"


def _back(body: bytes, at: int) -> int:
    for _ in range(CONTEXT):
        if at == 0:
            break
        at = body.rfind(b"\n", 0, at - 1) + 1
    return at


def _on(body: bytes, at: int) -> int:
    for _ in range(CONTEXT):
        newline = body.find(b"\n", at)
        if newline < 0:
            return len(body)
        at = newline + 1
    return at


def _changed(old: bytes, new: bytes) -> list[str]:
    """Removed and added lines, without those that are the same at both ends."""
    before, after = _split(old), _split(new)
    most = min(len(before), len(after))
    head = next((at for at in range(most) if before[at] != after[at]), most)
    tail = next((at for at in range(most - head) if before[-1 - at] != after[-1 - at]), most - head)
    return [
        *_shown(" ", before[:head]),
        *_shown("-", before[head : len(before) - tail]),
        *_shown("+", after[head : len(after) - tail]),
        *_shown(" ", before[len(before) - tail :]),
    ]


def _split(data: bytes) -> list[bytes]:
    return data.split(b"\n")[:-1] + ([_open(data)] if _open(data) else [])


def _open(data: bytes) -> bytes:
    """The last line, when no newline ends it, with the mark diffs have for that."""
    last = data[data.rfind(b"\n") + 1 :]
    return last + b"\n\\ No newline at end of file" if last else b""


def _rows(sign: str, data: bytes) -> list[str]:
    return _shown(sign, _split(data))


def _shown(sign: str, lines: Sequence[bytes]) -> list[str]:
    return [sign + line.removesuffix(b"\r").decode("utf-8", "replace") for line in lines]


def whole_splice(before: bytes, after: bytes) -> Splice:
    """The one splice between two texts: what is left when the lines that are the same at both ends are away."""
    head = _same_head(before, after)
    head = before.rfind(b"\n", 0, head) + 1
    tail = _same_head(before[head:][::-1], after[head:][::-1])
    cut = before.find(b"\n", len(before) - tail) + 1
    tail = len(before) - cut if cut else 0
    return Splice(head, len(before) - tail, after[head : len(after) - tail])


def _same_head(one: bytes, other: bytes) -> int:
    """How many bytes are the same from the beginning, by halves."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def counted(before: bytes, after: bytes) -> tuple[int, int]:
    """How many lines were added and removed between two whole texts."""
    old, new = _split(before), _split(after)
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    tail = next((at for at in range(most - head) if old[-1 - at] != new[-1 - at]), most - head)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if old and new and len(old) + len(new) <= _COMPARED:
        same = sum(
            block.size for block in difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
        )
    else:
        same = (Counter(old) & Counter(new)).total()
    return len(new) - same, len(old) - same
