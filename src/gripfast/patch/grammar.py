"""Reads the text of a patch into hunks. Every fault of the text is found at once.

patch:    "*** Begin Patch" hunk+ "*** End Patch"
hunk:     "*** Add File: " path ("+" text)*
        | "*** Delete File: " path
        | "*** Update File: " path ("*** Move to: " path)? chunk*
chunk:    ("@@" | "@@ " text)* (("+" | "-" | " ") text)+ "*** End of File"?
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass
from gripfast.text.escape import escaped

Kind: TypeAlias = Literal["add", "delete", "update"]
BEGIN, END, END_OF_FILE, MOVE = "*** Begin Patch", "*** End Patch", "*** End of File", "*** Move to:"
KINDS: dict[str, Kind] = {"*** Add File:": "add", "*** Delete File:": "delete", "*** Update File:": "update"}
MOST_BYTES = 16 * 1024 * 1024
_MOST_FAULTS = 20  # that a message names
_SHOWN = 80  # characters of a line in a message
_FENCE = re.compile(r"\s*(?:```|~~~)[\w+-]*\s*")
_HEREDOC = re.compile(r"""[^\n]*<<-?\s*(['"]?)(\w+)\1[^\n]*""")
_RANGES = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@(.*)")


@dataclass(frozen=True, slots=True)
class PatchRow:
    """One line of a chunk: `+` is added, `-` removed, a space stays."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines that follow each other in the file, and what becomes of them.

    `headers` are the `@@` texts above; `hint` is the text behind the ranges of a unified diff, which narrows only if
    it is found. `line` is its line in the patch.
    """

    line: int
    headers: tuple[str, ...]
    rows: tuple[PatchRow, ...]
    hint: str = ""
    at_end: bool = False

    @property
    def old(self) -> tuple[str, ...]:
        return tuple(row.text for row in self.rows if row.sign != "+")


@dataclass(frozen=True, slots=True)
class Hunk:
    """What happens to one file. `lines` is the content of a file that is added."""

    number: int
    line: int
    kind: Kind
    path: str
    move_to: str | None = None
    lines: tuple[str, ...] = ()
    chunks: tuple[Chunk, ...] = ()

    def __str__(self) -> str:
        return f"hunk {self.number} ({self.kind.title()} File: {escaped(self.path)})"


@dataclass(frozen=True, slots=True)
class Patch:
    """The hunks of a patch. `tolerated` names what was read although the grammar has it otherwise."""

    hunks: tuple[Hunk, ...]
    tolerated: tuple[str, ...] = ()

    def paths(self) -> tuple[str, ...]:
        """Every path, as the patch writes it, each once."""
        named = [path for hunk in self.hunks for path in (hunk.path, hunk.move_to) if path is not None]
        return tuple(dict.fromkeys(named))


def parse(text: str) -> Patch:
    """Raises InvalidArgument, which names all faults by their lines."""
    if len(text) > MOST_BYTES:
        raise InvalidArgument(f"the patch has {len(text)} characters; at most {MOST_BYTES} are read; split it")
    if not text.strip():
        raise InvalidArgument(f"the patch is empty; it begins with `{BEGIN}` and ends with `{END}`")
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidArgument("the patch contains a lone surrogate; give it as valid Unicode")
    reader = _PatchReader()
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if any(line.endswith("\r") for line in text.split("\n")[:-1]):
        reader.tolerate("CR before LF")
    first, last = reader.frame(lines)
    if not reader.faults:
        reader.read(lines, first, last)
    if reader.faults:
        raise _faulty(reader.faults)
    return Patch(tuple(reader.hunks), tuple(reader.tolerated))


def _faulty(faults: Sequence[str]) -> InvalidArgument:
    more = len(faults) - _MOST_FAULTS
    shown = [*faults[:_MOST_FAULTS], *([f"and {more} more"] if more > 0 else [])]
    text = shown[0] if len(shown) == 1 else "\n".join(["", *(f"- {fault}" for fault in shown)])
    return InvalidArgument(f"the patch can't be read, so nothing was written: {text}")


@dataclass(slots=True)
class _Open:
    """A chunk while it is read."""

    line: int
    headers: list[str] = field(default_factory=list[str])
    rows: list[PatchRow] = field(default_factory=list[PatchRow])
    hint: str = ""
    at_end: bool = False

    def closed(self) -> Chunk:
        return Chunk(self.line, tuple(self.headers), tuple(self.rows), self.hint, self.at_end)


class _PatchReader:
    def __init__(self) -> None:
        self.hunks: list[Hunk] = []
        self.faults: list[str] = []
        self.tolerated: list[str] = []
        self._hunk: Hunk | None = None
        self._lines: list[str] = []
        self._chunks: list[Chunk] = []
        self._chunk: _Open | None = None

    def tolerate(self, what: str) -> None:
        if what not in self.tolerated:
            self.tolerated.append(what)

    def _fault(self, at: int, what: str) -> None:
        self.faults.append(f"line {at + 1}: {what}")

    # --- the frame ---

    def frame(self, lines: Sequence[str]) -> tuple[int, int]:
        """The lines between the two markers, without what models put around them."""
        first, last = 0, len(lines) - 1
        first, last = _inside_blank(lines, first, last)
        first, last = self._unwrapped(lines, first, last)
        if not self._is_marker(lines[first], BEGIN):
            self._fault(first, f"{_quoted(lines[first])} is not `{BEGIN}`, which a patch begins with")
        elif first == last or not self._is_marker(lines[last], END):
            self._fault(last, f"the patch ends in {_quoted(lines[last])}, not in `{END}`; perhaps it was cut")
        return first + 1, last

    def _unwrapped(self, lines: Sequence[str], first: int, last: int) -> tuple[int, int]:
        """Without a code fence and a heredoc around it."""
        while last - first >= 2:
            heredoc = _HEREDOC.fullmatch(lines[first])
            if _FENCE.fullmatch(lines[first]) and _FENCE.fullmatch(lines[last]):
                self.tolerate("a code fence around it")
            elif heredoc and lines[last].strip() == heredoc[2]:
                self.tolerate("a heredoc around it")
            else:
                break
            first, last = _inside_blank(lines, first + 1, last - 1)
        return first, last

    def _is_marker(self, line: str, marker: str) -> bool:
        bare = line.strip()
        if bare.endswith(" ***") and bare.removesuffix(" ***") == marker:
            self.tolerate(f"`{marker} ***`")
            return True
        return bare == marker

    # --- the hunks ---

    def read(self, lines: Sequence[str], first: int, last: int) -> None:
        for at in range(first, last):
            self._line(at, lines[at])
        self._close_hunk()
        if not self.hunks and not self.faults:
            self._fault(first, "the patch has no hunk: no file to add, delete or update")

    def _line(self, at: int, line: str) -> None:
        kind = self._header(line)
        if kind is not None:
            self._open_hunk(at, *kind)
        elif self._hunk is None:
            if line.strip().startswith((BEGIN, END)):
                self._unknown(at, line)
            elif line.strip():
                known = ", ".join(f"`{prefix}`" for prefix in KINDS)
                self._fault(at, f"{_quoted(line)} is outside of any hunk; one begins with {known}")
        elif self._hunk.kind == "add":
            self._added(at, line)
        elif self._hunk.kind == "update":
            self._changed(at, line, self._hunk)
        elif line.strip():
            self._fault(at, f"{_quoted(line)} follows a Delete File, which has no lines")

    def _header(self, line: str) -> tuple[Kind, str] | None:
        """A header's kind and path. Space before it counts only where no line of a chunk can be meant."""
        bare = line.strip() if self._hunk is None else line.rstrip()
        for prefix, kind in KINDS.items():
            if bare.startswith(prefix):
                return kind, bare.removeprefix(prefix).strip()
        return None

    def _open_hunk(self, at: int, kind: Kind, path: str) -> None:
        self._close_hunk()
        if not path:
            self._fault(at, "the header names no file")
        self._hunk = Hunk(len(self.hunks) + 1, at + 1, kind, path)

    def _close_hunk(self) -> None:
        hunk, self._hunk = self._hunk, None
        if hunk is None:
            return
        self._close_chunk()
        if hunk.kind == "update" and not self._chunks and hunk.move_to is None:
            self._fault(hunk.line - 1, "an Update File without a change and without a `*** Move to:`")
        self.hunks.append(replace(hunk, lines=tuple(self._lines), chunks=tuple(self._chunks)))
        self._lines, self._chunks = [], []

    def _added(self, at: int, line: str) -> None:
        if line.startswith("+"):
            self._lines.append(line[1:])
        elif line.startswith("***"):
            self._unknown(at, line)
        else:
            self._fault(at, f"{_quoted(line)} does not begin with `+`, as every line of a new file does")

    def _unknown(self, at: int, line: str) -> None:
        nested = line.strip().startswith((BEGIN, END))
        why = "is in the middle of a patch; send one patch, not several" if nested else "is not a known header"
        self._fault(at, f"{_quoted(line)} {why}")

    # --- chunks ---

    def _changed(self, at: int, line: str, hunk: Hunk) -> None:
        if line.startswith("***"):
            self._mark(at, line, hunk)
        elif line.startswith("@@"):
            self._context(at, line)
        elif line[:1] in ("+", "-", " ") and line:
            self._row(at, PatchRow(line[0], line[1:]))
        elif not line.strip():
            if line or self._chunk is not None:  # an empty line between chunks is none of theirs
                self._row(at, PatchRow(" ", line))
        else:
            self._fault(at, f"{_quoted(line)} begins with none of `+`, `-`, space and `@@`")

    def _mark(self, at: int, line: str, hunk: Hunk) -> None:
        bare = line.rstrip()
        if bare.startswith(MOVE):
            target = bare.removeprefix(MOVE).strip()
            if hunk.move_to is not None or self._chunk is not None or self._chunks:
                self._fault(at, "`*** Move to:` belongs directly below its Update File, once")
            if not target:
                self._fault(at, "`*** Move to:` names no file")
            self._hunk = replace(hunk, move_to=target)
        elif bare == END_OF_FILE:
            if self._chunk is None or not self._chunk.rows:
                self._fault(at, f"`{END_OF_FILE}` follows no line")
            else:
                self._chunk.at_end = True
                self._close_chunk()
        else:
            self._unknown(at, line)

    def _context(self, at: int, line: str) -> None:
        if self._chunk is not None and self._chunk.rows:
            self._close_chunk()
        stacked = self._chunk is not None
        self._chunk = self._chunk or _Open(at + 1)
        ranges = _RANGES.fullmatch(line.rstrip())
        if ranges:
            self.tolerate("the line numbers of a unified diff")
            self._chunk.hint = ranges[1].strip()
            return
        text = line[2:]
        header = text[1:] if text.startswith(" ") else text
        if header.strip():
            if stacked and self._chunk.headers:
                self.tolerate("stacked `@@` headers")
            self._chunk.headers.append(header)

    def _row(self, at: int, row: PatchRow) -> None:
        self._chunk = self._chunk or _Open(at + 1)
        self._chunk.rows.append(row)

    def _close_chunk(self) -> None:
        chunk, self._chunk = self._chunk, None
        if chunk is None:
            return
        if any(row.sign != " " or row.text.strip() for row in chunk.rows):
            self._chunks.append(chunk.closed())
        else:
            self._fault(chunk.line - 1, "an `@@` without lines below it")


def _inside_blank(lines: Sequence[str], first: int, last: int) -> tuple[int, int]:
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last].strip():
        last -= 1
    return first, last


def _quoted(line: str) -> str:
    return f"`{escaped(line[:_SHOWN])}{'…' if len(line) > _SHOWN else ''}`"
