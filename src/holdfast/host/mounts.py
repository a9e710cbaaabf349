"""Whether a directory is on a disk of this machine, so that opening a file there never waits for a network."""

from __future__ import annotations

import os
import select
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.host.paths import is_below

_TABLE = "/proc/self/mountinfo"
_LOCAL = frozenset("ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs tmpfs ramfs overlay".split())


class Locality:
    """Whether directories are local, judged again whenever something was mounted or unmounted since."""

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


def all_local(directories: Iterable[str], table: str | None = None) -> bool:
    """True if each directory, and every mount beneath it, is known to be local. Not known is no."""
    mounts = list(_mounts(_table() if table is None else table))
    chosen = list(directories)
    return bool(chosen) and bool(mounts) and all(_is_local(one, mounts) for one in chosen)


def _is_local(directory: str, mounts: list[tuple[str, str]]) -> bool:
    over = [(len(place), kind) for place, kind in mounts if is_below(directory, place)]
    beneath = [kind for place, kind in mounts if place != directory and is_below(place, directory)]
    return bool(over) and max(over)[1] in _LOCAL and all(kind in _LOCAL for kind in beneath)


def _table() -> str:
    try:
        return Path(_TABLE).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _mounts(table: str) -> Iterator[tuple[str, str]]:
    """Place and kind of each mount, the later ones over the earlier."""
    for line in table.splitlines():
        place, _, rest = line.partition(" - ")
        yield place.split(" ")[4].encode().decode("unicode_escape"), rest.split(" ")[0]
