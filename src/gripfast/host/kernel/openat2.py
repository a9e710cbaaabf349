"""openat2(2): opens a directory beneath another one; the kernel resolves the path and refuses to leave.

https://man7.org/linux/man-pages/man2/openat2.2.html
"""

from __future__ import annotations

import ctypes
import errno
import os

from gripfast.host.kernel.libc import libc

DIRECTORY_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC

_AGAIN = 64  # attempts, if other processes rename directories meanwhile (EAGAIN)
_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW = _OpenHow(DIRECTORY_FLAGS, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
_HOW_AT = ctypes.byref(_HOW)
_HOW_SIZE = ctypes.sizeof(_HOW)


def openat2_directory(root_fd: int, path: str) -> int:
    """Opens a directory beneath `root_fd` and returns its descriptor. Raises OSError."""
    name, code = os.fsencode(path), errno.EAGAIN
    for _ in range(_AGAIN):
        fd = libc().syscall(_SYS_OPENAT2, root_fd, name, _HOW_AT, _HOW_SIZE)
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code))
