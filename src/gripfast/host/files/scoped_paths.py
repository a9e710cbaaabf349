"""The paths of one scope: which place a path leads to, whether that is denied, and what it is called."""

from __future__ import annotations

import functools
import os
import posixpath
import weakref
from collections.abc import Sequence

from gripfast.errors import Conflict, SandboxViolation, ToolError
from gripfast.host.files.beneath import PathResolver, ResolvedPath, Root, Strategy
from gripfast.host.files.closed_places import ClosedPlaces
from gripfast.host.files.faults import explained
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope
from gripfast.host.files.session_tmp import SessionTmp
from gripfast.host.kernel.openat2 import DIRECTORY_FLAGS
from gripfast.host.program.own import secret_place_below
from gripfast.text.below import after, is_below
from gripfast.text.escape import escaped


class HeldRoots:
    """The scope's directories, held open as long as this object exists, and the session's temporary directory once it
    is needed."""

    def __init__(self, scope: Scope) -> None:
        self.roots = tuple(_opened(scope))
        self.tmp = SessionTmp()
        self._writable = bool(scope.write)
        self._tmp_root: Root | None = None
        self._descriptors = [root.fd for root in self.roots]
        weakref.finalize(self, _close_all, self._descriptors)

    def tmp_root(self, absolute: str) -> Root | None:
        """The temporary directory as a root, for a path that means a place in it."""
        beside = [root for root in self.roots if root.real.startswith("/tmp/")]
        if any(is_below(absolute, "/".join(root.real.split("/")[:3])) for root in beside):
            return None  # the machine's /tmp, because a root is below it: outside the scope
        if not self.tmp.holds(absolute):
            return None
        path, root = self.tmp.path(), self._tmp_root
        if root is None or root.real != path:
            fd = os.open(path, DIRECTORY_FLAGS)
            self._descriptors.append(fd)
            found = os.fstat(fd)
            root = Root(self.tmp.shown(), path, fd, found.st_dev, self._writable, inode=found.st_ino)
            self._tmp_root = root
        return root


class ScopedPaths:
    """Finds the place a path leads to, refuses denied ones, and names places for answers."""

    def __init__(self, scope: Scope, held: HeldRoots, strategy: Strategy, *, named_only: bool = False) -> None:
        """With `named_only`, unrestricted reading is left out: only the named roots count."""
        self.scope = scope
        self._held = held
        named = [root for root in held.roots if root.real != "/"] if named_only else []
        self.resolver = PathResolver(named or held.roots, strategy, held.tmp_root)
        self.roots = tuple(root.real for root in self.resolver.roots if not root.anywhere)
        self.places = ClosedPlaces(scope)

    @property
    def tmp(self) -> SessionTmp:
        return self._held.tmp

    @property
    def hides(self) -> bool:
        """Whether anything below the roots can be denied at all."""
        return bool(self.scope.deny) or secret_place_below(self.roots)

    def within_roots(self) -> ScopedPaths:
        return ScopedPaths(self.scope, self._held, self.resolver.strategy, named_only=True)

    # --- names ---

    def show(self, path: WorkPath) -> str:
        """How answers name a path: from the first root, absolute only outside it, always on one line."""
        if ".." in path.text:  # above a link, only the real place tells what that means
            return escaped(self.spellings(path)[-1])
        return escaped(self.from_first(self.requested(path)))

    def show_real(self, absolute: str) -> str:
        """How answers name a real place, given by its absolute path."""
        return escaped(self.from_first(absolute))

    def spellings(self, path: WorkPath) -> tuple[str, ...]:
        """The names rules are matched against: as requested and as it really is, from the first root."""
        requested = self.from_first(self.requested(path))
        if path.judged is not None:
            real = self.from_first(path.judged)
            return (requested,) if real == requested else (requested, real)
        try:
            with self.resolver.locate(path.text) as place:
                real = self.from_first(place.absolute)
        except (ToolError, OSError):
            return (requested,)
        return (requested,) if real == requested else (requested, real)

    def requested(self, path: WorkPath) -> str:
        return _joined(self.resolver.roots[0].real, path.text)

    def from_first(self, absolute: str) -> str:
        rest = self.resolver.roots[0].rest(absolute)
        if rest is not None:
            return rest or "."
        inside = after(self.tmp.real, absolute) if self.tmp.real else None
        return absolute if inside is None else posixpath.join(self.tmp.shown(), inside).rstrip("/")

    def relative(self, path: WorkPath) -> str:
        """A path from the first root, never absolute: as requested, or as it really is where it goes up."""
        absolute = self.requested(path)
        if ".." in path.text.split("/"):
            with self.located(path, "read") as place:
                absolute = place.absolute
        return posixpath.relpath(absolute, self.resolver.roots[0].real)

    # --- places ---

    def allowed(self, path: WorkPath, doing: str) -> ResolvedPath:
        """The place a path leads to, unless a `deny` pattern closes it, as requested or as it really is."""
        if not self.hides:
            return self.located(path, doing)
        self._refuse_denied(path, self.requested(path))
        place = self.located(path, doing)
        try:
            self._refuse_denied(path, place.absolute)
        except BaseException:
            place.close()
            raise
        return place

    def located(self, path: WorkPath, doing: str) -> ResolvedPath:
        try:
            place = self.resolver.locate(path.text)
        except OSError as error:
            raise explained(error, path.text, doing) from None
        if path.judged is not None and place.absolute != path.judged:
            place.close()
            raise Conflict(
                f"`{escaped(path.text)}` now leads to another place than the one that was allowed; try again",
                retriable=True,
            )
        return place

    def _refuse_denied(self, path: WorkPath, absolute: str) -> None:
        reason = self.places.denied(absolute)
        if reason is not None:
            raise SandboxViolation(f"`{escaped(path.text)}` is closed by {reason}")

    def is_denied(self, absolute: str) -> bool:
        """Whether a real place is closed for reading, for walkers and searchers."""
        return self.places.denied(absolute) is not None


@functools.lru_cache(maxsize=1024)
def _joined(root: str, text: str) -> str:
    return "/" + posixpath.normpath(posixpath.join(root, text)).lstrip("/")


def _opened(scope: Scope) -> list[Root]:
    """The scope's directories, open. The last one is `/` when reading is unrestricted."""
    writable = {directory.real for directory in scope.write}
    roots: list[Root] = []
    for directory in scope.roots:
        try:
            fd = os.open(directory.real, DIRECTORY_FLAGS)
        except OSError as error:
            _close_all([root.fd for root in roots])
            raise explained(error, directory.given, "open") from None
        found = os.fstat(fd)
        is_writable = directory.real in writable
        roots.append(Root(directory.given, directory.real, fd, found.st_dev, is_writable, inode=found.st_ino))
    if scope.read is None:
        fd = os.open("/", DIRECTORY_FLAGS)
        roots.append(Root("/", "/", fd, os.fstat(fd).st_dev, writable=False, anywhere=True))
    return roots


def _close_all(descriptors: Sequence[int]) -> None:
    for fd in descriptors:
        os.close(fd)
