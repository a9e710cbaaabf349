"""The ignore files around a root: which repository it is part of, and what `rg` must be let read there."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

from gripfast.host.kernel.folders import folders

_IN_GIT = ("exclude", "commondir")
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")


def _ancestors(path: str) -> Iterable[str]:
    while True:
        yield path
        parent = os.path.dirname(path)
        if parent == path:
            return
        path = parent


def in_a_repository(root: str) -> bool:
    return any(os.path.lexists(os.path.join(directory, ".git")) for directory in _ancestors(root))


def release_readers(root: str, more: Iterable[str]) -> None:
    """Ends the wait of an `rg` that opened a FIFO named like an ignore file: it waits for a writer, and gets one that
    says nothing. `more` are such files elsewhere."""
    for folder, _, names in folders(root):
        for name in (*_IGNORE_FILES, *_IN_GIT):
            if name in names:
                _release(os.path.join(folder, name))
    for path in more:
        _release(path)


def _release(path: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads it
        if stat.S_ISFIFO(os.stat(path).st_mode):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))


def rules_above(root: str) -> list[str]:
    """The ignore files of the repository around a root that is a part of one: rg must be let read them."""
    found: list[str] = []
    for directory in _ancestors(root):
        if directory != root:
            found += (os.path.join(directory, name) for name in _IGNORE_FILES)
        git = os.path.join(directory, ".git")
        if os.path.lexists(git):
            return [] if directory == root else [*found, os.path.join(git, "info", "exclude")]
    return []
