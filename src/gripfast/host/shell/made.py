"""What commands made that git follows: repositories, worktrees, submodules. Remembered between sessions.

A mount keeps commands from changing a place, and also from removing it: unlink(2) of a mount point is EBUSY. So
nothing is mounted over these, and they are examined after each command instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, cast

from gripfast.host.program.places import private_directory, state_directory
from gripfast.text.below import is_below

Made: TypeAlias = dict[str, tuple[int, int]]
"""Paths, each with the device and inode of what is there."""
_MOST = 5000


def identity_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remembered(roots: Sequence[str]) -> Made:
    """What commands of earlier sessions made below the roots and is still there."""
    return {path: seen for path, seen in _all().items() if is_below(path, *roots) and identity_of(path) == seen}


def remember(made: Made, roots: Sequence[str]) -> None:
    """For the sessions to come. Whatever can't be written costs them no more than a refused `rm`."""
    others = {path: seen for path, seen in _all().items() if not is_below(path, *roots)}
    kept = {path: seen for path, seen in others.items() if identity_of(path) == seen}
    rows = [[path, *seen] for path, seen in (*kept.items(), *made.items())][-_MOST:]
    with contextlib.suppress(OSError, RuntimeError, UnicodeEncodeError):
        file = _file()
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as new:
            json.dump(rows, new)
        os.replace(new.name, file)


def _all() -> Made:
    try:
        rows = json.loads(_file().read_text(encoding="utf-8"))
        return {str(path): (int(device), int(inode)) for path, device, inode in cast("list[list[str]]", rows)}
    except (OSError, RuntimeError, ValueError, TypeError):
        return {}


def _file() -> Path:
    return private_directory(state_directory()) / "made-by-commands.json"
