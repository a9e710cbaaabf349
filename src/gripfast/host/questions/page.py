"""The address of the page that shows questions: a running console writes it to a file in the state directory."""

from __future__ import annotations

import contextlib
import fcntl
import html
import os
import tempfile
from collections.abc import Generator

from gripfast.host.kernel.regular import READ_FLAGS
from gripfast.host.program.places import private_directory, state_directory

_NAME = "console"
_LONGEST = 100


@contextlib.contextmanager
def page_at(address: str) -> Generator[None]:
    """Announces a page at this address until the block ends. If another page is already announced, does nothing."""
    try:
        folder = private_directory(state_directory())
        fd = os.open(folder / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:  # the page works unannounced
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


@contextlib.contextmanager
def hidden_link(link: str) -> Generator[str]:
    """A file that leads a browser to this link, until the block ends, and that commands can't read. On the browser's
    command line the link would be seen in the list of processes, and a command could use it first."""
    folder = private_directory(state_directory())
    fd, path = tempfile.mkstemp(".html", "console-", folder)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            address = html.escape(link)
            file.write(
                f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><title>gripfast</title>'
            )
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def running_page() -> str | None:
    """The address of a page that is running; None if there is none."""
    try:
        fd = os.open(state_directory() / _NAME, READ_FLAGS)
    except (OSError, RuntimeError):
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # the page holds the lock, so it is running
        return os.read(fd, _LONGEST).decode("ascii", "replace") or None
    finally:
        os.close(fd)
    return None
