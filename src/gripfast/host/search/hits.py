"""What ripgrep prints, read as it comes: the first hits in path order are kept, the others are counted.

The form is `rg --heading --null -n`: for each file its path and a NUL, then its lines (`12:text` for a match,
`13-text` for context, `--` between groups), then an empty line. A line of a hit always begins with its number,
so that nothing in a file can look like a path; and no text that ripgrep prints holds a NUL. Of a binary file there
is one line, which says so.

Long lines are left out at first (`--max-columns`) and fetched in a second run, only for what is shown, with the
column of the match (`12:5:text`): they are cut around it, whatever their length.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Protocol

from gripfast.records import dataclass
from gripfast.text.cut import unfinished

MAX_LINE_BYTES = 500
_LEAD_BYTES = 120  # of a long line, how much stays in front of the match
_LONG = 64 * 1024  # a line longer than this is never held whole

_NOTICE = re.compile(rb": [Bb]inary file matches \(found [^\n]*\)\n")
_NOTICE_IN_BODY = re.compile(rb"^(?![0-9]|--$)([^\0]*?): [Bb]inary file matches \(found [^\n]*\)\n", re.MULTILINE)
_NUMBERED = re.compile(rb"([0-9]+)(?:(:)|-)")
_NUMBERED_WITH_COLUMN = re.compile(rb"([0-9]+)(?::([0-9]+):|-)")
_MATCHING = re.compile(rb"^[0-9]+:", re.MULTILINE)
_LEFT_OUT = "[Omitted long "


@dataclass(frozen=True, slots=True)
class HitLine:
    """A line of a hit. A long one is cut around its match: so many bytes are missing before and after."""

    number: int
    is_match: bool
    text: str
    cut_before: int = 0
    cut_after: int = 0

    @property
    def is_left_out(self) -> bool:
        return self.text.startswith(_LEFT_OUT)


@dataclass(frozen=True, slots=True)
class FileHits:
    """A file that matched: its path from the root, how many of its lines match, and the lines asked for."""

    path: str
    count: int
    lines: tuple[HitLine, ...] = ()


@dataclass(slots=True)
class FileBeingRead:
    """The file whose lines are coming in. `wanted` says whether any of them may be shown."""

    path: bytes
    wanted: bool
    count: int = 0
    lines: list[HitLine] = field(default_factory=list[HitLine])
    last_wanted: int | None = None


class HitCollector(Protocol):
    """Where hits go: it says which files and lines it wants, and gets each file when it is complete."""

    def wants(self, path: bytes) -> bool: ...
    def takes_more(self, file: FileBeingRead) -> bool: ...
    def add(self, file: FileBeingRead) -> None: ...


class FirstHits:
    """The hits that come first in path order, as many as there is room for, and the count of all.

    Room is counted in matching lines, or in files with `by_file`. Memory is bounded by room, not by the hits.
    """

    def __init__(self, room: int, *, by_file: bool, after: int = 0) -> None:
        self.files = 0
        self.matches = 0
        self._room = room
        self._by_file = by_file
        self._after = after
        self._hits: list[tuple[bytes, FileHits]] = []
        self._held = 0
        self._bound: bytes | None = None

    def wants(self, path: bytes) -> bool:
        return self._bound is None or path < self._bound

    def takes_more(self, file: FileBeingRead) -> bool:
        """As many matches as there is room for, and the context after the last one, which may hold matches."""
        if self._by_file or file.count < self._room:
            return not self._by_file
        if file.last_wanted is None:
            file.last_wanted = [line.number for line in file.lines if line.is_match][self._room - 1] + self._after
        return file.lines[-1].number < file.last_wanted

    def add(self, file: FileBeingRead) -> None:
        self.files += 1
        self.matches += file.count
        if not self.wants(file.path):
            return
        self._hits.append((file.path, FileHits(os.fsdecode(file.path), file.count, tuple(file.lines))))
        self._held += 1 if self._by_file else file.count
        if self._held > 2 * self._room + 1000:
            self._cut()

    def in_order(self) -> list[FileHits]:
        self._cut()
        return [hits for _, hits in self._hits]

    def _cut(self) -> None:
        """Sort, and let go of every file that begins after the room is used up."""
        self._hits.sort(key=lambda hit: hit[0])
        self._held = 0
        for position, (path, hits) in enumerate(self._hits):
            if self._held >= self._room:
                del self._hits[position:]
                self._bound = path
                return
            self._held += 1 if self._by_file else hits.count


class ChosenLines:
    """Certain lines of certain files, by number."""

    def __init__(self, numbers: Mapping[bytes, set[int]]) -> None:
        self.found: dict[tuple[str, int], HitLine] = {}
        self._numbers = numbers

    def wants(self, path: bytes) -> bool:
        return path in self._numbers

    def takes_more(self, file: FileBeingRead) -> bool:
        return True

    def add(self, file: FileBeingRead) -> None:
        path = os.fsdecode(file.path)
        self.found.update({(path, line.number): line for line in file.lines})

    def keeps(self, file: FileBeingRead, number: int) -> bool:
        return number in self._numbers[file.path]


class HitReader:
    """Takes ripgrep's output in pieces of any size."""

    def __init__(
        self,
        into: HitCollector,
        *,
        keep: Callable[[str], bool] | None = None,
        context: bool = False,
        columns: bool = False,
    ) -> None:
        self.binary_files = 0
        self._into = into
        self._keep = keep
        self._context = context
        self._numbered = _NUMBERED_WITH_COLUMN if columns else _NUMBERED
        self._chosen = into if isinstance(into, ChosenLines) else None
        self._rest = b""
        self._file: FileBeingRead | None = None
        self._long: _LongLine | None = None

    def feed(self, piece: bytes) -> None:
        data = self._rest + piece if self._rest else piece
        at = 0
        while at < len(data):
            after = self._step(data, at)
            if after == at:
                break
            at = after
        self._rest = data[at:]

    def close(self) -> None:
        """The output has ended: what is complete counts."""
        self._rest = b""
        self._finish()

    def _step(self, data: bytes, at: int) -> int:
        """Read on from `at`; the same place again means: more data is needed."""
        if self._long is not None:
            return self._read_long(self._long, data, at)
        if data[at] in b"\r\n":
            self._finish()
            return at + 1
        return self._read_heading(data, at) if self._file is None else self._read_lines(data, at)

    def _read_heading(self, data: bytes, at: int) -> int:
        end = data.find(b"\0", at)
        notice = _NOTICE.search(data, at, len(data) if end < 0 else end)
        if notice:
            self.binary_files += self._is_kept(data[at : notice.start()])
            return notice.end()
        if end < 0:
            return at
        path = data[at:end].removeprefix(b"./")
        counted = self._is_kept(path)
        self._file = FileBeingRead(path if counted else b"", counted and self._into.wants(path))
        return end + 1

    def _is_kept(self, path: bytes) -> bool:
        return self._keep is None or self._keep(os.fsdecode(path.removeprefix(b"./")))

    def _read_lines(self, data: bytes, at: int) -> int:
        end = _block_end(data, at)
        if end >= 0:
            self._take(data[at : end + 1])
            self._finish()
            return end + 1
        last = data.rfind(b"\n", at)
        if last >= 0:
            self._take(data[at : last + 1])
            return last + 1
        if len(data) - at <= _LONG:
            return at
        self._long = _LongLine(self._numbered.match(data, at))
        return self._read_long(self._long, data, self._long.text_starts or at)

    def _read_long(self, line: _LongLine, data: bytes, at: int) -> int:
        after = line.take(data, at)
        if line.ended:
            self._long = None
            self._take_long(line.line())
        return after

    def _take_long(self, line: HitLine | None) -> None:
        file = self._file
        if file is None or line is None:
            return
        if self._is_wanted(file, line.number):
            file.lines.append(line)
        file.count += line.is_match

    def _take(self, lines: bytes) -> None:
        """Whole lines of the open file: count them, and keep those that are wanted."""
        assert self._file is not None
        if b"inary file matches (found " in lines:
            lines = _NOTICE_IN_BODY.sub(self._note_binary, lines)
        rest = self._keep_lines(self._file, lines)
        self._file.count += self._count(rest)

    def _note_binary(self, notice: re.Match[bytes]) -> bytes:
        self.binary_files += self._is_kept(notice.group(1))
        return b""

    def _keep_lines(self, file: FileBeingRead, lines: bytes) -> bytes:
        """Take lines one by one while they are wanted; what is left only has to be counted."""
        at = 0
        while at < len(lines) and file.wanted and self._into.takes_more(file):
            end = lines.index(b"\n", at)
            self._keep_line(file, lines[at:end])
            at = end + 1
        return lines[at:]

    def _keep_line(self, file: FileBeingRead, raw: bytes) -> None:
        numbered = self._numbered.match(raw)
        if numbered is None:
            return  # the -- between groups
        if self._is_wanted(file, int(numbered.group(1))):
            text = raw[numbered.end() :].removesuffix(b"\r")
            low = _first_shown(numbered, len(text))
            file.lines.append(_line(numbered, text[low : low + MAX_LINE_BYTES], low, len(text)))
        file.count += numbered.group(2) is not None

    def _count(self, lines: bytes) -> int:
        return len(_MATCHING.findall(lines)) if self._context else lines.count(b"\n")

    def _is_wanted(self, file: FileBeingRead, number: int) -> bool:
        if self._chosen is not None:
            return file.wanted and self._chosen.keeps(file, number)
        return file.wanted and self._into.takes_more(file)

    def _finish(self) -> None:
        if self._file is not None and self._file.path and self._file.count:
            self._into.add(self._file)
        self._file = None


