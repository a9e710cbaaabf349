"""A background shell: a command that runs beside the session, its output in an unnamed file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO

from gripfast.errors import ToolError
from gripfast.host.shell.broker import CHUNK
from gripfast.host.shell.ended import Ended
from gripfast.host.shell.job import Job
from gripfast.host.shell.pump import Pump
from gripfast.host.shell.shared import BegunSecret, no_secret_begun
from gripfast.records import dataclass
from gripfast.text.cut import unfinished

# What one background shell's output may take on disk; past it the output is read and dropped.
SPOOL_CAP = 64 * 1024 * 1024
_LOOK_BACK = 16 * 1024


@dataclass(slots=True)
class Background:
    """A command that runs beside the session, its output in an unnamed file: one of its own while it runs, then
    `length` bytes from `start` of the one that the session has for all that ended. `fault` says why it did not
    begin."""

    name: str
    command: str
    job: Job
    spool: IO[bytes]
    seen: int = 0
    start: int = 0
    length: int | None = None
    fault: ToolError | None = None
    pump: Pump | None = None  # of a command that began in the foreground
    handed_over_at: float | None = None  # when an answer last said that it is still running, by the monotonic clock
    end_reported: bool = False  # whether an answer has reported how it ended
    ended_by_user: bool = False  # whether the user asked to end it, not the model
    end_on_board: bool = False  # whether the board knows how it ended
    begun_secret: BegunSecret = no_secret_begun

    def end_output(self) -> None:
        """Takes what was printed before the command ended, and nothing that comes later."""
        if self.pump is not None:
            self.pump.stop()

    @property
    def ended(self) -> Ended | None:
        return self.job.ended

    @property
    def size(self) -> int:
        return os.fstat(self.spool.fileno()).st_size if self.length is None else self.length

    @property
    def ready(self) -> int:
        """How much of the output can be shown. While it runs, a character or a secret of which only a part has come
        is left for the next look."""
        size = self.size
        if self.ended is not None:
            return size
        start = max(0, size - _LOOK_BACK)
        data = self.read(start, size - start)
        return size - max(unfinished(data), self.begun_secret(data))

    @property
    def full(self) -> bool:
        """The output reached its cap; what came after was dropped."""
        return self.size >= SPOOL_CAP

    def read(self, start: int, size: int) -> bytes:
        if self.length is not None:
            size = max(0, min(size, self.length - start))
        return os.pread(self.spool.fileno(), size, self.start + start)

    def move_to(self, archive: IO[bytes]) -> None:
        """Moves the output of a finished command to the end of `archive`, and gives back its own descriptor."""
        spool, length, start = self.spool, self.size, archive.seek(0, os.SEEK_END)
        for piece in self.pieces(0, length):
            written = 0
            while written < len(piece):
                written += archive.write(piece[written:])
        self.spool, self.start, self.length = archive, start, length
        spool.close()

    def news(self, offset: int | None = None) -> Iterator[bytes]:
        """What was printed since the last look, or after `offset` lines (negative: from the end), in pieces. It is
        then seen."""
        end = self.ready
        start = self.start_of(offset)
        self.seen = end
        yield from self.pieces(start, end)

    def start_of(self, offset: int | None) -> int:
        """Where the output after `offset` lines begins, or that which was not looked at yet."""
        if offset is None:
            return self.seen
        end = self.ready
        return self._line_start(offset if offset >= 0 else max(0, self.line_count + offset), end)

    @property
    def line_count(self) -> int:
        """How many lines can be shown; the last one may go on."""
        end = self.ready
        return self.lines_before(end) + (end > 0 and self.read(end - 1, 1) != b"\n")

    def lines_before(self, end: int) -> int:
        """How many lines end before a place in the output."""
        return sum(piece.count(b"\n") for piece in self.pieces(0, end))

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            piece = self.read(start, min(CHUNK, end - start))
            if not piece:
                return
            start += len(piece)
            yield piece

    def _line_start(self, lines: int, end: int) -> int:
        start = 0
        while lines > 0 and start < end:
            piece = self.read(start, CHUNK)
            count = piece.count(b"\n")
            if count >= lines:
                for _ in range(lines):
                    start += piece.index(b"\n") + 1
                    piece = piece[piece.index(b"\n") + 1 :]
                return start
            lines -= count
            start += len(piece)
        return min(start, end)
