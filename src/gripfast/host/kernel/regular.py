"""Reads a name that may be anything: follows no link unless asked to, and never waits for a pipe or a device.

https://man7.org/linux/man-pages/man2/open.2.html
"""

from __future__ import annotations

import errno
import os
import stat

from gripfast.host.kernel.shortage import is_shortage

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20


def read_regular(path: str, most: int, *, dir_fd: int | None = None, follow: bool = False) -> bytes:
    """At most so many bytes of a regular file, through links only with `follow`. Raises OSError for anything else."""
    fd = os.open(path, READ_FLAGS & ~os.O_NOFOLLOW if follow else READ_FLAGS, dir_fd=dir_fd)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return _read(fd, most)
    finally:
        os.close(fd)


def beginning_of(path: str, most: int, *, dir_fd: int | None = None, follow: bool = False) -> bytes | None:
    """The same, but None for what is not a regular file or can't be read. Raises OSError only when descriptors or
    memory ran out."""
    try:
        return read_regular(path, most, dir_fd=dir_fd, follow=follow)
    except OSError as fault:
        if is_shortage(fault):
            raise
        return None


def _read(fd: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (data := os.read(fd, min(most, _CHUNK))):
        parts.append(data)
        most -= len(data)
    return b"".join(parts)
