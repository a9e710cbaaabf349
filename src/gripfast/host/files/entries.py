"""Names inside a scope that are not a file's content: what is there, what a directory holds, made and removed."""

from __future__ import annotations

import errno
import os
import posixpath
import shutil
import stat
import tempfile
from collections.abc import Iterator

from gripfast.errors import Conflict, InvalidArgument, NotDirectory, NotFile, NotFound, SandboxViolation
from gripfast.host.files.atomic import MadeDirectories
from gripfast.host.files.faults import explained
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.opened import OpenDirectory
from gripfast.host.files.paths import WorkPath
from gripfast.records import dataclass
from gripfast.text.below import is_below
from gripfast.text.escape import escaped

# A name that nobody uses: if it may be written, its directory may be changed.
_PROBE = ".gripfast-probe"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a name stands for, links followed. `size` is None for all but regular files."""

    name: str
    is_directory: bool
    size: int | None
    modified: float
    read_only: bool = False  # nobody has the permission to write it


def entry(fs: ScopedFs, path: WorkPath) -> Entry:
    """What is at a path. NOT_FOUND where there is nothing."""
    name = posixpath.basename(path.text.rstrip("/")) or "/"
    try:
        with fs.open_dir(path) as directory:
            return _entry(name, directory.stat)
    except NotDirectory:
        pass
    try:
        with fs.open_read(path) as file:
            return _entry(name, file.stat)
    except NotFile:
        return Entry(name, False, None, 0.0)


def entries(fs: ScopedFs, path: WorkPath) -> list[Entry]:
    """What a directory holds, by name; what the scope denies is left out."""
    with fs.open_dir(path) as directory:
        names = sorted(os.listdir(directory.fd))
        return [
            _entry(name, _followed(directory.fd, name))
            for name in names
            if not fs.is_denied(f"{directory.real}/{name}")
        ]


def _entry(name: str, found: os.stat_result) -> Entry:
    mode = found.st_mode
    size = found.st_size if stat.S_ISREG(mode) else None
    return Entry(name, stat.S_ISDIR(mode), size, found.st_mtime, not mode & 0o222)


def _followed(fd: int, name: str) -> os.stat_result:
    """What a name leads to; the link itself where it leads nowhere."""
    try:
        return os.stat(name, dir_fd=fd)
    except OSError:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)


def real_path(fs: ScopedFs, path: WorkPath) -> str:
    """The absolute path, with links resolved as far as it exists. If that leaves the scope, the links stay
    unresolved, so that nothing outside is revealed."""
    real = os.path.realpath(os.path.join(fs.roots[0], path.text))
    if fs.scope.read is None or is_below(real, *fs.roots):
        return real
    return posixpath.normpath(posixpath.join(fs.roots[0], path.text))


def make_directory(fs: ScopedFs, path: WorkPath) -> None:
    """Makes a directory, and those above it that are missing. One that exists is left as it is."""
    _require_writable(fs, WorkPath.parse(posixpath.join(path.text, _PROBE)))
    try:
        fs.open_dir(path).close()
        return
    except NotFound:
        pass
    above, names = _existing_above(fs, path)
    try:
        with fs.open_dir(above) as directory, MadeDirectories(directory.fd, names) as made:
            made.keep()
    except OSError as error:
        raise explained(error, path.text, "write") from None


def _existing_above(fs: ScopedFs, path: WorkPath) -> tuple[WorkPath, tuple[str, ...]]:
    """The nearest directory above a missing path that exists, and the names from there on."""
    names: list[str] = []
    text = real_path(fs, path)
    while True:
        text, name = posixpath.split(text)
        names.insert(0, name)
        here = WorkPath.parse(text)
        try:
            fs.open_dir(here).close()
            return here, tuple(names)
        except NotFound:
            continue


def remove(fs: ScopedFs, path: WorkPath) -> None:
    """Removes a file, a link (not its target), or a directory and its content, unless part of it is protected."""
    above, name = posixpath.split(path.text.rstrip("/"))
    if name in ("", ".", ".."):
        raise InvalidArgument(f"`{escaped(path.text)}` can't be removed; name a file or directory")
    with fs.open_dir(WorkPath.parse(above or ("/" if path.text.startswith("/") else "."))) as directory:
        real = posixpath.join(directory.real, name)
        if any(is_below(root, real) for root in fs.roots):
            raise InvalidArgument(
                f"`{escaped(path.text)}` is or holds the workspace itself; name something inside it"
            )
        _require_writable(fs, WorkPath.parse(posixpath.join(directory.real, _PROBE)))
        _require_unprotected(fs, path, directory, name)
        _remove(path, directory.fd, name)


def _require_writable(fs: ScopedFs, probe: WorkPath) -> None:
    fs.change(probe, lambda before: before or b"", commit=False)


def _require_unprotected(fs: ScopedFs, path: WorkPath, directory: OpenDirectory, name: str) -> None:
    for inside in _names(directory.fd, name):
        absolute = f"{directory.real}/{inside}"
        relative = next((absolute[len(root) + 1 :] for root in fs.roots if is_below(absolute, root)), inside)
        for patterns in (fs.scope.deny, fs.scope.protect):
            pattern = patterns.find(relative, absolute)
            if pattern is not None:
                raise SandboxViolation(
                    f"`{escaped(path.text)}` can't be removed: `{fs.show_real(absolute)}` is closed by `{pattern}`"
                )


def _names(fd: int, name: str) -> Iterator[str]:
    """A name and every name beneath it, links not followed."""
    yield name
    if _is_real_directory(fd, name):
        for top, directories, files, _ in os.fwalk(name, dir_fd=fd, follow_symlinks=False):
            yield from (f"{top}/{one}" for one in (*directories, *files))


def _is_real_directory(fd: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _remove(path: WorkPath, fd: int, name: str) -> None:
    try:
        if _is_real_directory(fd, name):
            shutil.rmtree(name, dir_fd=fd)
        else:
            os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        raise NotFound(f"`{escaped(path.text)}` does not exist") from None
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            raise Conflict(f"`{escaped(path.text)}` got new files while it was removed; try again") from None
        raise explained(error, path.text, "remove") from None


def scratch_directory() -> str:
    """A new, empty directory for a workspace that nobody else has; `discard` removes it."""
    return os.path.realpath(tempfile.mkdtemp(prefix="gripfast-work-"))


def discard(directory: str) -> None:
    """Removes a directory that `scratch_directory` made, whatever is in it."""
    shutil.rmtree(directory, ignore_errors=True)
