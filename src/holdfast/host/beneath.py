"""Confinement: a path becomes a held directory descriptor and one name in it, and never gets out of its root.

Two ways lead there. `openat2` lets the kernel resolve the directory beneath the root's descriptor. The walk
opens one directory after the other without following links; links are read and followed here, in sight. Links
that openat2 refuses (absolute ones that point inside, ones that lead to another root) and missing paths go to
the walk.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.errors import Internal, NotDirectory, NotFile, NotFound, SandboxViolation
from holdfast.host.paths import after, escaped

Strategy = Literal["openat2", "walk"]

MAX_HOPS = 40
_AGAIN = 64  # tries of openat2 while somebody renames directories under it

_O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
DIRECTORY_FLAGS = _O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_STEP_FLAGS = DIRECTORY_FLAGS | os.O_NOFOLLOW

_LINUX = sys.platform == "linux"
_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
# proc, sysfs, devpts, debugfs, tracefs: their "files" are conversations with the kernel.
_KERNEL_VIEWS = frozenset({0x9FA0, 0x62656572, 0x1CD1, 0x64626720, 0x74726163})


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_HOW = _OpenHow(DIRECTORY_FLAGS, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
_HOW_AT = ctypes.byref(_HOW)
_HOW_SIZE = ctypes.sizeof(_HOW)
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _openat2_directory(root_fd: int, path: str) -> int:
    """A descriptor of a directory beneath `root_fd`; OSError says why not."""
    name, code = os.fsencode(path), errno.EAGAIN
    for _ in range(_AGAIN):
        fd = _libc.syscall(_SYS_OPENAT2, root_fd, name, _HOW_AT, _HOW_SIZE)
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code))


def is_kernel_view(fd: int) -> bool:
    """Whether a descriptor is on proc, sysfs or their like."""
    if not _LINUX:
        return False
    buffer = (ctypes.c_long * 32)()
    if _libc.fstatfs(fd, ctypes.byref(buffer)) != 0:
        return True
    return buffer[0] & 0xFFFFFFFF in _KERNEL_VIEWS


@dataclass(frozen=True, slots=True)
class Root:
    """A directory that is held open; `anywhere` is the `/` that unrestricted reading starts from."""

    given: str
    real: str
    fd: int
    device: int
    writable: bool
    anywhere: bool = False

    def rest(self, absolute: str) -> str | None:
        """What follows this root in an absolute path, in either spelling; None when it is not below."""
        rest = after(self.real, absolute)
        return rest if rest is not None else after(self.given, absolute)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path led: a held directory, a name in it that is no link, and what was there.

    `name` is "." for the held directory itself; `stat` is None when nothing is there; `missing` are the
    directories that would have to be made on the way. `relative` is the real path from the root.
    Close it when done.
    """

    root: Root
    dir_fd: int
    name: str
    relative: str
    stat: os.stat_result | None
    missing: tuple[str, ...] = ()

    @property
    def absolute(self) -> str:
        return os.path.join(self.root.real, self.relative) if self.relative else self.root.real

    def close(self) -> None:
        if self.dir_fd != self.root.fd:
            os.close(self.dir_fd)

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class Resolver:
    """Finds places beneath roots, the first of which is where relative paths start."""

    def __init__(self, roots: Sequence[Root], strategy: Strategy) -> None:
        self.roots = tuple(roots)
        self.strategy: Strategy = strategy
        self._by_length = sorted(self.roots, key=lambda root: len(root.real), reverse=True)

    def root_of(self, absolute: str) -> tuple[Root, str] | None:
        """The innermost root that an absolute path lies below, and the rest of the path."""
        for root in self._by_length:
            rest = root.rest(absolute)
            if rest is not None:
                return root, rest.lstrip("/")
        return None

    def locate(self, text: str) -> Place:
        """One resolution of a path as it was given; what follows uses the place's descriptor."""
        root, rest = self._start(text)
        if self.strategy == "openat2":
            place = _fast(root, rest)
            if place is not None:
                return place
        return _Walk(self, root, text).run(rest)

    def _start(self, text: str) -> tuple[Root, str]:
        if not text.startswith("/"):
            return self.roots[0], text
        found = self.root_of("/" + text.lstrip("/"))
        if found is None:
            raise SandboxViolation(
                f"`{escaped(text)}` is outside the workspace ({self.named()}); use a path inside it"
            )
        return found

    def named(self) -> str:
        return ", ".join(escaped(root.given) for root in self.roots if not root.anywhere)


