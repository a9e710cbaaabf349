"""Whether a directory is on a local file system, so that opening a file there never waits for a network."""

from __future__ import annotations

import os
import re
import select
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from gripfast.text.below import is_below

_TABLE = "/proc/self/mountinfo"
_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")
_LOCAL = frozenset("ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs tmpfs ramfs overlay".split())


class Locality:
    """Whether directories are local, checked again after every mount and unmount.

    The kernel reports those by POLLPRI on the mount table, see proc_pid_mounts(5).
    """

    def __init__(self, directories: Iterable[str]) -> None:
        self._directories = tuple(directories)
        self._local: bool | None = None
        self._changes = select.poll()
        with suppress(OSError):
            table = os.open(_TABLE, os.O_RDONLY | os.O_CLOEXEC)
            weakref.finalize(self, os.close, table)
            self._changes.register(table, select.POLLPRI)

    @property
    def all_local(self) -> bool:
        if self._changes.poll(0) or self._local is None:
            self._local = all_local(self._directories)
        return self._local


def all_local(directories: Iterable[str], table: bytes | None = None) -> bool:
    """Whether each directory, and every mount beneath it, is on a file system known to be local."""
    try:
        mounts = list(_mounts(_table() if table is None else table))
    except (OSError, ValueError, IndexError):
        return False  # without a readable mount table nothing is known to be local
    chosen = list(directories)
    return bool(chosen) and bool(mounts) and all(_is_local(one, mounts) for one in chosen)


def mounts_beneath(directory: str) -> list[str]:
    """The mount points below a directory."""
    try:
        return sorted({place for place, _ in _mounts(_table()) if place != directory and is_below(place, directory)})
    except (OSError, ValueError, IndexError):
        return []


def _is_local(directory: str, mounts: list[tuple[str, str]]) -> bool:
    over = [(len(place), kind) for place, kind in mounts if is_below(directory, place)]
    beneath = [kind for place, kind in mounts if place != directory and is_below(place, directory)]
    return bool(over) and max(over)[1] in _LOCAL and all(kind in _LOCAL for kind in beneath)


def _table() -> bytes:
    return Path(_TABLE).read_bytes()


def _mounts(table: bytes) -> Iterator[tuple[str, str]]:
    """The mount point and file system type of each mount, in the order of the table; later ones cover earlier ones.

    The fields are described in proc_pid_mountinfo(5); a space in a name is written as `\\040`, and so on.
    """
    for line in filter(None, table.split(b"\n")):
        place, _, rest = line.partition(b" - ")
        name = _OCTAL.sub(lambda code: bytes([int(code[1], 8)]), place.split(b" ")[4])
        yield os.fsdecode(name), os.fsdecode(rest.split(b" ")[0])
