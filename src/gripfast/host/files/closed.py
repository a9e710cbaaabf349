"""Which names below the roots are closed to commands, exact at every call of `look`.

A directory is listed again only if its ctime has changed. Creating, removing or renaming a name in it changes that
time, and no program can set it back (see inode(7)). So `look` costs one stat for each directory.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from gripfast.errors import SandboxViolation
from gripfast.host.files.closed_places import ClosedPlaces
from gripfast.host.files.git_data import GitData
from gripfast.host.files.gitdirs import common_directory, has_more_than_git, is_repository
from gripfast.host.files.patterns import Patterns
from gripfast.host.files.scope import Scope
from gripfast.host.files.sealed import entries_of
from gripfast.host.files.strays import DEPENDENCIES, Strays
from gripfast.host.program.own import own_places
from gripfast.records import dataclass
from gripfast.text.below import is_below
from gripfast.text.escape import escaped
from gripfast.text.fold import folded

ClosedKind: TypeAlias = Literal["denied", "protected", "git", "repository", "astray", "turned"]

# What is closed in a directory: every protected name; those that are not only for a CI service; only repositories;
# nothing but what is denied, which always counts.
_Extent: TypeAlias = Literal["all", "here", "git", "denied"]
_Places: TypeAlias = tuple[tuple[str, _Extent], ...]
_GLOB = re.compile(r"[*?\[\]{}\\]")
_KERNEL = frozenset({"/proc", "/sys", "/dev"})
# A tick of the file system's clock: two changes within one tick leave the same ctime.
_TICK_NS = 50_000_000
# Only for a root that holds the home directory: the whole machine is not looked through at every command.
_WIDE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class ClosedName:
    """A name that commands may not write (`protected`) or see (`denied`); `git` is a `.git`, of which they may write
    a part; `repository` is a directory with another name that git would take for one; `astray` is what leads others
    where nobody looks, or git to write elsewhere, and `reason` says how; `turned` is a directory of other things that
    became a repository after somebody had looked at it. `is_ci`: a protected name that only a CI service runs, and
    only after a push. `may_move`: git may replace it by another version, which is judged afterwards."""

    path: str
    kind: ClosedKind
    is_link: bool = False
    is_ci: bool = False
    reason: str = ""
    may_move: bool = False


@dataclass(frozen=True, slots=True)
class _Listing:
    stamp: tuple[int, int, int]
    settled: bool
    found: tuple[ClosedName, ...]
    below: _Places
    links: _Places


class ClosedNames:
    """Looks for closed names below a scope's roots, and at absolute deny patterns outside them. `unseen` gives the
    directories that commands write and nobody looks through."""

    def __init__(self, scope: Scope, places: ClosedPlaces, unseen: Callable[[], Sequence[str]] = tuple) -> None:
        self._places = places
        self._deny, self._protect = _Last(scope.deny), _Last(scope.protect)
        self._git = ".git" in scope.protect.texts
        self._denies = bool(scope.deny)
        self._directories = scope.roots
        self._roots = tuple(directory.real for directory in scope.roots)
        self._outside = tuple(_outside(scope.deny, self._roots))
        self._strays = Strays(self._roots, unseen, self._is_protected)
        self._listings: dict[str, _Listing] = {}
        self._git_data = GitData()
        self._unseal = False
        home = os.path.realpath(os.path.expanduser("~"))
        self._wide = any(is_below(home, root) for root in self._roots)

    def look(self, *, unseal: bool = False) -> tuple[ClosedName, ...]:
        """Every name that is closed now. A directory that nobody can look into is closed as a whole; with `unseal`,
        after a command, one of our own is opened again. If descriptors or memory ran out it raises OSError, since
        names would wrongly seem to be gone; a root that was moved or can't be looked into is a SandboxViolation."""
        self._unseal = unseal
        found = [name for start in self._starts() for name in start]
        links: list[tuple[str, _Extent]] = []
        waiting: list[tuple[str, _Extent]] = []
        waiting.extend((root, "all") for root in self._roots)
        waiting.extend((place, "denied") for place in self._outside if os.path.isdir(place))
        until = time.monotonic() + _WIDE_SECONDS if self._wide else 0.0
        while waiting and (not until or time.monotonic() < until):
            path, extent = waiting.pop(0) if until else waiting.pop()
            listing = self._listing(path, extent)
            if listing is not None:
                if listing.found:
                    found += listing.found
                if listing.below:
                    waiting += listing.below
                if listing.links:
                    links += listing.links
        for directory in self._directories:
            directory.require_unmoved()  # else all its names would seem to be gone
        found += self._astray(links)
        found += self._named_by_git(found)
        found += self._misleading(found)
        return tuple(dict.fromkeys(found))

    def _named_by_git(self, found: Sequence[ClosedName]) -> list[ClosedName]:
        """What the user's git would run or obey that is closed by no name of its own."""
        named = self._places.named_by_git
        if named is None:
            return []
        below = [name.path for name in found if name.kind == "git"]
        closed = [name.path for name in found if name.kind in ("git", "protected", "denied", "repository")]
        paths = sorted(path for path in named.of((*below, *named.around())) if not is_below(path, *closed))
        return [ClosedName(path, "protected", os.path.islink(path)) for path in paths if os.path.lexists(path)]

    def _astray(self, links: Sequence[tuple[str, _Extent]]) -> Iterator[ClosedName]:
        self._strays.begin()
        for link, extent in links:
            if behind := self._strays.behind(link, packages=extent == "git"):
                yield ClosedName(link, "astray", True, reason=f"it leads to {behind}")

    def _misleading(self, found: Sequence[ClosedName]) -> list[ClosedName]:
        """What commands may have left in git directories. The one of a worktree may lie outside the roots."""
        names = [name.path for name in found if name.kind in ("git", "repository") and not name.is_link]
        owners = (path if os.path.isdir(path) else common_directory(path) for path in names)
        misleading = self._git_data.look((owner for owner in owners if owner is not None), unseal=self._unseal)
        return [ClosedName(one.path, "astray", one.is_link, reason=one.reason) for one in misleading]

    def _is_protected(self, path: str) -> bool:
        return self._protect.may_match(os.path.basename(path)) and self._places.protected(path) is not None

    def _starts(self) -> Iterator[tuple[ClosedName, ...]]:
        """Literal absolute deny patterns, which need no search."""
        for place in self._outside:
            if os.path.lexists(place) and self._places.denied(place):
                yield (ClosedName(place, "denied", os.path.islink(place)),)

    def _listing(self, path: str, extent: _Extent) -> _Listing | None:
        try:
            now = os.lstat(path)
        except OSError:
            return None
        stamp = (now.st_dev, now.st_ino, now.st_ctime_ns)
        known = self._listings.get(path)
        if known is not None and known.settled and known.stamp == stamp:
            return known
        settled = time.time_ns() - now.st_ctime_ns > _TICK_NS
        listing = _Listing(stamp, settled, *self._listed(path, extent, _was_plain(path, known, stamp)))
        self._listings[path] = listing
        return listing

    def _listed(self, path: str, extent: _Extent, was_plain: bool) -> tuple[tuple[ClosedName, ...], _Places, _Places]:
        entries = entries_of(path, unseal=self._unseal)
        if entries is None:
            return self._sealed(path, extent), (), ()
        found: list[ClosedName] = []
        below: list[tuple[str, _Extent]] = []
        links: list[tuple[str, _Extent]] = []
        names = {entry.name for entry in entries}
        if self._git and extent != "denied" and is_repository(names):
            is_turned = was_plain and has_more_than_git(names)
            found.append(ClosedName(path, "turned" if is_turned else "repository"))
            extent = extent if is_turned else "git"
        own = {place.path: place.secret for place in own_places()}
        for entry in entries:
            kind = self._kind(entry, "denied" if entry.path in own else extent)
            is_ci = kind == "protected" and extent != "here" and not self._places.runs_here(entry.path)
            if kind is not None:
                may_move = kind == "protected" and self._places.may_move(entry.path)
                found.append(ClosedName(entry.path, kind, entry.is_symlink(), is_ci, may_move=may_move))
            if kind is None and extent != "denied" and entry.is_symlink() and self._strays.may_stray(entry.path):
                links.append((entry.path, _inside(entry.name, extent)))
            if own.get(entry.path) or entry.path in _KERNEL:
                continue  # closed as a whole, whatever is in it
            if kind != "denied" and entry.is_dir(follow_symlinks=False):
                inside = "denied" if kind is not None or entry.path in own else _inside(entry.name, extent)
                inside = "here" if is_ci else inside
                if self._denies or inside in ("all", "here") or (self._git and inside == "git"):
                    below.append((entry.path, inside))
        return tuple(found), tuple(below), tuple(links)

    def _sealed(self, path: str, extent: _Extent) -> tuple[ClosedName, ...]:
        """Names in it are closed too, so it is closed as a whole. A root can't be: nothing would be left."""
        if path in self._roots:
            raise SandboxViolation(
                f"`{escaped(path)}` can't be listed even by its owner, so nobody can tell what is protected in "
                "it; make it readable again with chmod u+rwx"
            )
        return () if extent == "denied" and not self._denies else (ClosedName(path, "denied"),)

    def _kind(self, entry: os.DirEntry[str], extent: _Extent) -> ClosedKind | None:
        if self._deny.may_match(entry.name) and self._places.denied(entry.path):
            return "denied"
        is_git = self._git and folded(entry.name) == ".git"
        if extent == "denied" or (extent == "git" and not is_git) or not self._protect.may_match(entry.name):
            return None
        if not (self._places.runs_here if extent == "here" else self._places.protected)(entry.path):
            return None
        return "git" if is_git else "protected"


