"""Search of a stored output by ripgrep on a stream: linear time whatever the pattern, and little memory."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import IO, TypeVar

from gripfast.errors import Internal, InvalidArgument, InvalidRegex, ToolError
from gripfast.host.search.patterns import regex_fault
from gripfast.host.search.ripgrep import find_rg
from gripfast.records import dataclass
from gripfast.text.cut import character_start

LONGEST_PATTERN = 8 * 1024
LONGEST_LINE = 4 * 1024 * 1024
"""A longer line would have to be held whole by ripgrep; it is searched in pieces of a quarter of that."""
TIMEOUT = 20.0

T = TypeVar("T")

_PIECE = LONGEST_LINE // 4
_KEPT = 256 * 1024  # bytes of rows; a message holds 64 KiB
_SHOWN = 2000  # bytes of one row
_BEFORE = 500  # of them before the match
_ROW = re.compile(rb"(\d+):(\d+):|(\d+)-")  # column and offset of a match, offset of a line of context

# A whole file as standard input also has a name, by which ripgrep can map it instead of reading it.
_BY_NAME = "/proc/self/fd/0"

Source = Callable[[int], int | Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Query:
    pattern: str
    regex: bool
    before: int
    after: int
    max_matches: int


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A line that matches, or is near one: where it starts and how long it is, and its text, clipped when long."""

    start: int
    length: int
    is_match: bool
    text: bytes
    rest_at: int | None = None  # where in the line the missing part begins; None if nothing is missing


@dataclass(frozen=True, slots=True)
class RowsFound:
    rows: tuple[FoundRow, ...]
    matches: int
    timed_out: bool


