"""What a command reads from, and text that is sent to it: through a pipe or a terminal."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

import anyio
from anyio import wait_writable

from gripfast.errors import Conflict, InvalidArgument
from gripfast.host.shell.job import Job, Stdin
from gripfast.records import dataclass

LONGEST_TEXT = 1024 * 1024
# The kernel drops the rest of a longer line that nobody has read yet. See termios(3), canonical mode.
_LONGEST_LINE = 4095
_ROWS, _COLUMNS = 40, 120
_PATIENCE_SECONDS = 2.0
INTERRUPT, END = "\x03", "\x04"


@dataclass(slots=True)
class Ends:
    """The descriptors of a command's streams: what it writes to and we read, and the same for its input."""

    out: int
    write_end: int
    source: int = -1
    input: int = -1

    def close(self) -> None:
        for fd in (self.out, self.write_end, self.source, self.input):
            if fd >= 0:
                os.close(fd)


def open_ends(stdin: Stdin) -> Ends:
    """The streams of a command that is about to start. On a terminal, output and input are the same."""
    if stdin == "tty":
        master, slave = os.openpty()
        ends = Ends(master, slave)
        try:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
            ends.input = os.dup(master)
        except OSError:
            ends.close()
            raise
        return ends
    ends = Ends(*os.pipe())
    if stdin == "pipe":
        try:
            ends.source, ends.input = os.pipe()
            os.set_blocking(ends.input, False)
        except OSError:
            ends.close()
            raise
    return ends


def require_input(job: Job) -> None:
    if job.input < 0:
        raise Conflict(
            "the input of this shell is closed"
            if job.stdin != "nothing"
            else "this shell reads no input: it was started with neither tty nor stdin"
        )


async def type_in(job: Job, text: str) -> int:
    """Sends text to a running command. Returns how many bytes were not sent because the command doesn't read them."""
    require_input(job)
    data = _encoded(text)
    if job.stdin == "tty":
        _require_short_lines(job.input, data)
        return await _written(job.input, data)
    if text == INTERRUPT:
        job.say(b"interrupt")
        return 0
    ends = text.endswith(END)
    left = await _written(job.input, data.removesuffix(END.encode()) if ends else data)
    if ends and not left:
        job.close_input()
    return left


def _encoded(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError as fault:
        raise InvalidArgument(f"`text` has half a surrogate pair at {fault.start}") from None
    if len(data) > LONGEST_TEXT:
        raise InvalidArgument(f"`text` has {len(data)} bytes, at most {LONGEST_TEXT} can be sent; use a file")
    return data


def _require_short_lines(terminal: int, data: bytes) -> None:
    is_by_lines = termios.tcgetattr(terminal)[3] & termios.ICANON
    if is_by_lines and max(map(len, data.split(b"\n"))) > _LONGEST_LINE:
        raise InvalidArgument(f"a terminal takes lines of at most {_LONGEST_LINE} bytes; use a file, or stdin=true")


async def _written(fd: int, data: bytes) -> int:
    """Writes as long as the command reads. Returns what is left."""
    with memoryview(data) as view:
        done = 0
        while done < len(data):
            try:
                done += os.write(fd, view[done : done + 4096])
            except BlockingIOError:
                with anyio.move_on_after(_PATIENCE_SECONDS) as waited:
                    await wait_writable(fd)
                if waited.cancelled_caught:
                    break
            except OSError:  # EPIPE, EIO: it reads no more
                break
        return len(data) - done