def _was_plain(path: str, known: _Listing | None, stamp: tuple[int, int, int]) -> bool:
    """Whether a directory was there before, and was not a repository."""
    return (
        known is not None
        and known.stamp[:2] == stamp[:2]
        and not any(name.path == path and name.kind == "repository" for name in known.found)
    )


def _inside(name: str, extent: _Extent) -> _Extent:
    return "git" if extent in ("all", "here") and name in DEPENDENCIES else extent


class _Last:
    """Patterns with a cheap first look at a name's last part: most names match nothing."""

    def __init__(self, patterns: Patterns) -> None:
        lasts = [folded(text.rstrip("/").rpartition("/")[2]) for text in patterns.texts]
        self._open = any(_GLOB.search(last) for last in lasts)
        self._names = frozenset(lasts)

    def may_match(self, name: str) -> bool:
        return self._open or folded(name) in self._names


def _outside(deny: Patterns, roots: Sequence[str]) -> Iterator[str]:
    """Where absolute deny patterns begin, if that is in no root: the literal part before the first wildcard."""
    for text in deny.texts:
        glob = os.path.expanduser(text)
        if glob.startswith("/"):
            names = glob.rstrip("/").split("/")
            literal = next((at for at, name in enumerate(names) if _GLOB.search(name)), len(names))
            head = os.path.realpath("/".join(names[:literal]) or "/")
            if head != "/" and not is_below(head, *roots):
                yield head
