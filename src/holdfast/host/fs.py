"""ScopedFs: files inside one scope. A path is resolved once, beneath a held root; then only descriptors count."""

from __future__ import annotations

import contextlib
import difflib
import errno
import itertools
import os
import posixpath
import stat
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.errors import NotDirectory, NotFile, NotFound, SandboxViolation, ToolError
from holdfast.host.beneath import (
    DIRECTORY_FLAGS,
    Place,
    Resolver,
    Root,
    Strategy,
    chosen_strategy,
    is_kernel_view,
    strategy_works,
)
from holdfast.host.faults import explained
from holdfast.host.paths import WorkPath, escaped
from holdfast.host.scope import Scope

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEAR_LISTED = 5_000  # names looked through for near ones when a path is missing
_SWAPPED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.ENOENT, errno.ENXIO})  # it is something else now
_TRIES = 16  # resolutions tried while somebody swaps what the path leads to


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A regular file that is open for reading: `fd` is ours until closed, `real` is where it really is."""

    fd: int
    stat: os.stat_result
    real: str

    def close(self) -> None:
        os.close(self.fd)

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *exception: object) -> None:
        os.close(self.fd)


@dataclass(frozen=True, slots=True)
class OpenDirectory(OpenFile):
    """A directory that is open for listing (`os.scandir(fd)`, `dir_fd=fd`)."""


class ScopedFs:
    """Reads and writes inside a `Scope`, by `WorkPath` only. Synchronous; may be shared between threads."""

    def __init__(self, scope: Scope, *, strategy: Strategy | None = None) -> None:
        if strategy is not None and not strategy_works(strategy):
            raise ValueError(f"the confinement strategy {strategy!r} does not work on this machine")
        self.scope = scope
        roots = _held(scope)
        weakref.finalize(self, _close_all, [root.fd for root in roots])
        self._resolver = Resolver(roots, strategy or chosen_strategy())

    @property
    def roots(self) -> tuple[str, ...]:
        """The real paths of the workspace's directories, the one relative paths start from first."""
        return tuple(root.real for root in self._resolver.roots if not root.anywhere)

    @property
    def strategy(self) -> Strategy:
        """How paths are confined here: `openat2` or `walk`."""
        return self._resolver.strategy

    def within_roots(self) -> ScopedFs:
        """The same files without unrestricted reading: what is outside the named roots is refused."""
        narrow = object.__new__(ScopedFs)
        narrow.__dict__.update(self.__dict__, _wide=self)
        kept = [root for root in self._resolver.roots if root.real != "/"] or self._resolver.roots
        narrow._resolver = Resolver(kept, self.strategy)
        return narrow

    # --- names ---

    def show(self, path: WorkPath) -> str:
        """How answers name a path: from the first root, absolute only outside it, always on one line."""
        return escaped(self._from_first(self._requested(path)))

    def show_real(self, absolute: str) -> str:
        """How answers name a real place, given by its absolute path."""
        return escaped(self._from_first(absolute))

    def spellings(self, path: WorkPath) -> tuple[str, ...]:
        """The names rules are matched against: as requested and as it really is, from the first root."""
        requested = self._from_first(self._requested(path))
        try:
            with self._resolver.locate(path.text) as place:
                real = self._from_first(place.absolute)
        except (ToolError, OSError):
            return (requested,)
        return (requested,) if real == requested else (requested, real)

    def _requested(self, path: WorkPath) -> str:
        absolute = posixpath.join(self._resolver.roots[0].real, path.text)
        return "/" + posixpath.normpath(absolute).lstrip("/")

    def _from_first(self, absolute: str) -> str:
        rest = self._resolver.roots[0].rest(absolute)
        return absolute if rest is None else rest or "."

    # --- opening ---

    def open_read(self, path: WorkPath) -> OpenFile:
        """A regular file, open for reading. FIFOs, sockets, devices and kernel views are never opened."""
        for _ in range(_TRIES):
            with self._allowed(path, "read") as place:
                file = self._open_regular(path, place)
            if file is not None:
                return file
        raise NotFound(f"`{escaped(path.text)}` changes all the time; try again", retriable=True)

    def _open_regular(self, path: WorkPath, place: Place) -> OpenFile | None:
        """None: it was swapped since it was looked at."""
        if place.stat is None:
            raise self.not_found(path, place)
        _require_regular(path, place.stat)
        try:
            fd = os.open(place.name, _READ_FLAGS, dir_fd=place.dir_fd)
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
        return OpenFile(fd, found, place.absolute)

    def open_dir(self, path: WorkPath) -> OpenDirectory:
        """A directory, open for listing and as the start of a walk or a search."""
        for _ in range(_TRIES):
            with self._allowed(path, "list") as place:
                if place.stat is None:
                    raise self.not_found(path, place)
                if not stat.S_ISDIR(place.stat.st_mode):
                    raise NotDirectory(f"`{escaped(path.text)}` is not a directory")
                try:
                    fd = os.open(place.name, _LIST_FLAGS, dir_fd=place.dir_fd)
                except OSError as error:
                    if error.errno in _SWAPPED:
                        continue
                    raise explained(error, path.text, "list") from None
            found = os.fstat(fd)
            if found.st_dev != place.root.device and is_kernel_view(fd):
                os.close(fd)
                raise NotDirectory(f"`{escaped(path.text)}` is a view into the kernel, not a directory of files")
            return OpenDirectory(fd, found, place.absolute)
        raise NotFound(f"`{escaped(path.text)}` changes all the time; try again", retriable=True)

    def is_denied(self, absolute: str) -> bool:
        """Whether a `deny` pattern closes a real place, for walkers and searchers."""
        return self._closed_by(absolute) is not None

    def _allowed(self, path: WorkPath, doing: str) -> Place:
        """The place a path leads to, unless a `deny` pattern closes it, as requested or as it really is."""
        if not self.scope.deny:
            return self._located(path, doing)
        self._refuse_denied(path, self._requested(path))
        place = self._located(path, doing)
        try:
            self._refuse_denied(path, place.absolute)
        except BaseException:
            place.close()
            raise
        return place

    def _located(self, path: WorkPath, doing: str) -> Place:
        try:
            return self._resolver.locate(path.text)
        except OSError as error:
            raise explained(error, path.text, doing) from None

    def _refuse_denied(self, path: WorkPath, absolute: str) -> None:
        pattern = self._closed_by(absolute)
        if pattern is not None:
            raise SandboxViolation(f"`{escaped(path.text)}` is closed by the deny pattern `{pattern}`")

    def _closed_by(self, absolute: str) -> str | None:
        found = self._resolver.root_of(absolute)
        return self.scope.deny.find(found[1] if found else absolute.lstrip("/"), absolute)

    # --- what is missing ---

    def not_found(self, path: WorkPath, place: Place) -> NotFound:
        """The error for a missing path, with up to three near names that exist."""
        near = self._near(place)
        hint = f"; near: {', '.join(f'`{name}`' for name in near)}" if near else ""
        return NotFound(f"`{escaped(path.text)}` does not exist{hint}", details={"near": near})

    def _near(self, place: Place) -> list[str]:
        wanted, *after = (*place.missing, place.name)
        above = place.absolute.removesuffix("/".join((wanted, *after))).rstrip("/")
        with contextlib.suppress(OSError):
            names = _near_names(place.dir_fd, wanted)
            found = [_with_rest(place.dir_fd, name, after) for name in names]
            return [self.show_real(real) for name in found if not self.is_denied(real := f"{above}/{name}")]
        return []

    # --- reading ---

    def read_bytes(self, path: WorkPath) -> bytes:
        """All bytes of a file."""
        with self.open_read(path) as file:
            try:
                return b"".join(_chunks(file.fd, file.stat.st_size))
            except OSError as error:
                raise explained(error, path.text, "read") from None


