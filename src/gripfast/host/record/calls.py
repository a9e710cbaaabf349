"""The lines of a record: one for each call, as it is written and as it is read back."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from gripfast.host.record.states import PathState
from gripfast.records import dataclass

VERSION = 1
UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class PathDelta:
    """What a call did to one path, by its absolute real name. `note` says why it can't be taken back, if so;
    `shared`: another command ran at the same time, so it may have been that one."""

    path: str
    before: PathState
    after: PathState
    note: str = ""
    shared: bool = False

    def to_json(self) -> dict[str, Any]:
        shown = {"path": self.path, "before": self.before.to_json(), "after": self.after.to_json()}
        return shown | ({"note": self.note} if self.note else {}) | ({"shared": True} if self.shared else {})

    @classmethod
    def from_json(cls, value: Any) -> PathDelta:
        before, after = PathState.from_json(value["before"]), PathState.from_json(value["after"])
        return cls(str(value["path"]), before, after, str(value.get("note", "")), bool(value.get("shared")))


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call. `changes` are the paths it changed; `uncovered` names what changed without being recorded; `answer`
    is the SHA-256 of its answer, whose text is kept as contents are; `printed` that of a command's output in it, with
    the colours of a terminal, if it had any."""

    number: int
    time: float
    tool: str
    arguments: str = ""
    decision: str = ""
    milliseconds: float = 0.0
    answer_bytes: int = 0
    answer_tokens: int = 0
    output_ref: str | None = None
    error: str | None = None
    changes: tuple[PathDelta, ...] = ()
    uncovered: tuple[str, ...] = ()
    undoes: tuple[int, ...] = ()
    ended: bool = True
    answer: str | None = None
    printed: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The stable form: the keys of this version stay."""
        return {
            "call": self.number,
            "time": self.time,
            "tool": self.tool,
            "arguments": self.arguments,
            "decision": self.decision,
            "milliseconds": round(self.milliseconds, 3),
            "answer_bytes": self.answer_bytes,
            "answer_tokens": self.answer_tokens,
            "output_ref": self.output_ref,
            "error": self.error,
            "changes": [change.to_json() for change in self.changes],
            "uncovered": list(self.uncovered),
            "undoes": list(self.undoes),
            "ended": self.ended,
            "answer_sha256": self.answer,
            "printed_sha256": self.printed,
        }

    @classmethod
    def from_json(cls, value: Any) -> RecordedCall:
        return cls(
            int(value["call"]),
            float(value["time"]),
            str(value["tool"]),
            str(value["arguments"]),
            str(value["decision"]),
            float(value["milliseconds"]),
            int(value["answer_bytes"]),
            int(value["answer_tokens"]),
            value["output_ref"],
            value["error"],
            tuple(PathDelta.from_json(change) for change in value["changes"]),
            tuple(map(str, value["uncovered"])),
            tuple(map(int, value["undoes"])),
            bool(value["ended"]),
            _digest_or_none(value.get("answer_sha256")),
            _digest_or_none(value.get("printed_sha256")),
        )


def _digest_or_none(value: Any) -> str | None:
    """Raises ValueError for anything that is not a SHA-256, since it becomes part of a path."""
    if value is not None and not (isinstance(value, str) and len(value) == 64 and value.isalnum()):
        raise ValueError("not a SHA-256")
    return value


@dataclass(slots=True)
class Reading:
    """The calls of a record while its lines are read."""

    calls: dict[int, RecordedCall] = field(default_factory=dict[int, RecordedCall])
    announced: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])
    """What calls that have not ended have announced to change; the line of a call's end repeats all of it."""
    broken: int = 0

    def call(self, number: int) -> RecordedCall | None:
        if self.announced.get(number):
            try:
                _add(self, number, [PathDelta.from_json(change) for change in self.announced.pop(number)])
            except UNREADABLE:
                self.broken += 1
        return self.calls.get(number)

    def all(self) -> list[RecordedCall]:
        return [call for number in sorted(self.calls) if (call := self.call(number)) is not None]


