"""Sockets that other programs listen on: which of them commands may not reach."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from gripfast.host.kernel.shortage import is_shortage
from gripfast.text.below import is_below

_TABLE = "/proc/net/unix"
_MASKED = ("/run", "/var/run", "/tmp")  # replaced as a whole
_PATH_FIELD = 7


def foreign_sockets(roots: Sequence[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """Sockets with a name in the file system that somebody listens on, outside the roots and not allowed."""
    found = (path for path in _listed() if not is_below(path, *_MASKED, *roots, *allowed))
    return tuple(sorted({path for path in found if is_socket(path)}))


def allowed_sockets(names: Sequence[str]) -> tuple[str, ...]:
    """The sockets the user lets commands reach, by their real paths."""
    return tuple(os.path.realpath(os.path.expanduser(name)) for name in names)


def is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _listed() -> list[str]:
    """The paths in the kernel's table of sockets, see proc_net(5)."""
    try:
        with open(_TABLE, "rb") as file:
            rows = [line.rstrip(b"\n").split(None, _PATH_FIELD) for line in file]
    except OSError as fault:
        if is_shortage(fault):
            raise
        return []
    names = (os.fsdecode(row[_PATH_FIELD]) for row in rows if len(row) > _PATH_FIELD)
    return [os.path.realpath(name) for name in names if name.startswith("/")]
