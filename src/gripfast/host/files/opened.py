"""What ScopedFs opens: a regular file to read from, a directory to list. Only descriptors from here on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

from gripfast.errors import SizeLimitExceeded, TimedOut
from gripfast.host.files.encodings import HEAD_BYTES, TextForm, marked_form
from gripfast.host.files.faults import explained
from gripfast.host.files.guard import HASHED_BYTES, ReadLog, Seen, is_settled
from gripfast.host.files.hashing import digest_soon
from gripfast.host.files.lines import (
    SLICE,
    LinePiece,
    LineWindow,
    as_utf8,
    count_lines,
    data_chunks,
    file_chunks,
    line_piece,
    tail_start,
    window,
)
from gripfast.text.escape import escaped

COUNTED_BYTES = 64 * 1024 * 1024  # up to this size, the lines after a window are counted as well
SCAN_SECONDS = 60.0  # how long lines are looked for in one file
_GROWTH = 16 * 1024 * 1024  # what a file may grow by while it is read whole
_PLAIN = TextForm()


class OpenDirectory:
    """A directory that is open for listing (`os.scandir(fd)`, `dir_fd=fd`). `real` is where it really is."""

    __slots__ = ("fd", "real", "stat")

    def __init__(self, fd: int, stat: os.stat_result, real: str) -> None:
        self.fd = fd
        self.stat = stat
        self.real = real

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> OpenDirectory:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.fd)


class OpenFile:
    """A regular file that is open for reading; `stat` is what it was when it was opened."""

    __slots__ = ("_asked", "_content", "_form", "_lines", "_seen", "fd", "real", "stat")

    def __init__(self, fd: int, stat: os.stat_result, real: str, asked: str = "") -> None:
        self.fd = fd
        self.stat = stat
        self.real = real
        self._asked = asked or real
        self._content: bytes | None = None
        self._form: TextForm | None = None
        self._seen: Seen | None = None
        self._lines: int | None = None

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.fd)

    @property
    def is_small(self) -> bool:
        """Small enough to be read and hashed whole."""
        return self.stat.st_size <= HASHED_BYTES

    def recall(self, reads: ReadLog) -> bool:
        """Whether a session has read this file before and it is unchanged: then it needs no second whole reading."""
        self._seen = reads.unchanged(self.real, self.stat)
        self._lines = self._seen.lines if self._seen else None
        return self._seen is not None

    def content(self) -> bytes:
        """All bytes, read once."""
        if self._content is None:
            try:
                self._content = _whole(self.fd, self.stat.st_size, self._asked)
            except OSError as error:
                raise explained(error, self._asked, "read") from None
        return self._content

    def head(self) -> bytes:
        """The first bytes, which tell what kind of file it is."""
        if self._is_read_whole:
            return self.content()[:HEAD_BYTES]
        try:
            return os.pread(self.fd, HEAD_BYTES, 0)
        except OSError as error:
            raise explained(error, self._asked, "read") from None

    @property
    def _is_read_whole(self) -> bool:
        if self._content is not None or self.stat.st_size <= SLICE:
            return True
        return self.is_small and self._seen is None

    @property
    def form(self) -> TextForm:
        """The form that a byte order mark indicates; plain UTF-8 without one."""
        if self._form is None:
            self._form = marked_form(self.head()) or _PLAIN
        return self._form

    def record(self, reads: ReadLog) -> None:
        """Note in a session's log what this file is now."""
        if self._seen is None:
            digest = digest_soon(self.content()) if self.is_small else None
            reads.record(self.real, self.stat, digest, self._lines)
        elif self._seen.lines != self._lines:
            reads.record(self.real, self.stat, self._seen.digest, self._lines)

    def is_still_what_was_read(self) -> bool:
        """Whether the bytes are those that were read, where the times can't tell: the file was just changed."""
        if self._content is None or is_settled(self.stat):
            return True
        return _whole(self.fd, self.stat.st_size, self._asked) == self._content

    def window(self, offset: int, limit: int, *, budget: int = 1 << 62) -> LineWindow:
        """Lines from `offset` on; negative: the last ones. Wide encodings come as UTF-8, others as they are."""
        try:
            found = self._window(offset, limit, budget)
        except OSError as error:
            raise explained(error, self._asked, "read") from None
        self._lines = found.total if found.total is not None else self._lines
        return found

    def piece(self, offset: int, skip: int, size: int) -> LinePiece | None:
        """At most `size` bytes of one line, after its first `skip` ones. None if the file has no such line."""
        try:
            if offset < 0 and (self.form.wide or self.stat.st_size <= COUNTED_BYTES):
                offset = max(0, count_lines(self._chunks()) + offset)
            if offset >= 0:
                return line_piece(self._chunks(), offset, skip, size)
            return line_piece(self._tail(offset)[0], 0, skip, size)
        except OSError as error:
            raise explained(error, self._asked, "read") from None

    def _window(self, offset: int, limit: int, budget: int) -> LineWindow:
        if offset >= 0:
            count = self._lines is None and self.stat.st_size <= COUNTED_BYTES
            found = window(self._chunks(), offset, limit, budget=budget, count=count)
            return found if found.total is not None else replace(found, total=self._lines)
        if self.form.wide or self.stat.st_size <= COUNTED_BYTES:
            total = count_lines(self._chunks()) if self._lines is None else self._lines
            return self._window(max(0, total + offset), limit, budget)
        chunks, first = self._tail(offset)
        tail = window(chunks, 0, limit, budget=budget, count=False)
        return LineWindow(tail.lines, first, None, tail.more, tail.newline, tail.long)

    def _tail(self, offset: int) -> tuple[Iterator[bytes], int]:
        """The chunks of a large file's last lines, and the number of the first of these."""
        clock = _Clock(self._asked, self.stat.st_size)
        start, there = tail_start(self.fd, self.stat.st_size, -offset, clock.look)
        chunks = file_chunks(self.fd, self.stat.st_size, max(start, len(self.form.bom)))
        return clock.watched(chunks), -there if start else 1

    def _chunks(self) -> Iterator[bytes]:
        start = 0 if self.form.wide else len(self.form.bom)
        if self._is_read_whole:
            chunks = data_chunks(self.content(), start)
        else:
            clock = _Clock(self._asked, self.stat.st_size)
            chunks = clock.watched(file_chunks(self.fd, self.stat.st_size, start))
        return as_utf8(chunks, self.form) if self.form.wide else chunks


class _Clock:
    """Ends a search for lines that takes too long: a file may be a terabyte of nothing."""

    def __init__(self, asked: str, size: int) -> None:
        self._asked, self._size = asked, size
        self._until = time.monotonic() + SCAN_SECONDS

    def look(self) -> None:
        if time.monotonic() > self._until:
            raise TimedOut(
                f"`{escaped(self._asked)}` has {self._size} bytes, and the lines asked for were not found in "
                f"{SCAN_SECONDS:.0f} s; search for the text instead, or read from the other end"
            )

    def watched(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.look()
            yield chunk


def _whole(fd: int, size: int, asked: str) -> bytes:
    """A file to its end. The size is a hint: it may grow while it is read, but not forever."""
    data = os.pread(fd, size + 1, 0)
    if len(data) == size:
        return data
    parts, at = [data], len(data)
    while data:
        data = os.pread(fd, 1 << 20, at)
        parts.append(data)
        at += len(data)
        if at > size + _GROWTH:
            raise SizeLimitExceeded(
                f"`{escaped(asked)}` grows as fast as it is read; read it when it has stopped growing"
            )
    return b"".join(parts)
