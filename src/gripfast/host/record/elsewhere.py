"""The calls of a session on other servers: what a server shares of its record, and how others read it.

A line says which server it is from. It has no contents: those stay where the files were changed, and so does undo.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from gripfast.host.record.calls import UNREADABLE, Reading, RecordedCall, read_line
from gripfast.records import dataclass

_ARGUMENTS = 1000  # characters
_PATHS = 50
_LARGEST_LINE = 1 << 16
_LARGEST_NUMBER = 1e11
_UNNAMED = re.compile(r"[^A-Za-z0-9.:_\[\]-]")
_MORE = "and {} more paths, listed in that server's own record"


@dataclass(frozen=True, slots=True)
class SessionCall:
    """A call of a session. `server` is empty if it is in this machine's own record."""

    call: RecordedCall
    server: str = ""

    @property
    def key(self) -> str:
        """Names the call in its session: its number, and where that is counted."""
        return f"{self.call.number}@{self.server}" if self.server else str(self.call.number)

    def to_json(self) -> dict[str, Any]:
        return {**self.call.to_json(), **({"server": self.server} if self.server else {})}


def line_for_others(value: dict[str, Any], server: str) -> bytes:
    """A line of a record as other servers may know it: short, and with this server's name."""
    shown = dict(value)
    if "arguments" in shown:
        shown["arguments"] = str(shown["arguments"])[:_ARGUMENTS]
    changes, uncovered = list(shown.get("changes", ())), list(shown.get("uncovered", ()))
    surplus = max(0, len(changes) - _PATHS) + max(0, len(uncovered) - _PATHS)
    shown["changes"] = changes[:_PATHS]
    shown["uncovered"] = [*uncovered[:_PATHS], *([_MORE.format(surplus)] if surplus else [])]
    line = json.dumps({"server": server, **shown}, separators=(",", ":")).encode()
    if len(line) > _LARGEST_LINE:  # paths may be very long
        shown |= {"changes": [], "uncovered": [_MORE.format(len(changes) + len(uncovered))]}
        line = json.dumps({"server": server, **shown}, separators=(",", ":")).encode()
    return line


def calls_everywhere(own: Sequence[RecordedCall], lines: Iterable[bytes]) -> tuple[list[SessionCall], int]:
    """The calls of a session in their order: this machine's own, and those that other servers report in `lines`.
    Also how many of the lines could not be read; they come from a store that others may write to."""
    known = {(call.number, call.time) for call in own}
    readings: dict[str, Reading] = {}
    order: dict[tuple[str, int], None] = {}
    broken = 0
    for line in lines:
        try:
            server, number = _read(readings, line)
            order.setdefault((server, number))
        except (*UNREADABLE, OverflowError):
            broken += 1
    theirs: dict[str, SessionCall] = {}
    for server, number in order:
        call = readings[server].call(number)
        if call is not None and (call.number, call.time) not in known:
            one = SessionCall(call, _name(server))
            if one.key in theirs:  # a server that counts from one again, because its record was lost
                one = SessionCall(call, f"{one.server}#{_UNNAMED.sub('', server.partition(' ')[2])[:8]}")
            theirs[one.key] = one
    return _in_order([SessionCall(call) for call in own], list(theirs.values())), broken


def _read(readings: dict[str, Reading], line: bytes) -> tuple[str, int]:
    value = json.loads(line) if len(line) <= _LARGEST_LINE else None
    if not isinstance(value, dict):
        raise ValueError("not a line of a record")
    found = cast("dict[str, Any]", value)
    server = str(found["server"])
    number = int(found["call"] if "call" in found else found["adds"])
    _refuse_odd(found, number)
    reading = readings.setdefault(server, Reading())
    read_line(reading, found)
    return server, number


def _refuse_odd(line: dict[str, Any], number: int) -> None:
    """Raises ValueError for values that no server writes, and that those who show them could not bear."""
    texts = [line.get(name) for name in ("error", "output_ref")]
    numbers = [float(line.get(name, 0)) for name in ("time", "milliseconds", "answer_bytes", "answer_tokens")]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError("not a text")
    if not 0 < number < _LARGEST_NUMBER or not all(0 <= one < _LARGEST_NUMBER for one in numbers):
        raise ValueError("not a number of ours")


def _name(server: str) -> str:
    """The name of a server, without what makes it unique."""
    return _UNNAMED.sub("?", server.partition(" ")[0])[:80] or "?"


def _in_order(own: Sequence[SessionCall], theirs: Sequence[SessionCall]) -> list[SessionCall]:
    """Both by time, each in the order that it has: clocks of servers differ."""
    merged: list[SessionCall] = []
    rest = list(own)
    for one in theirs:
        while rest and rest[0].call.time <= one.call.time:
            merged.append(rest.pop(0))
        merged.append(one)
    return [*merged, *rest]
