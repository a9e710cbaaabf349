"""Where the page is that shows questions: a console says so in the state directory as long as it runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Generator

from gripfast.host.program.places import private_directory, state_directory

_NAME = "console"
_LONGEST = 100


@contextlib.contextmanager
def page_at(address: str) -> Generator[None]:
    """Says that a page runs at this address, until it ends. One page is enough: a second one says nothing."""
    try:
        folder = private_directory(state_directory())
        fd = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:  # the page works without
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, address.encode(), 0)
        yield
    finally:
        os.close(fd)


def running_page() -> str | None:
    """The address of a page that runs now; None if there is none."""
    try:
        fd = os.open(state_directory() / _NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, RuntimeError):
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # its lock is held, so it runs
        return os.read(fd, _LONGEST).decode("ascii", "replace") or None
    finally:
        os.close(fd)
    return None
