"""The error for a path that is not there, with near names that are."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Generator, Iterable

from gripfast.errors import NotFound, ToolError
from gripfast.host.files.beneath import LIST_FLAGS, ResolvedPath
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scoped_paths import ScopedPaths
from gripfast.host.files.walk import Kind, walk
from gripfast.text.escape import escaped
from gripfast.text.near import near

_NEAR_LISTED = 5_000  # names looked through for near ones when a path is missing
_NEAR_SURELY, _NEAR_SECONDS = 100, 0.05
_NEAR_DEPTH = 12


def not_found(paths: ScopedPaths, path: WorkPath, place: ResolvedPath | None = None) -> NotFound:
    """The error for a missing path, with up to three near names that exist."""
    if place is None:
        with paths.located(path, "read") as place:
            return not_found(paths, path, place)
    found = [*_spelled_otherwise(paths, path, place), *_near(paths, place)]
    if not any(name.rpartition("/")[2] == escaped(place.name) for name in found):
        found += _elsewhere(paths, place)
    names = list(dict.fromkeys(found))[:3]
    hint = f"; near: {', '.join(f'`{name}`' for name in names)}" if names else ""
    return NotFound(f"`{escaped(path.text)}` does not exist{hint}", details={"near": names})


def _spelled_otherwise(paths: ScopedPaths, path: WorkPath, place: ResolvedPath) -> list[str]:
    """What is there if backslashes are slashes, or without a first part, such as `a/` in a diff."""
    whole = place.relative.replace("\\", "/")
    texts = [*([whole] if "\\" in path.text else []), whole.partition("/")[2]]
    found: list[str] = []
    for text in filter(None, texts):
        other = WorkPath.parse(f"{place.root.real}/{text}")
        with contextlib.suppress(ToolError, OSError), paths.allowed(other, "read") as there:
            if there.stat is not None:
                found.append(paths.show_real(there.absolute))
    return found


def _elsewhere(paths: ScopedPaths, place: ResolvedPath) -> list[str]:
    """Files of the same name in other directories of the workspace, as far as they can be found in no time."""
    if place.root.anywhere:
        return []
    wanted, asked = place.name.lower(), place.relative.split("/")
    until, seen, found = time.monotonic() + _NEAR_SECONDS, 0, list[str]()

    def accept(inside: str, name: str, kind: Kind) -> bool:
        nonlocal seen
        seen += 1
        if seen > _NEAR_SURELY and (seen > _NEAR_LISTED or time.monotonic() > until):
            return False
        is_wanted = name.lower() == wanted if kind == "file" else name[0] != "." and name != "node_modules"
        if not is_wanted or kind == "symlink" or paths.is_denied(f"{place.root.real}/{inside}"):
            return False
        if kind == "file":
            found.append(inside)
        return kind == "directory"

    with contextlib.suppress(OSError), _listable(place.root.fd) as fd:
        walk(fd, ".", max_depth=_NEAR_DEPTH, max_entries=_NEAR_LISTED, accept=accept)
    found.sort(key=lambda one: (-len(set(one.split("/")) & set(asked)), one))
    return [paths.show_real(f"{place.root.real}/{one}") for one in found]


def _near(paths: ScopedPaths, place: ResolvedPath) -> list[str]:
    wanted, *after = (*place.missing, place.name)
    above = place.absolute.removesuffix("/".join((wanted, *after))).rstrip("/")
    with contextlib.suppress(OSError):
        names = _near_names(place.dir_fd, wanted)
        found = [_with_rest(place.dir_fd, name, after) for name in names]
        return [paths.show_real(real) for name in found if not paths.is_denied(real := f"{above}/{name}")]
    return []


def _near_names(dir_fd: int, wanted: str) -> list[str]:
    with _listable(dir_fd) as fd, os.scandir(fd) as entries:
        names = {entry.name.lower(): entry.name for entry in itertools.islice(entries, _NEAR_LISTED)}
    return [names[low] for low in _closest(wanted.lower(), names)]


@contextlib.contextmanager
def _listable(dir_fd: int) -> Generator[int]:
    """A directory that is held open, open for listing."""
    fd = os.open(".", LIST_FLAGS, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def _closest(wanted: str, names: Iterable[str]) -> list[str]:
    """The three names most like the one wanted, as far as they can be found quickly: a directory may be full of
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
