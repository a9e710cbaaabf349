"""A shortage of descriptors, memory or threads: the command that met it is refused, and nothing else is touched."""

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
    errno.ETOOMANYREFS: "too many descriptors are on their way",
    errno.EAGAIN: "no more processes can be started (ulimit -u)",
    errno.ENOSPC: "the disk of the temporary directory is full",
    errno.EDQUOT: "the disk of the temporary directory is full",
}


def is_shortage(fault: OSError) -> bool:
    """Whether a call failed for want of something, rather than because the other end is gone."""
    return fault.errno in _SHORT


@contextmanager
def shortages_told() -> Generator[None]:
    """Turns a shortage before a command began into an error for its caller."""
    try:
        yield
    except (OSError, RuntimeError) as fault:
        reason = _reason(fault)
        if reason is None:
            raise
        raise Internal(f"nothing was run: {reason}; try again later", retriable=True) from fault


@contextmanager
def shortages_passed_over() -> Generator[None]:
    """For what can be left out after a command has run: its answer is worth more."""
    try:
        yield
    except (OSError, RuntimeError) as fault:
        if _reason(fault) is None:
            raise


def _reason(fault: OSError | RuntimeError) -> str | None:
    if isinstance(fault, OSError):
        return _SHORT.get(fault.errno or 0)
    return "no more threads can be started" if "thread" in str(fault) else None
