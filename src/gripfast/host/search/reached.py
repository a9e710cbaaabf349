"""The last look at a path from an `rg` that ran unconfined."""

from __future__ import annotations

import os
import stat


def is_reached_without_links(root: int, path: str) -> bool:
    """Whether a path that an unconfined rg gave is walked from the root without a link: no proof, a last look."""
    *directories, name = path.split("/")
    here = os.dup(root)
    try:
        for directory in directories:
            below = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        return not stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)
    except OSError:
        return False
    finally:
        os.close(here)
