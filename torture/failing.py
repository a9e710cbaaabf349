"""A system call that fails at its nth use, as on a full or broken disk."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import threading
from collections.abc import Generator
from typing import Any

CALLS = (
    "rename",
    "unlink",
    "mkdir",
    "open",
    "link",
    "fsync",
    "fchmod",
    "write",
    "stat",
    "replace",
    "close",
    "pwrite",
)
ERRNOS = (errno.ENOSPC, errno.EACCES, errno.EIO)


@contextlib.contextmanager
def failing(name: str, nth: int, code: int) -> Generator[list[int]]:
    """The nth use of a function of `os` by this thread fails. Gives a list that then holds that number."""
    real, count, failed, mine = getattr(os, name), 0, list[int](), threading.get_ident()

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        if threading.get_ident() != mine:
            return real(*arguments, **options)
        count += 1
        if count == nth:
            failed.append(nth)
            if name == "close":
                real(*arguments, **options)
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    setattr(os, name, counted)
    try:
        yield failed
    finally:
        setattr(os, name, real)


def tried_uses(dice: random.Random, share: float) -> list[int]:
    """Which uses are tried: the first, and a share of the others."""
    return [nth for nth in range(1, 1_000) if dice.random() < share or nth == 1]