def _fast(root: Root, rest: str) -> Place | None:
    """The common case in one openat2: existing directories, a last name that is no link. Else None."""
    parent, _, name = rest.rpartition("/")
    if name in ("", ".", ".."):
        return None
    fd, below = root.fd, ""
    if parent:
        try:
            fd = _openat2_directory(root.fd, parent)
        except OSError:
            return None
    try:
        if parent:
            below = _real_below(root, fd)
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISLNK(found.st_mode):
            return Place(root, fd, name, f"{below}/{name}" if below else name, found)
    except FileNotFoundError:
        return Place(root, fd, name, f"{below}/{name}" if below else name, None)
    except BaseException:
        if fd != root.fd:
            os.close(fd)
        raise
    if fd != root.fd:
        os.close(fd)
    return None


def _real_below(root: Root, fd: int) -> str:
    """The real path of an open directory from its root. Not below it (moved away meanwhile): refused."""
    real = os.readlink(f"/proc/self/fd/{fd}")
    below = after(root.real, real)
    if below is None:  # perhaps the root itself was moved
        below = after(os.readlink(f"/proc/self/fd/{root.fd}"), real)
    if below is None:
        raise SandboxViolation("the directory was moved out of the workspace while it was opened; try again")
    return below


class _Walk:
    """One resolution, name by name. Directories are opened without following; links are followed here."""

    def __init__(self, resolver: Resolver, root: Root, text: str) -> None:
        self._resolver = resolver
        self._text = escaped(text)
        self._root = root
        self._held: list[tuple[int, str]] = []
        self._hops = 0
        self._last = ""  # the link that was followed last

    def run(self, rest: str) -> Place:
        try:
            return self._run(_parts(rest))
        except BaseException:
            self._release(0)
            raise

    def _run(self, todo: list[str]) -> Place:
        """`todo` holds the names still to go, the next one last."""
        while todo:
            name = todo.pop()
            if name == ".":
                continue
            if name == "..":
                todo = self._up(todo)
                continue
            found = self._look(name)
            if found is not None and stat.S_ISLNK(found.st_mode):
                todo = self._follow(name, found, todo)
            elif not todo:
                return self._place(name, found)
            elif found is None:
                return self._absent(name, todo)
            elif not self._enter(name, found):
                todo.append(name)
        return self._place(".", os.fstat(self._fd))

    @property
    def _fd(self) -> int:
        return self._held[-1][0] if self._held else self._root.fd

    def _names(self, *more: str) -> str:
        return "/".join([*(name for _, name in self._held), *more])

    def _look(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _enter(self, name: str, found: os.stat_result) -> bool:
        """Hold the next directory. False: it changed since it was looked at; look again."""
        if not stat.S_ISDIR(found.st_mode):
            at = escaped(self._names(name))
            raise NotDirectory(f"`{at}` is not a directory, so `{self._text}` can't be below it")
        try:
            self._held.append((os.open(name, _STEP_FLAGS, dir_fd=self._fd), name))
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
                raise
            self._count()
            return False
        return True

    def _up(self, todo: list[str]) -> list[str]:
        if self._held:
            self._release(len(self._held) - 1)
            return todo
        above = os.path.dirname(self._root.real)
        return self._jump(above, todo, f"`{self._last or self._text}` leads")

    def _follow(self, name: str, found: os.stat_result, todo: list[str]) -> list[str]:
        self._count()
        if found.st_dev != self._root.device and is_kernel_view(self._fd):
            raise NotFile(f"`{self._text}` goes through a link of the kernel's (/proc and the like), not a file")
        try:
            target = os.readlink(name, dir_fd=self._fd)
        except OSError as error:  # no longer a link: look again
            if error.errno not in (errno.EINVAL, errno.ENOENT):
                raise
            return [*todo, name]
        self._last = escaped(self._names(name))
        if target.startswith("/"):
            return self._jump("/" + target.lstrip("/"), todo, f"`{self._last}` is a link that leads")
        return todo + _parts(target)

    def _jump(self, absolute: str, todo: list[str], what: str) -> list[str]:
        """Go on at an absolute path, if a root holds it. What lies outside is passed by name, never opened."""
        todo = list(todo)
        while (found := self._resolver.root_of(absolute)) is None and todo:
            absolute = os.path.normpath(os.path.join(absolute, todo.pop()))
        if found is None:
            named = self._resolver.named()
            raise SandboxViolation(f"{what} outside the workspace ({named}); use a path inside it")
        self._release(0)
        self._root, rest = found
        return todo + _parts(rest)

    def _count(self) -> None:
        self._hops += 1
        if self._hops > MAX_HOPS:
            raise NotFound(f"`{self._text}` goes through more than {MAX_HOPS} links, perhaps in a circle")

    def _absent(self, name: str, todo: list[str]) -> Place:
        rest = [part for part in reversed(todo) if part != "."]
        if ".." in rest or todo[0] == ".":
            raise NotFound(f"`{self._text}` does not exist: there is no `{escaped(self._names(name))}`")
        return self._place(rest[-1], None, missing=(name, *rest[:-1]))

    def _place(self, name: str, found: os.stat_result | None, missing: tuple[str, ...] = ()) -> Place:
        relative = self._names(*missing, *(() if name == "." else (name,)))
        fd = self._fd
        if self._held:
            self._held.pop()
        self._release(0)
        return Place(self._root, fd, name, relative, found, missing)

    def _release(self, keep: int) -> None:
        while len(self._held) > keep:
            os.close(self._held.pop()[0])


def _parts(path: str) -> list[str]:
    """The names of a path, the first one last. A final slash says "the directory itself": a dot."""
    parts = [part for part in path.split("/") if part]
    if path.endswith("/") and parts:
        parts.append(".")
    parts.reverse()
    return parts


@functools.cache
def chosen_strategy() -> Strategy:
    """The strategy this machine offers: each is tried on a link that leads out before it is trusted."""
    for strategy in ("openat2", "walk"):
        if strategy_works(strategy):
            return strategy
    raise Internal("no way of confining files works on this machine: a link got out of a scratch directory")


def strategy_works(strategy: Strategy) -> bool:
    """Whether a strategy finds what is inside and refuses what is not, tried in a scratch directory."""
    if strategy == "openat2" and not _openat2_refuses():
        return False
    with tempfile.TemporaryDirectory(prefix="holdfast-probe-") as scratch:
        scratch = os.path.realpath(scratch)
        os.makedirs(f"{scratch}/in/dir")
        os.mkdir(f"{scratch}/out")
        os.symlink("../out", f"{scratch}/in/link")
        fd = os.open(f"{scratch}/in", DIRECTORY_FLAGS)
        try:
            root = Root(f"{scratch}/in", f"{scratch}/in", fd, os.fstat(fd).st_dev, writable=True)
            return _confines(Resolver([root], strategy))
        finally:
            os.close(fd)


def _openat2_refuses() -> bool:
    """openat2 itself, not the walk behind it: opens a directory, names it truly, says EXDEV to a way out."""
    if not _LINUX:
        return False
    with tempfile.TemporaryDirectory(prefix="holdfast-probe-") as scratch:
        scratch = os.path.realpath(scratch)
        os.mkdir(f"{scratch}/in")
        os.symlink("..", f"{scratch}/in/link")
        fd, named = os.open(f"{scratch}/in", DIRECTORY_FLAGS), ""
        try:
            inside = _openat2_directory(fd, ".")
            named = os.readlink(f"/proc/self/fd/{inside}")
            os.close(inside)
            os.close(_openat2_directory(fd, "link"))
        except OSError as error:
            return error.errno == errno.EXDEV and named == f"{scratch}/in"
        finally:
            os.close(fd)
    return False


def _confines(resolver: Resolver) -> bool:
    with resolver.locate("dir/new") as place:
        if place.relative != "dir/new":
            return False
    try:
        resolver.locate("link/new").close()
    except SandboxViolation:
        return True
    return False
