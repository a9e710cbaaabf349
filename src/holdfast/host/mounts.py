"""Whether a directory is on a disk of this machine, so that opening a file there never waits for a network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

_LOCAL = frozenset("ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs tmpfs ramfs overlay".split())


def all_local(directories: Iterable[str], table: str | None = None) -> bool:
    """True if each directory, and every mount beneath it, is known to be local. Not known is no."""
    mounts = list(_mounts(_table() if table is None else table))
    chosen = list(directories)
    return bool(chosen) and bool(mounts) and all(_is_local(one, mounts) for one in chosen)


def _is_local(directory: str, mounts: list[tuple[str, str]]) -> bool:
    over = [(len(place), kind) for place, kind in mounts if _holds(place, directory)]
    beneath = [kind for place, kind in mounts if place != directory and _holds(directory, place)]
    return bool(over) and max(over)[1] in _LOCAL and all(kind in _LOCAL for kind in beneath)


def _holds(upper: str, lower: str) -> bool:
    return lower == upper or lower.startswith(f"{upper.rstrip('/')}/")


def _table() -> str:
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _mounts(table: str) -> Iterator[tuple[str, str]]:
    """Place and kind of each mount, the later ones over the earlier."""
    for line in table.splitlines():
        place, _, rest = line.partition(" - ")
        yield place.split(" ")[4].encode().decode("unicode_escape"), rest.split(" ")[0]
