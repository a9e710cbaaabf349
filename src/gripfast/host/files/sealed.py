"""Directories that their owner has closed to itself: nobody can look into them, and names in them still work."""

from __future__ import annotations

import os
import stat

from gripfast.host.kernel.shortage import is_shortage


def entries_of(directory: str, *, unseal: bool) -> list[os.DirEntry[str]] | None:
    """What is in a directory. None: it can't be looked into. `unseal`: one of our own is opened again, for good: a
    command closed it. Raises OSError only when descriptors or memory ran out."""
    found = _listed(directory)
    if found is None and unseal and _unsealed(directory):
        return _listed(directory)
    return found


def _listed(directory: str) -> list[os.DirEntry[str]] | None:
    try:
        with os.scandir(directory) as found:
            entries = list(found)
    except PermissionError:
        return None
    except OSError as fault:
        if is_shortage(fault):
            raise
        return []
    return entries if os.access(directory, os.X_OK) else None


def _unsealed(directory: str) -> bool:
    """Gives the owner its rights again. The directory is held: a link that takes its place is not followed."""
    try:
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid():
            return False
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
