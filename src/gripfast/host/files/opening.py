"""Opens files and directories, and makes sure that each is still what it was when its path was resolved."""

from __future__ import annotations

import errno
import os
import stat

from gripfast.errors import NotDirectory, NotFile, NotFound
from gripfast.host.files.beneath import LIST_FLAGS, ResolvedPath
from gripfast.host.files.faults import explained
from gripfast.host.files.missing import not_found
from gripfast.host.files.opened import OpenDirectory, OpenFile
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scoped_paths import ScopedPaths
from gripfast.host.kernel.regular import READ_FLAGS
from gripfast.host.kernel.statfs import is_kernel_view
from gripfast.text.escape import escaped

_SWAPPED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.ENOENT, errno.ENXIO})  # it is something else now
_TRIES = 16  # resolutions tried while somebody swaps what the path leads to


def open_file(paths: ScopedPaths, path: WorkPath) -> OpenFile:
    """A regular file, open for reading. FIFOs, sockets, devices and kernel views are never opened."""
    for _ in range(_TRIES):
        with paths.allowed(path, "read") as place:
            file = open_regular(paths, path, place)
        if file is not None:
            return file
    raise NotFound(f"`{escaped(path.text)}` keeps changing; try again", retriable=True)


def open_regular(paths: ScopedPaths, path: WorkPath, place: ResolvedPath) -> OpenFile | None:
    """Opens a regular file. None if it was replaced since its path was resolved."""
    if place.stat is None:
        raise not_found(paths, path, place)
    _require_regular(path, place.stat)
    try:
        fd = os.open(place.name, READ_FLAGS, dir_fd=place.dir_fd)
    except OSError as error:
        if error.errno in _SWAPPED:
            return None
        raise explained(error, path.text, "read") from None
    try:
        found = os.fstat(fd)
        _require_regular(path, found)
        if found.st_dev != place.root.device and is_kernel_view(fd):
            raise NotFile(f"`{escaped(path.text)}` is a view into the kernel (/proc and the like), not a file")
    except BaseException:
        os.close(fd)
        raise
    return OpenFile(fd, found, place.absolute, path.text)


def open_directory(paths: ScopedPaths, path: WorkPath) -> OpenDirectory:
    """A directory, open for listing and as the start of a walk or a search."""
    for _ in range(_TRIES):
        with paths.allowed(path, "list") as place:
            if place.stat is None:
                raise not_found(paths, path, place)
            if not stat.S_ISDIR(place.stat.st_mode):
                raise NotDirectory(f"`{escaped(path.text)}` is not a directory")
            try:
                fd = os.open(place.name, LIST_FLAGS, dir_fd=place.dir_fd)
            except OSError as error:
                if error.errno in _SWAPPED:
                    continue
                raise explained(error, path.text, "list") from None
        found = os.fstat(fd)
        if found.st_dev != place.root.device and is_kernel_view(fd):
            os.close(fd)
            raise NotDirectory(f"`{escaped(path.text)}` is a view into the kernel, not a directory of files")
        return OpenDirectory(fd, found, place.absolute)
    raise NotFound(f"`{escaped(path.text)}` keeps changing; try again", retriable=True)


def _require_regular(path: WorkPath, found: os.stat_result) -> None:
    mode = found.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise NotFile(f"`{escaped(path.text)}` is a directory; name a file in it", details={"is_directory": True})
    kinds = ((stat.S_ISFIFO, "FIFO"), (stat.S_ISSOCK, "socket"), (stat.S_ISLNK, "link"))
    kind = next((word for test, word in kinds if test(mode)), "device")
    raise NotFile(f"`{escaped(path.text)}` is a {kind}, not a regular file")
