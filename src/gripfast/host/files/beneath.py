"""Confinement: a path becomes a held directory descriptor and one name in it, and never gets out of its root.

There are two strategies. `openat2` lets the kernel resolve the directory beneath the root's descriptor (see
openat2(2), RESOLVE_BENEATH). The walk opens one directory after the other without following links; it reads links
and follows them itself, checking every step. Links that openat2 refuses (absolute ones that point inside, ones that
lead to another root) and missing paths are left to the walk.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from typing import Literal

from gripfast.errors import Internal, NotDirectory, NotFile, NotFound, SandboxViolation
from gripfast.host.files.scope import require_unmoved
from gripfast.host.kernel.features import may_use
from gripfast.host.kernel.openat2 import DIRECTORY_FLAGS, openat2_directory
from gripfast.host.kernel.statfs import is_kernel_view
from gripfast.records import dataclass
from gripfast.text.below import after
from gripfast.text.escape import escaped

Strategy = Literal["openat2", "walk"]

MAX_HOPS = 40

LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP_FLAGS = DIRECTORY_FLAGS | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Root:
    """A directory that is held open. `anywhere` marks the `/` that unrestricted reading starts from."""

    given: str
    real: str
    fd: int
    device: int
    writable: bool
    anywhere: bool = False
    inode: int = 0

    def require_unmoved(self) -> None:
        """Raises if the root's path no longer leads to the same directory."""
        if self.inode:
            require_unmoved(self.given, self.real, (self.device, self.inode))

    def rest(self, absolute: str) -> str | None:
        """The part of an absolute path after this root, in either spelling; None if it is not below the root."""
        rest = after(self.real, absolute)
        return rest if rest is not None else after(self.given, absolute)


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """Where a path led: a held directory, a name in it that is not a link, and what was there.

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

    def __enter__(self) -> ResolvedPath:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class PathResolver:
    """Finds places beneath roots. Relative paths start at the first root."""

    def __init__(
        self, roots: Sequence[Root], strategy: Strategy, tmp: Callable[[str], Root | None] = lambda _: None
    ) -> None:
        """`tmp` returns the session's temporary directory as a root, for a path that leads into it."""
        self.roots = tuple(roots)
        self.strategy: Strategy = strategy
        self._tmp = tmp

    def root_of(self, absolute: str, *, named: bool = False) -> tuple[Root, str] | None:
        """The innermost root that an absolute path lies below, in either spelling, and the rest of the path. With
        `named`, the temporary directory doesn't count."""
        found = [(root, rest) for root in self.roots if (rest := root.rest(absolute)) is not None]
        root, rest = min(found, key=lambda one: len(one[1]), default=(None, absolute))
        if not named and (root is None or root.real == "/") and (own := self._tmp(absolute)) is not None:
            return own, (own.rest(absolute) or "").lstrip("/")
        return None if root is None else (root, rest.lstrip("/"))

    def locate(self, text: str) -> ResolvedPath:
        """Resolves a path once. All later steps use the descriptor of the place."""
        root, rest = self._start(text)
        root.require_unmoved()
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


def _fast(root: Root, rest: str) -> ResolvedPath | None:
    """The common case with one openat2: the directories exist, and the last name is not a link. Otherwise None."""
    parent, _, name = rest.rpartition("/")
    if name in ("", ".", ".."):
        return None
    fd, below = root.fd, ""
    if parent:
        try:
            fd = openat2_directory(root.fd, parent)
        except OSError:
            return None
    try:
        if parent:
            below = _real_below(root, fd)
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISLNK(found.st_mode):
            return ResolvedPath(root, fd, name, f"{below}/{name}" if below else name, found)
    except FileNotFoundError:
        return ResolvedPath(root, fd, name, f"{below}/{name}" if below else name, None)
    except BaseException:
        if fd != root.fd:
            os.close(fd)
        raise
    if fd != root.fd:
        os.close(fd)
    return None


def _real_below(root: Root, fd: int) -> str:
    """The real path of an open directory, from its root. Raises if it was moved out of the root meanwhile."""
    real = os.readlink(f"/proc/self/fd/{fd}")
    below = after(root.real, real)
    if below is None:  # perhaps the root itself was moved
        below = after(os.readlink(f"/proc/self/fd/{root.fd}"), real)
    if below is None:
        raise SandboxViolation("the directory was moved out of the workspace while it was opened; try again")
    return below