def _block_end(data: bytes, at: int) -> int:
    """Where the last line of a file ends, before an empty one (whose end is "\\r\\n" with one thread); else -1."""
    end = data.find(b"\n\n", at)
    other = data.find(b"\n\r\n", at, len(data) if end < 0 else end)
    return end if other < 0 else other


def _first_shown(numbered: re.Match[bytes], total: int) -> int:
    """The first byte of a line that is shown: so that the match is in view, and the whole of a short line."""
    column = numbered.group(2) or b""
    match_at = int(column) - 1 if column.isdigit() else 0
    return max(0, min(match_at - _LEAD_BYTES, total - MAX_LINE_BYTES))


def _line(numbered: re.Match[bytes], shown: bytes, low: int, total: int) -> HitLine:
    """The bytes shown as a line, with whole characters at its cut ends."""
    high = low + len(shown)
    if low:
        inside = shown.lstrip(bytes(range(0x80, 0xC0)))
        low, shown = low + len(shown) - len(inside), inside
    if high < total:
        whole = shown[: len(shown) - unfinished(shown)]
        high, shown = high - len(shown) + len(whole), whole
    is_match = numbered.group(2) is not None
    return HitLine(int(numbered.group(1)), is_match, shown.decode("utf-8", "replace"), low, total - high)


