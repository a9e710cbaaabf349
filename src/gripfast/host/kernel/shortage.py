"""A shortage of descriptors, memory or threads: only the command that needed them fails, with a clear error."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager

from gripfast.errors import Internal

_SHORT = {
    errno.EMFILE: "this process has as many files open as it may (ulimit -n)",
    errno.ENFILE: "the machine has as many files open as it can",
    errno.ENOMEM: "there is not enough memory",
    errno.ENOBUFS: "there is not enough memory",
    errno.ETOOMANYREFS: "too many file descriptors are in transit between processes",
    errno.EAGAIN: "no more processes can be started (ulimit -u)",
    errno.ENOSPC: "the disk of the temporary directory is full",
    errno.EDQUOT: "the disk of the temporary directory is full",
}


def is_shortage(fault: OSError) -> bool:
    """Whether a system call failed because a resource ran out, and not because the other end is gone."""
    return fault.errno in _SHORT


@contextmanager
def shortages_told() -> Generator[None]:
    """Use it around the start of a command: turns a shortage into an error for the caller."""
    try:
        yield
    except (OSError, RuntimeError) as fault:
        reason = _reason(fault)
        if reason is None:
            raise
        raise Internal(f"nothing was run: {reason}; try again later", retriable=True) from fault


@contextmanager
def shortages_passed_over() -> Generator[None]:
    """Use it around optional work after a command: a shortage skips that work, and the answer is kept."""
    try:
        yield
    except (OSError, RuntimeError) as fault:
        if _reason(fault) is None:
            raise


def _reason(fault: OSError | RuntimeError) -> str | None:
    if isinstance(fault, OSError):
        return _SHORT.get(fault.errno or 0)
    return "no more threads can be started" if "thread" in str(fault) else None
