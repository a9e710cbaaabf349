"""fstatfs(2): which kind of file system a descriptor is on.

https://man7.org/linux/man-pages/man2/statfs.2.html
"""

from __future__ import annotations

import ctypes
import sys

from gripfast.host.kernel.libc import libc

# proc, sysfs, devpts, debugfs, tracefs: reading their "files" runs code in the kernel.
_KERNEL_VIEWS = frozenset({0x9FA0, 0x62656572, 0x1CD1, 0x64626720, 0x74726163})


def is_kernel_view(fd: int) -> bool:
    """Whether a descriptor is on proc, sysfs or a similar file system."""
    if sys.platform != "linux":
        return False
    buffer = (ctypes.c_long * 32)()
    if libc().fstatfs(fd, ctypes.byref(buffer)) != 0:
        return True
    return buffer[0] & 0xFFFFFFFF in _KERNEL_VIEWS
