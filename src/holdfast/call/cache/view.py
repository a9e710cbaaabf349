"""What a message shows of an output too large for it: whole lines, and one that says where the rest is."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.call.cache.lines import LineCount, decode
from holdfast.messages import OutputRef

MARKER_ROOM = 512
"""Bytes of the cap that are left free for the marker."""

NO_STORE = "this session has no output cache"


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of the whole output: its ref, or why there is none; both when a part was kept."""

    ref: OutputRef | None = None
    lost: str | None = None


def head_view(data: bytes | bytearray, room: int, *, count: LineCount, kept: Kept, above: int = 0) -> str:
    """The first whole lines of an output; `data` is its beginning, or that of its line `above`."""
    shown = _first_lines(data, room - MARKER_ROOM)
    whole = above + shown.count(b"\n")
    cut = "" if shown.endswith(b"\n") else "\n"
    return f"{decode(shown)}{cut}{_end_marker(whole, bool(cut), count, kept)}"


def head_tail_view(
    head: bytes | bytearray, tail: bytes | bytearray, room: int, *, count: LineCount, kept: Kept
) -> str:
    """The first and the last whole lines of an output, the marker between them."""
    half = (room - MARKER_ROOM) // 2
    first, last = _first_lines(head, half), _last_lines(tail, half)
    above = first.count(b"\n")
    below = count.lines - last.count(b"\n") - (not last.endswith(b"\n"))
    cut = "" if first.endswith(b"\n") else "\n"
    return f"{decode(first)}{cut}{_middle_marker(above, below, count, kept)}\n{decode(last)}"


def _first_lines(data: bytes | bytearray, room: int) -> bytes:
    if len(data) <= room:
        return bytes(data)
    end = data.rfind(b"\n", 0, room) + 1
    return bytes(data[: end if end > room // 2 else _character_start(data, room)])


def _last_lines(data: bytes | bytearray, room: int) -> bytes:
    if len(data) <= room:
        return bytes(data)
    begin = data.find(b"\n", len(data) - room, len(data) - room // 2) + 1
    return bytes(data[begin or _character_start(data, len(data) - room) :])


def _character_start(data: bytes | bytearray, position: int) -> int:
    """The nearest place at or before `position` where a UTF-8 character begins."""
    for back in range(4):
        if position - back <= 0 or data[position - back] & 0xC0 != 0x80:
            return max(0, position - back)
    return position


def _end_marker(whole: int, cut: bool, count: LineCount, kept: Kept) -> str:
    shown = f"lines 1-{whole} of {count.lines}" if whole else f"the beginning of line 1 of {count.lines}"
    if whole and cut:
        shown += f" and the beginning of line {whole + 1}"
    return f"[output cut: {shown} shown, {show_size(count.size)} in all; {_rest(kept, whole)}]"


def _middle_marker(above: int, below: int, count: LineCount, kept: Kept) -> str:
    hidden = f"lines {above + 1}-{below}" if below > above else f"the middle of line {above + 1}"
    where = f"{hidden} of {count.lines} not shown"
    return f"[output cut: {where}, {show_size(count.size)} in all; {_rest(kept, above)}]"


def _rest(kept: Kept, offset: int) -> str:
    if kept.ref is None:
        return f"the rest was not kept: {kept.lost or NO_STORE}; narrow the call to see more"
    how = (
        f'read on with tool_output_cache(ref_id="{kept.ref.id}", offset={offset}), '
        f'search with tool_output_cache_grep(ref_id="{kept.ref.id}", pattern=...)'
    )
    return f"{how}; {kept.lost}" if kept.lost else how


def show_size(size: int) -> str:
    amount, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
