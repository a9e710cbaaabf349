"""The C library, for kernel calls that Python's standard library doesn't have."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any


@functools.cache
def libc() -> Any:
    """The C library, loaded once. After a failed call, `ctypes.get_errno()` returns the error."""
    loaded = ctypes.CDLL(None, use_errno=True)
    loaded.syscall.restype = ctypes.c_long
    return loaded


def sync_file_system(fd: int) -> None:
    """Writes the file system of an open file to disk with syncfs(2); without that call, all of them with sync(2).

    https://man7.org/linux/man-pages/man2/syncfs.2.html
    """
    try:
        result = libc().syncfs(fd)
    except AttributeError:
        os.sync()
        return
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
