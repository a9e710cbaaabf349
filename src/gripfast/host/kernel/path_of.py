"""The path of an open file, wherever it was moved.

https://man7.org/linux/man-pages/man5/proc_pid_fd.5.html, and F_GETPATH in fcntl(2) of macOS
"""

from __future__ import annotations

import fcntl
import os
import sys

_LONGEST = 1024  # MAXPATHLEN of macOS


def path_of(fd: int) -> str | None:
    """None if the kernel can't tell. The path of a file that was removed leads nowhere, or to another file."""
    try:
        if sys.platform == "darwin":
            return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(_LONGEST)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return None
