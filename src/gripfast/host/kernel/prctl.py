"""prctl(2): settings of this process or thread.

https://man7.org/linux/man-pages/man2/prctl.2.html
"""

from __future__ import annotations

import sys

from gripfast.host.kernel.libc import libc

_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38


def hide_process() -> None:
    """Prevents commands of the same user from reading this process's memory and environment (PR_SET_DUMPABLE).

    A server calls it at its start. A library must not decide that for the program that uses it.
    """
    if sys.platform == "linux":
        libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def gain_no_privileges() -> bool:
    """From now on, this thread and what it starts gain no privileges from setuid programs and the like
    (PR_SET_NO_NEW_PRIVS). False if the kernel refuses."""
    return libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
