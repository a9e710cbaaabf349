"""The error for a path that is not there, with near names that are."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Iterable

from gripfast.errors import NotFound
from gripfast.host.files.beneath import LIST_FLAGS, ResolvedPath
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scoped_paths import ScopedPaths
from gripfast.text.escape import escaped
from gripfast.text.near import near

_NEAR_LISTED = 5_000  # names looked through for near ones when a path is missing
_NEAR_SURELY, _NEAR_SECONDS = 100, 0.05


def not_found(paths: ScopedPaths, path: WorkPath, place: ResolvedPath | None = None) -> NotFound:
    """The error for a missing path, with up to three near names that exist."""
    if place is None:
        with paths.located(path, "read") as place:
            return not_found(paths, path, place)
    names = _near(paths, place)
    hint = f"; near: {', '.join(f'`{name}`' for name in names)}" if names else ""
    return NotFound(f"`{escaped(path.text)}` does not exist{hint}", details={"near": names})


def _near(paths: ScopedPaths, place: ResolvedPath) -> list[str]:
    wanted, *after = (*place.missing, place.name)
    above = place.absolute.removesuffix("/".join((wanted, *after))).rstrip("/")
    with contextlib.suppress(OSError):
        names = _near_names(place.dir_fd, wanted)
        found = [_with_rest(place.dir_fd, name, after) for name in names]
        return [paths.show_real(real) for name in found if not paths.is_denied(real := f"{above}/{name}")]
    return []


def _near_names(dir_fd: int, wanted: str) -> list[str]:
    fd = os.open(".", LIST_FLAGS, dir_fd=dir_fd)
    try:
        with os.scandir(fd) as entries:
            names = {entry.name.lower(): entry.name for entry in itertools.islice(entries, _NEAR_LISTED)}
    finally:
        os.close(fd)
    return [names[low] for low in _closest(wanted.lower(), names)]


def _closest(wanted: str, names: Iterable[str]) -> list[str]:
    """The three names most like the one wanted, as far as they can be found in no time: a directory may be full of
    names made to be compared for long."""
    until = time.monotonic() + _NEAR_SECONDS
    in_time = itertools.takewhile(lambda one: one[0] <= _NEAR_SURELY or time.monotonic() <= until, enumerate(names))
    return near(wanted, (name for _, name in in_time), likeness=0.6)


def _with_rest(dir_fd: int, name: str, after: list[str]) -> str:
    """A near directory with the rest of the path, if that exists in it; else the directory alone."""
    whole = "/".join((name, *after))
    try:
        os.stat(whole, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return name
    return whole
