"""prctl(2): what this process or thread asks of the kernel for itself.

https://man7.org/linux/man-pages/man2/prctl.2.html
"""

from __future__ import annotations

import sys

from gripfast.host.kernel.libc import libc

_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38


def hide_process() -> None:
    """Keeps this process's memory and environment from being read by commands of the same user.

    Called by a server as it starts; a library does not decide that for the program it is in.
    """
    if sys.platform == "linux":
        libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def gain_no_privileges() -> bool:
    """From now on this thread and what it starts gain no privileges by running a program. False: refused."""
    return libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
