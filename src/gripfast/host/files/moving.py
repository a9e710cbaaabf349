"""Whether a file or a tree may be put elsewhere as it is: not with links in it, nor with files that programs run."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator

from gripfast.host.kernel.folders import folders

_MOST_ENTRIES = 5000


def moving_refusal(pattern: str, closed: Callable[[str], str | None]) -> str | None:
    """Why what a path or a shell's pattern names may not be moved or copied; None if it may. `closed` says why a
    place can't be written."""
    count = 0
    for path in [pattern] if os.path.lexists(pattern) else glob.iglob(pattern):
        for entry in with_all_below(path):
            count += 1
            if count > _MOST_ENTRIES:
                return f"more than {_MOST_ENTRIES} files, too many to look through"
            if os.path.islink(entry):
                return f"{entry} is a link, which would lead elsewhere from its new place"
            if entry != path and closed(entry) is not None:
                return f"{entry} is a file that other programs run"
    return None


def is_there(path: str) -> bool:
    return os.path.lexists(path)


def has_dashes(directory: str) -> bool:
    """Whether some name in a directory starts with a dash; True also if the directory can't be listed."""
    try:
        with os.scandir(directory) as entries:
            return any(entry.name.startswith("-") for entry in entries)
    except OSError:
        return True


def with_all_below(path: str) -> Iterator[str]:
    """A path and everything below it, no link followed."""
    yield path
    for folder, directories, files in folders(path):
        for name in (*directories, *files):
            yield os.path.join(folder, name)
