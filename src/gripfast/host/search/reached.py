"""Reaching a path from a root without following a link."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator

from gripfast.host.kernel.regular import READ_FLAGS


def is_reached_without_links(root: int, path: str) -> bool:
    """Whether no link is on the way to a path that an unconfined rg returned. A last check, not a proof."""
    try:
        with _directory_of(root, path) as (directory, name):
            return not stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def open_without_links(root: int, path: str) -> int:
    """A descriptor to read a path from; OSError if a link is on the way. Opening a FIFO does not block."""
    with _directory_of(root, path) as (directory, name):
        return os.open(name, READ_FLAGS, dir_fd=directory)


@contextlib.contextmanager
def _directory_of(root: int, path: str) -> Generator[tuple[int, str]]:
    *directories, name = path.split("/")
    here = os.dup(root)
    try:
        for directory in directories:
            below = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        yield here, name
    finally:
        os.close(here)
