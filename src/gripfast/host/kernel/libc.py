"""The C library, for kernel calls that Python's standard library doesn't have."""

from __future__ import annotations

import ctypes
import functools
from typing import Any


@functools.cache
def libc() -> Any:
    """Loaded once; `ctypes.get_errno()` tells why a call failed."""
    loaded = ctypes.CDLL(None, use_errno=True)
    loaded.syscall.restype = ctypes.c_long
    return loaded