def read_calls(file: Path) -> tuple[list[RecordedCall], int]:
    """The calls of a record in their order, and how many lines could not be read. A call that never ended has the
    changes it had announced."""
    reading = Reading()
    for line in _lines(file):
        try:
            read_line(reading, json.loads(line))
        except UNREADABLE:
            reading.broken += 1
    return reading.all(), reading.broken


class CallsFile:
    """A record that is read while it grows: each look reads only what was added since the last one. Several threads
    may look."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._read = 0
        self._reading = Reading()
        self._changed: dict[int, int] = {}
        self._last: dict[str, int] = {}
        self._looks = 0

    def look(self) -> int:
        """Reads what is new. Returns the number of this look."""
        with self._lock:
            return self._look()

    def _look(self) -> int:
        try:
            with open(self._file, "rb") as opened:
                if os.fstat(opened.fileno()).st_size < self._read:  # another file by now
                    self._read, self._reading, self._changed, self._last = 0, Reading(), {}, {}
                opened.seek(self._read)
                lines = opened.read().splitlines(keepends=True)
        except OSError:
            return self._looks
        whole = [line for line in lines if line.endswith(b"\n")]
        self._looks += bool(whole)
        for line in whole:
            self._read += len(line)
            self._take(line)
        return self._looks

    def _take(self, line: bytes) -> None:
        try:
            value = json.loads(line)
            read_line(self._reading, value)
            number = next((value[key] for key in ("call", "begins", "announces", "adds") if key in value), None)
        except UNREADABLE:
            self._reading.broken += 1
            return
        if number is not None:
            self._changed[int(number)] = self._looks
        if "call" in value and value["error"] is None:
            self._last[str(value["tool"])] = int(value["call"])

    def calls(self, since: int = 0) -> list[RecordedCall]:
        """The calls that changed after a look, in their order."""
        with self._lock:
            found = sorted(number for number, look in self._changed.items() if look > since)
            return [call for number in found if (call := self._reading.call(number)) is not None]

    def last_of(self, tool: str) -> RecordedCall | None:
        """The last call of a tool that succeeded."""
        return self.call(self._last.get(tool, 0))

    def call(self, number: int) -> RecordedCall | None:
        with self._lock:
            return self._reading.call(number)

    def all(self) -> list[RecordedCall]:
        """All calls so far, in their order."""
        with self._lock:
            return self._reading.all()


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with open(file, "rb") as opened:
            yield from (line for line in opened if line.strip())
    except FileNotFoundError:
        return


def read_line(reading: Reading, value: Any) -> None:
    """Takes one line. Raises one of UNREADABLE for anything else."""
    if "begins" in value:
        number = int(value["begins"])
        call = RecordedCall(number, float(value["time"]), str(value["tool"]), str(value["arguments"]), ended=False)
        reading.calls[number] = call
    elif "announces" in value:
        reading.announced.setdefault(int(value["announces"]), []).extend(value["changes"])
    elif "adds" in value:
        number = int(value["adds"])
        reading.call(number)
        _add(reading, number, [PathDelta.from_json(change) for change in value["changes"]])
        call = reading.calls[number]
        more = map(str, value.get("uncovered", ()))
        reading.calls[number] = replace(call, uncovered=tuple(dict.fromkeys((*call.uncovered, *more))))
    elif "call" in value:
        call = RecordedCall.from_json(value)
        reading.calls[call.number] = call
        reading.announced.pop(call.number, None)
    elif "record" not in value:
        raise ValueError("an unknown kind of line")


def _add(reading: Reading, number: int, changes: Iterable[PathDelta]) -> None:
    call = reading.calls[number]
    reading.calls[number] = replace(call, changes=merged((*call.changes, *changes)))


def merged(changes: Iterable[PathDelta]) -> tuple[PathDelta, ...]:
    """One change per path, from its first state to its last. A path that ended as it began has no change."""
    found: dict[str, PathDelta] = {}
    for change in changes:
        known = found.get(change.path)
        found[change.path] = change if known is None else _joined(known, change)
    return tuple(change for change in found.values() if not change.before.is_same(change.after))


def _joined(first: PathDelta, last: PathDelta) -> PathDelta:
    return PathDelta(first.path, first.before, last.after, first.note or last.note, first.shared or last.shared)
