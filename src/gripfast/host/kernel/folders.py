"""Everything below a directory, however deep: `os.walk` fails where directories are nested a thousand times."""

from __future__ import annotations

import os
from collections.abc import Iterator


def folders(top: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each directory at or below `top` with the names of the directories and of all else in it, the outer ones first.
    No link is followed; what can't be listed is passed over."""
    waiting = [os.fspath(top)]
    while waiting:
        place = waiting.pop()
        directories: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    (directories if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        except OSError:
            continue
        yield place, directories, others
        waiting += [os.path.join(place, name) for name in directories]
