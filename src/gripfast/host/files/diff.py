"""Unified diffs straight from where an edit was made; the file itself is never compared."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

from gripfast.records import dataclass
from gripfast.text.match import Splice

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
    shift = at = 0
    first = 1
    for group in _grouped(body, _regions(body, splices)):
        begin = _back(body, group[0].start)
        first += body.count(b"\n", at, begin)
        at = begin
        lines, grown = _hunk(body, group, begin, first, shift)
        hunks += lines
        shift += grown
    return [f"--- {'/dev/null' if created else name}", f"+++ {name}", *hunks] if hunks else []


def _regions(body: bytes, splices: Sequence[Splice]) -> list[_Region]:
    """The splices grown to whole lines; those that share a line are one."""
    regions: list[_Region] = []
    shared: list[Splice] = []
    end = -1
    for one in splices:
        if shared and not _is_past(body, one.start, end):
            end = max(end, end if one.end < end else _line_end(body, one))
        else:
            if shared:
                regions.append(_region(body, shared, end))
            shared, end = [], _line_end(body, one)
        shared.append(one)
    return [*regions, _region(body, shared, end)] if shared else []


def _is_past(body: bytes, at: int, end: int) -> bool:
    """Whether a place is on a later line than what ends at `end`."""
    return at > end or (at == end and body[end - 1 : end] in (b"", b"\n"))


def _region(body: bytes, shared: Sequence[Splice], end: int) -> _Region:
    start = at = body.rfind(b"\n", 0, shared[0].start) + 1
    parts: list[bytes] = []
    for one in shared:
        parts += (body[at : one.start], one.new)
        at = one.end
    return _Region(start, end, b"".join([*parts, body[at:end]]))


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


def _hunk(body: bytes, group: Sequence[_Region], begin: int, first: int, shift: int) -> tuple[list[str], int]:
    """One hunk's lines, the first of which is line `first` at byte `begin`; and by how many the text grows in it."""
    stop = _on(body, group[-1].end)
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
    """The one splice that turns a text into another, without the lines that both begin and end with."""
    head = _same_head(before, after)
    head = before.rfind(b"\n", 0, head) + 1
    tail = _same_head(before[head:][::-1], after[head:][::-1])
    cut = before.find(b"\n", len(before) - tail) + 1
    tail = len(before) - cut if cut else 0
    return Splice(head, len(before) - tail, after[head : len(after) - tail])


def whole_diff(before: bytes | None, after: bytes, name: str) -> str:
    """The diff between two whole texts; without `before` of a new file."""
    old = before or b""
    splices = [] if old == after else [whole_splice(old, after)]
    return "\n".join(unified(old, splices, name, created=before is None))


def _same_head(one: bytes, other: bytes) -> int:
    """How many bytes are the same from the beginning, found by bisection."""
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
