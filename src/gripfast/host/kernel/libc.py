"""The C library, for kernel calls that Python's standard library doesn't have."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any


@functools.cache
def libc() -> Any:
    """Loaded once; `ctypes.get_errno()` tells why a call failed."""
    loaded = ctypes.CDLL(None, use_errno=True)
    loaded.syscall.restype = ctypes.c_long
    return loaded


def sync_file_system(fd: int) -> None:
    """syncfs(2): everything of the file system that holds an open file goes to the disk; where there is no such call,
    everything there is."""
    try:
        result = libc().syncfs(fd)
    except AttributeError:
        os.sync()
        return
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
