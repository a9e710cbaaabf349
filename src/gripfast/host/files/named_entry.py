"""A name itself, for those who put back what was there: no link is followed, on the way or at its end."""

from __future__ import annotations

import errno
import os

from gripfast.errors import NotFound, SandboxViolation
from gripfast.host.files.beneath import ResolvedPath
from gripfast.host.files.faults import explained
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scoped_paths import ScopedPaths
from gripfast.host.files.writable import refuse_unwritable
from gripfast.host.kernel.openat2 import DIRECTORY_FLAGS
from gripfast.text.escape import escaped


def writable_entry(
    paths: ScopedPaths, absolute: str, *, lifted: bool = False, restoring: bool = False
) -> ResolvedPath:
    """The place of a name, if it may be written; with `lifted`, a protected one as well; with `restoring`, whatever
    protects it. Close it when done."""
    found = paths.resolver.root_of(absolute)
    if found is None or not found[1]:
        raise SandboxViolation(f"`{escaped(absolute)}` is not inside the workspace")
    if paths.is_denied(absolute):
        raise SandboxViolation(f"`{escaped(absolute)}` is closed by a deny pattern")
    root, rest = found
    *above, name = rest.split("/")
    fd, missing = _descend(root.fd, above, absolute)
    place = ResolvedPath(root, fd, name, rest, None if missing else _stat(fd, name), missing)
    try:
        path = WorkPath.recorded(absolute)
        refuse_unwritable(paths, path.as_lifted() if lifted else path, place, restoring=restoring)
    except BaseException:
        place.close()
        raise
    return place


def _descend(root_fd: int, names: list[str], absolute: str) -> tuple[int, tuple[str, ...]]:
    """The deepest directory there is on the way, open, and the names that are missing below it."""
    fd = root_fd
    for at, name in enumerate(names):
        try:
            below = os.open(name, DIRECTORY_FLAGS | os.O_NOFOLLOW, dir_fd=fd)
        except FileNotFoundError:
            return fd, tuple(names[at:])
        except OSError as error:
            _close(fd, root_fd)
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                where = escaped("/".join(names[: at + 1]))
                raise NotFound(f"`{where}` is not a directory now") from None
            raise explained(error, absolute, "write") from None
        _close(fd, root_fd)
        fd = below
    return fd, ()


def _close(fd: int, root_fd: int) -> None:
    if fd != root_fd:
        os.close(fd)


def _stat(dir_fd: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
