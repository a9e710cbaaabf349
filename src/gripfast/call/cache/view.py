"""What a message shows of an output that is too large: whole lines, and a marker that says where the rest is."""

from __future__ import annotations

from gripfast.call.cache.lines import LineCount, decode
from gripfast.messages import OutputRef
from gripfast.records import dataclass
from gripfast.text.cut import character_start

MARKER_ROOM = 512
"""Bytes of CAP that are reserved for the marker."""

NO_STORE = "this session has no output cache"


@dataclass(frozen=True, slots=True)
class SaveResult:
    """The ref of a stored output, or why it was not stored; both if only part of it was.

    `readers` are the calls that read it back, as the session's tools declare them (`Traits.reads_outputs`).
    """

    ref: OutputRef | None = None
    lost: str | None = None
    readers: tuple[str, ...] = ()


def head_view(data: bytes | bytearray, room: int, *, count: LineCount, saved: SaveResult, above: int = 0) -> str:
    """The first whole lines of an output. `data` starts at line `above` (from 0)."""
    shown = _first_lines(data, room - MARKER_ROOM)
    whole = above + shown.count(b"\n")
    inside = _open_line(shown)
    return f"{decode(shown)}{_line_end(inside)}{_end_marker(whole, inside, count, saved)}"


def head_tail_view(
    head: bytes | bytearray, tail: bytes | bytearray, room: int, *, count: LineCount, saved: SaveResult
) -> str:
    """The first and the last whole lines of an output, with the marker between them."""
    half = (room - MARKER_ROOM) // 2
    first, last = _first_lines(head, half), _last_lines(tail, half)
    above = first.count(b"\n")
    below = count.lines - last.count(b"\n") - (not last.endswith(b"\n"))
    inside = _open_line(first)
    marker = _middle_marker(above, below, inside, count, saved)
    return f"{decode(first)}{_line_end(inside)}{marker}\n{decode(last)}"


def _first_lines(data: bytes | bytearray, room: int) -> bytes:
    if len(data) <= room:
        return bytes(data)
    end = data.rfind(b"\n", 0, room) + 1
    return bytes(data[: end if end > room // 2 else character_start(data, room)])


def _last_lines(data: bytes | bytearray, room: int) -> bytes:
    if len(data) <= room:
        return bytes(data)
    begin = data.find(b"\n", len(data) - room, len(data) - room // 2) + 1
    return bytes(data[begin or character_start(data, len(data) - room) :])


def _open_line(shown: bytes) -> int:
    """Bytes of the last line if that is cut."""
    return len(shown) - shown.rfind(b"\n") - 1


def _line_end(inside: int) -> str:
    return "\n" if inside else ""


def _end_marker(whole: int, inside: int, count: LineCount, saved: SaveResult) -> str:
    shown = f"lines 1-{whole} of {count.lines}" if whole else f"the beginning of line 1 of {count.lines}"
    if whole and inside:
        shown += f" and the beginning of line {whole + 1}"
    return f"[output cut: {shown} shown, {show_size(count.size)} in total; {_rest(saved, whole, inside)}]"


def _middle_marker(above: int, below: int, inside: int, count: LineCount, saved: SaveResult) -> str:
    hidden = f"lines {above + 1}-{below}" if below > above else f"the middle of line {above + 1}"
    where = f"{hidden} of {count.lines} not shown"
    return f"[output cut: {where}, {show_size(count.size)} in total; {_rest(saved, above, inside)}]"


def _rest(saved: SaveResult, offset: int, inside: int) -> str:
    if saved.ref is None:
        return f"the rest was not stored: {saved.lost or NO_STORE}; narrow the call to see more"
    place = f"offset={offset}, line_offset={inside}" if inside else f"offset={offset}"
    calls = [call.replace("{ref}", saved.ref.id).replace("{place}", place) for call in saved.readers]
    how = ", ".join(calls) or f"the whole output is stored as {saved.ref.id}"
    return f"{how}; {saved.lost}" if saved.lost else how


def show_size(size: int) -> str:
    amount, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