class LineSearch:
    """One search. `source` gives the bytes from an offset on: as a descriptor, or piece by piece.

    The rows that are shown come from a first run that stops when there are enough. A second one, from there on, only
    counts. Line numbers are left to the caller, who has an index: counting them here would cost a third of the time.
    """

    def __init__(self, query: Query, source: Source, *, timeout: float = TIMEOUT) -> None:
        self._query = query
        self._source = source
        self._timeout = timeout
        self._folds: list[int] = []
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._full = False  # there are more rows than any answer shows
        self._pump_fault: Exception | None = None

    def run(self) -> RowsFound:
        expired = threading.Event()
        timer = threading.Timer(self._timeout, lambda: (expired.set(), self.stop()))
        timer.start()
        try:
            rows = self._search(0, _showing(self._query), self._rows)
            matches = sum(row.is_match for row in rows)
            if (matches >= self._query.max_matches or self._full) and not self._stopped:
                last = rows[-1] if self._full else [row for row in rows if row.is_match][-1]
                matches += self._search(last.start + last.length + 1, _counting(self._query), _count)
            return RowsFound(tuple(rows), matches, expired.is_set())
        finally:
            timer.cancel()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def _search(self, start: int, options: list[str], read: Callable[[IO[bytes]], T]) -> T:
        source = self._source(start)
        with contextlib.ExitStack() as cleanup:
            if isinstance(source, int):
                cleanup.callback(os.close, source)
            where = _BY_NAME if isinstance(source, int) and start == 0 and os.path.exists(_BY_NAME) else "-"
            argv = [find_rg(), *options, "--", where]
            process = self._start(argv, source if isinstance(source, int) else subprocess.PIPE)
            cleanup.callback(_end, process)
            if not isinstance(source, int):
                self._pump(process, source, cleanup)
            assert process.stdout is not None
            found = read(process.stdout)
            self._check(process)
            return found

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
        cleanup.callback(_kill, process)

    def _feed(self, process: subprocess.Popen[bytes], pieces: Iterator[bytes]) -> None:
        assert process.stdin is not None
        try:
            with process.stdin as pipe:
                for piece in self._folded(pieces):
                    pipe.write(piece)
        except BrokenPipeError:
            pass  # ripgrep has ended: a bad pattern, enough matches, or it was stopped
        except (OSError, ToolError) as fault:
            self._pump_fault = fault
            _kill(process)

    def _folded(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The same bytes with a line end after every piece's length of a line without one; remembers where."""
        sent, held = 0, 0
        for piece in pieces:
            yield piece
            sent += len(piece)
            last = piece.rfind(b"\n")
            held = held + len(piece) if last < 0 else len(piece) - last - 1
            if held >= _PIECE:
                yield b"\n"
                sent, held = sent + 1, 0
                self._folds.append(sent)

    def _rows(self, output: IO[bytes]) -> list[FoundRow]:
        """Rows until there are enough; ripgrep gives matches in the context of the last one too."""
        rows: list[FoundRow] = []
        matches = trailing = kept = 0
        for line in output:
            parsed = _ROW.match(line)
            if parsed is None:
                continue  # the -- between groups
            row = self._row(parsed, line[parsed.end() :].removesuffix(b"\n"))
            if matches == self._query.max_matches:
                row, trailing = replace(row, is_match=False), trailing + 1
                if trailing > self._query.after:
                    break
            matches += row.is_match
            rows.append(row)
            kept += len(row.text) + 32
            if kept > _KEPT:
                self._full = matches < self._query.max_matches
                break
        return rows

    def _row(self, parsed: re.Match[bytes], text: bytes) -> FoundRow:
        is_match = parsed[1] is not None
        fed = int(parsed[2] if is_match else parsed[3])
        shown, rest_at = _clipped(text.removesuffix(b"\r"), int(parsed[1]) - 1 if is_match else 0)
        return FoundRow(fed - bisect_right(self._folds, fed), len(text), is_match, shown, rest_at)

    def _check(self, process: subprocess.Popen[bytes]) -> None:
        """Whether it ended well; being stopped, or having found enough, counts as well."""
        assert process.stderr is not None
        assert process.stdout is not None
        if process.stdout.read(1):
            return
        errors = process.stderr.read(4096).decode("utf-8", "replace")
        if process.wait() not in (0, 1) and not self._stopped and self._pump_fault is None:
            raise _refused(self._query.pattern, errors)
        if self._pump_fault is not None:
            raise self._pump_fault


def check_pattern(pattern: str) -> None:
    """What no search could take, said before anything is opened."""
    if not pattern:
        raise InvalidArgument("pattern is empty; give the text or regex to look for")
    if len(pattern) > LONGEST_PATTERN:
        raise InvalidArgument(f"pattern is {len(pattern)} characters long; at most {LONGEST_PATTERN} are allowed")
    if "\n" in pattern or "\0" in pattern:
        raise InvalidArgument("pattern contains a line end or NUL; outputs are searched line by line")
    try:
        pattern.encode()
    except UnicodeEncodeError:
        raise InvalidArgument("pattern contains a lone surrogate, which no text can contain") from None


_PLAIN = "--no-config --no-filename --text --no-heading --color=never --encoding=none -j1".split()


def _showing(query: Query) -> list[str]:
    context = [f"--before-context={query.before}", f"--after-context={query.after}"]
    where = ["--byte-offset", "--column", "--no-line-number", f"--max-count={query.max_matches}"]
    return [*_PLAIN, *where, *context, *_pattern(query)]


def _counting(query: Query) -> list[str]:
    return [*_PLAIN, "--count", *_pattern(query)]


def _pattern(query: Query) -> list[str]:
    mode = "--crlf" if query.regex else "--fixed-strings"
    return [mode, "-e", query.pattern]


def _count(output: IO[bytes]) -> int:
    return int(output.read() or 0)


def _clipped(text: bytes, column: int) -> tuple[bytes, int | None]:
    """A long line cut around its match, with what is cut on either side, and where the missing part begins: after
    what is shown, or with the line if its end is shown."""
    if len(text) <= _SHOWN:
        return text, None
    start = character_start(text, max(0, min(column - _BEFORE, len(text) - _SHOWN)))
    end = character_start(text, min(len(text), start + _SHOWN))
    left = b"[%d bytes cut] " % start if start else b""
    right = b" [%d bytes cut]" % (len(text) - end) if end < len(text) else b""
    return left + text[start:end] + right, end if right else 0


def _refused(pattern: str, errors: str) -> InvalidRegex | Internal:
    reason = errors.replace("rg: ", "").strip()
    if "regex" in reason or "pattern" in reason:
        shown = pattern if len(pattern) <= 80 else pattern[:80] + "..."
        return InvalidRegex(f"the pattern `{shown}` can't be used: {regex_fault(errors.encode())[:400]}")
    return Internal(f"the search failed: {reason[:200] or 'ripgrep gave no reason'}")


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    _kill(process)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