class _Walk:
    """One resolution, name by name. Directories are opened without following; links are followed here."""

    def __init__(self, resolver: PathResolver, root: Root, text: str) -> None:
        self._resolver = resolver
        self._text = escaped(text)
        self._root = root
        self._held: list[tuple[int, str]] = []
        self._hops = 0
        self._last = ""  # the link that was followed last

    def run(self, rest: str) -> ResolvedPath:
        try:
            return self._run(_parts(rest))
        except BaseException:
            self._release(0)
            raise

    def _run(self, todo: list[str]) -> ResolvedPath:
        """`todo` holds the names that are left, the next one last."""
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
        """Opens the next directory. False if it has changed since the lstat, which must then be repeated."""
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
        """Continues at an absolute path if a root contains it. Places outside are only named, never opened."""
        todo = list(todo)
        named = self._root in self._resolver.roots  # a path from a root doesn't climb into the temporary directory
        while (found := self._resolver.root_of(absolute, named=named)) is None and todo:
            absolute = os.path.normpath(os.path.join(absolute, todo.pop()))
        if found is None:
            named = self._resolver.named()
            raise SandboxViolation(f"{what} outside the workspace ({named}); use a path inside it")
        self._release(0)
        self._root, rest = found
        self._root.require_unmoved()
        return todo + _parts(rest)

    def _count(self) -> None:
        self._hops += 1
        if self._hops > MAX_HOPS:
            raise NotFound(f"`{self._text}` goes through more than {MAX_HOPS} links, perhaps in a circle")

    def _absent(self, name: str, todo: list[str]) -> ResolvedPath:
        rest = [part for part in reversed(todo) if part != "."]
        if ".." in rest or todo[0] == ".":
            raise NotFound(f"`{self._text}` does not exist: there is no `{escaped(self._names(name))}`")
        return self._place(rest[-1], None, missing=(name, *rest[:-1]))

    def _place(self, name: str, found: os.stat_result | None, missing: tuple[str, ...] = ()) -> ResolvedPath:
        relative = self._names(*missing, *(() if name == "." else (name,)))
        fd = self._fd
        if self._held:
            self._held.pop()
        self._release(0)
        return ResolvedPath(self._root, fd, name, relative, found, missing)

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
    with tempfile.TemporaryDirectory(prefix="gripfast-probe-") as scratch:
        scratch = os.path.realpath(scratch)
        os.makedirs(f"{scratch}/in/dir")
        os.mkdir(f"{scratch}/out")
        os.symlink("../out", f"{scratch}/in/link")
        fd = os.open(f"{scratch}/in", DIRECTORY_FLAGS)
        try:
            root = Root(f"{scratch}/in", f"{scratch}/in", fd, os.fstat(fd).st_dev, writable=True)
            return _confines(PathResolver([root], strategy))
        finally:
            os.close(fd)


def _openat2_refuses() -> bool:
    """openat2 itself, not the walk behind it: opens a directory, names it truly, says EXDEV to a way out."""
    if not may_use("openat2"):
        return False
    with tempfile.TemporaryDirectory(prefix="gripfast-probe-") as scratch:
        scratch = os.path.realpath(scratch)
        os.mkdir(f"{scratch}/in")
        os.symlink("..", f"{scratch}/in/link")
        fd, named = os.open(f"{scratch}/in", DIRECTORY_FLAGS), ""
        try:
            inside = openat2_directory(fd, ".")
            named = os.readlink(f"/proc/self/fd/{inside}")
            os.close(inside)
            os.close(openat2_directory(fd, "link"))
        except OSError as error:
            return error.errno == errno.EXDEV and named == f"{scratch}/in"
        finally:
            os.close(fd)
    return False


def _confines(resolver: PathResolver) -> bool:
    with resolver.locate("dir/new") as place:
        if place.relative != "dir/new":
            return False
    try:
        resolver.locate("link/new").close()
    except SandboxViolation:
        return True
    return False
