"""Copies files whose holes take no room: only what was written is read.

https://man7.org/linux/man-pages/man2/lseek.2.html (SEEK_DATA, SEEK_HOLE)
"""

from __future__ import annotations

import errno
import os
import stat

from gripfast.host.kernel.regular import READ_FLAGS

_CHUNK = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_file(source: str, target: str, mode: int) -> None:
    """Copies a regular file to a new one, its holes as holes, and no more than it held at first: a command may go on
    writing to it."""
    old = os.open(source, READ_FLAGS)
    try:
        found = os.fstat(old)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        new = os.open(target, _NEW, 0o600)
        try:
            _copy_data(old, new, found.st_size)
            os.ftruncate(new, found.st_size)
            os.fchmod(new, mode)
        finally:
            os.close(new)
    finally:
        os.close(old)


def _copy_data(old: int, new: int, size: int) -> None:
    at = 0
    while at < size:
        at, end = _next_data(old, at, size)
        while at < end:
            data = os.pread(old, min(_CHUNK, end - at), at)
            if not data:  # it became shorter
                return
            at += os.pwrite(new, data, at)


def _next_data(fd: int, at: int, size: int) -> tuple[int, int]:
    """Where the next piece that was written begins and ends; all of the rest where the file system can't tell."""
    try:
        start = os.lseek(fd, at, os.SEEK_DATA)
        return start, min(size, os.lseek(fd, start, os.SEEK_HOLE))
    except OSError as fault:
        return (size, size) if fault.errno == errno.ENXIO else (at, size)