def _held(scope: Scope) -> list[Root]:
    """The scope's directories, open. The last one is `/` when reading is unrestricted."""
    writable = {directory.real for directory in scope.write}
    roots: list[Root] = []
    for directory in scope.roots:
        fd = os.open(directory.real, DIRECTORY_FLAGS)
        device = os.fstat(fd).st_dev
        roots.append(Root(directory.given, directory.real, fd, device, directory.real in writable))
    if scope.read is None:
        fd = os.open("/", DIRECTORY_FLAGS)
        roots.append(Root("/", "/", fd, os.fstat(fd).st_dev, writable=False, anywhere=True))
    return roots


def _close_all(descriptors: Sequence[int]) -> None:
    for fd in descriptors:
        os.close(fd)


def _require_regular(path: WorkPath, found: os.stat_result) -> None:
    mode = found.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise NotFile(f"`{escaped(path.text)}` is a directory; name a file in it")
    kinds = ((stat.S_ISFIFO, "FIFO"), (stat.S_ISSOCK, "socket"), (stat.S_ISLNK, "link"))
    kind = next((word for test, word in kinds if test(mode)), "device")
    raise NotFile(f"`{escaped(path.text)}` is a {kind}, not a regular file")


def _near_names(dir_fd: int, wanted: str) -> list[str]:
    fd = os.open(".", _LIST_FLAGS, dir_fd=dir_fd)
    try:
        with os.scandir(fd) as entries:
            names = {entry.name.lower(): entry.name for entry in itertools.islice(entries, _NEAR_LISTED)}
    finally:
        os.close(fd)
    return [names[low] for low in difflib.get_close_matches(wanted.lower(), names, n=3, cutoff=0.6)]


def _with_rest(dir_fd: int, name: str, after: list[str]) -> str:
    """A near directory with the rest of the path, if that exists in it; else the directory alone."""
    whole = "/".join((name, *after))
    try:
        os.stat(whole, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return name
    return whole


def _chunks(fd: int, size: int) -> Iterator[bytes]:
    """A file to its end. The size is a hint: it may grow while it is read."""
    while data := os.read(fd, max(size + 1, 65_536)):
        yield data
        size = 0
