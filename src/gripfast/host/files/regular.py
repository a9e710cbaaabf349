"""What a regular file holds, read without waiting on a pipe, following a link or failing on a directory."""

from __future__ import annotations

import os
import stat

from gripfast.host.kernel.shortage import is_shortage

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def beginning_of(path: str, most: int, *, dir_fd: int | None = None) -> bytes | None:
    """At most so many bytes of a regular file; None for anything else, and for what can't be read. Raises OSError
    only when descriptors or memory ran out."""
    try:
        fd = os.open(path, _FLAGS, dir_fd=dir_fd)
    except OSError as fault:
        if is_shortage(fault):
            raise
        return None
    try:
        return _read(fd, most) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _read(fd: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (data := os.read(fd, most)):
        parts.append(data)
        most -= len(data)
    return b"".join(parts)