class _LongLine:
    """A line too long to hold: only what will be shown of it is kept while the rest goes by."""

    def __init__(self, numbered: re.Match[bytes] | None) -> None:
        self.ended = False
        self.text_starts = numbered.end() if numbered else 0
        self._numbered = numbered
        self._low = _first_shown(numbered, 1 << 62) if numbered else 0
        self._shown = b""
        self._seen = 0

    def take(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at)
        self.ended = end >= 0
        end = end if self.ended else len(data)
        low = at + max(0, self._low - self._seen)
        if low < end:
            self._shown += data[low : min(end, low + MAX_LINE_BYTES - len(self._shown))]
        self._seen += end - at
        return end + self.ended

    def line(self) -> HitLine | None:
        return _line(self._numbered, self._shown, self._low, self._seen) if self._numbered else None


def window(files: list[FileHits], offset: int, limit: int, *, before: int, after: int) -> tuple[FileHits, ...]:
    """Of hits in order, the lines of the matches `offset` .. `offset + limit`, with their context."""
    chosen: list[FileHits] = []
    end = offset + limit
    for hits in files:
        lines = _lines_between(hits, max(0, offset), max(0, end), before=before, after=after)
        if lines:
            chosen.append(replace(hits, lines=lines))
        offset, end = offset - hits.count, end - hits.count
    return tuple(chosen)


def _lines_between(hits: FileHits, first: int, end: int, *, before: int, after: int) -> tuple[HitLine, ...]:
    chosen = {line.number for line in [line for line in hits.lines if line.is_match][first:end]}
    shown = {near for number in chosen for near in range(number - before, number + after + 1)}
    return tuple(
        line if line.number in chosen else replace(line, is_match=False)
        for line in hits.lines
        if line.number in shown
    )
