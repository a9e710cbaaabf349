"""A directory tree as a value, to compare what was with what is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

Tree = dict[str, tuple[str, int, bytes]]


def tree_of(root: Path) -> Tree:
    """Every name below a directory: its kind, mode and content."""
    found: Tree = {}
    for above, directories, files in os.walk(os.fsencode(root)):
        for name in (*directories, *files):
            path = os.path.join(above, name)
            state = os.lstat(path)
            shown = os.fsdecode(os.path.relpath(path, os.fsencode(root)))
            if stat.S_ISLNK(state.st_mode):
                found[shown] = ("link", 0, os.readlink(path))
            elif stat.S_ISDIR(state.st_mode):
                found[shown] = ("directory", stat.S_IMODE(state.st_mode), b"")
            else:
                with open(path, "rb") as file:
                    found[shown] = ("file", stat.S_IMODE(state.st_mode), file.read())
    return {name: value for name, value in found.items() if not name.startswith(".git")}
