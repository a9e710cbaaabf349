"""A shortage of descriptors, memory or threads: only the command that needed them fails, with a clear error."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager

from gripfast.errors import Internal, shortage_of

_DISK = (errno.ENOSPC, errno.EDQUOT)


def is_shortage(fault: OSError) -> bool:
    """Whether a system call failed because a resource ran out, and not because the other end is gone."""
    return _reason(fault) is not None


@contextmanager
def shortages_as_errors() -> Generator[None]:
    """Use it around the start of a command: turns a shortage into an error for the caller."""
    try:
        yield
    except (OSError, RuntimeError) as fault:
        reason = _reason(fault)
        if reason is None:
            raise
        raise Internal(f"nothing was run: {reason}; try again later", retriable=True) from fault


@contextmanager
def shortages_ignored() -> Generator[None]:
    """Use it around optional work after a command: a shortage skips that work, and the answer is kept."""
    try:
        yield
    except (OSError, RuntimeError) as fault:
        if _reason(fault) is None:
            raise


def _reason(fault: OSError | RuntimeError) -> str | None:
    if isinstance(fault, OSError) and fault.errno in _DISK:
        return "the disk of the temporary directory is full"
    return shortage_of(fault)
