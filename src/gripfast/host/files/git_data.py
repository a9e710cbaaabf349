"""What commands may have left in the data of a git directory that would lead the user's own git elsewhere.

Git makes no links there, and follows those that it finds: it would append to the reflog, or replace the index,
wherever a link leads. It trusts the paths in its index, too. Everything else that a command may write there is data.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from gripfast.host.files.gitdirs import INSTRUCTIONS
from gripfast.host.files.sealed import entries_of
from gripfast.host.kernel.regular import read_regular
from gripfast.host.program.git_index import MalformedIndex, forbidden_path, is_sha256
from gripfast.records import dataclass
from gripfast.text.escape import escaped

# What a directory is to git; `store` has a directory `objects` of its own, as git-lfs does.
_Role: TypeAlias = Literal["owner", "modules", "worktrees", "worktree", "store", "objects", "plain"]
_IN_OWNER: dict[str, _Role] = {
    "objects": "objects",
    "modules": "modules",
    "worktrees": "worktrees",
    "lfs": "store",
    "annex": "store",
}
_TICK_NS = 50_000_000  # two changes within one tick of a file system's clock leave the same ctime
_LARGEST_INDEX = 512 << 20
REMEDY = "`git reset` makes a new one"


@dataclass(frozen=True, slots=True)
class Misleading:
    """A path that git should not find in a git directory, and why."""

    path: str
    reason: str
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class _DirectoryEntries:
    stamp: tuple[int, ...]
    settled: bool
    found: tuple[Misleading, ...]
    below: tuple[tuple[str, _Role], ...]
    indexes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _JudgedIndex:
    stamp: tuple[int, ...]
    settled: bool
    digest: int
    reason: str


class GitData:
    """Looks through git directories. A directory is listed again only if its ctime has changed, and an index is read
    again only then. Single objects are not looked at: git never writes to one that is there."""

    def __init__(self) -> None:
        self._listings: dict[tuple[str, _Role], _DirectoryEntries] = {}
        self._judged: dict[str, _JudgedIndex] = {}

    def look(self, owners: Iterable[str], *, unseal: bool) -> Iterator[Misleading]:
        """What misleads git in these repositories, their submodules and what they keep for worktrees."""
        for owner in dict.fromkeys(owners):
            waiting: list[tuple[str, _Role]] = [(owner, "owner")]
            while waiting:
                listing = self._listing(*waiting.pop(), unseal=unseal)
                if listing is not None:
                    waiting += listing.below
                    yield from listing.found
                    for index in listing.indexes:
                        yield from self._judge(index, owner)

    def _listing(self, path: str, role: _Role, *, unseal: bool) -> _DirectoryEntries | None:
        stamp = _stamp(path)
        known = self._listings.get((path, role))
        if known is not None and known.settled and known.stamp == stamp:
            return known
        if not stamp:
            return None
        listing = _listed(path, role, stamp, unseal=unseal)
        self._listings[path, role] = listing
        return listing

    def _judge(self, index: str, owner: str) -> Iterator[Misleading]:
        stamp = _stamp(index)
        known = self._judged.get(index)
        if known is None or not known.settled or known.stamp != stamp:
            known = self._judged[index] = _judged(index, owner, stamp, known)
        if known.reason:
            yield Misleading(index, known.reason)


def _listed(path: str, role: _Role, stamp: tuple[int, ...], *, unseal: bool) -> _DirectoryEntries:
    settled = _is_settled(stamp)
    entries = entries_of(path, unseal=unseal) or []
    if role == "modules" and any(entry.name == "HEAD" for entry in entries):
        role = "owner"
    found: list[Misleading] = []
    below: list[tuple[str, _Role]] = []
    indexes: list[str] = []
    has_index = role in ("owner", "worktree")
    for entry in entries:
        if has_index and entry.name in INSTRUCTIONS:
            continue  # somebody else guards them
        if entry.is_dir(follow_symlinks=False):
            if inside := _inside(role, entry.name):
                below.append((entry.path, inside))
        elif entry.is_symlink():
            found += _link(entry, is_head=has_index and entry.name == "HEAD")
        elif not entry.is_file(follow_symlinks=False):
            found.append(Misleading(entry.path, "a pipe, socket or device, which git would wait for"))
        elif has_index and (entry.name == "index" or entry.name.startswith("sharedindex.")):
            indexes.append(entry.path)
    return _DirectoryEntries(stamp, settled, tuple(found), tuple(below), tuple(indexes))


def _inside(role: _Role, name: str) -> _Role | None:
    match role:
        case "owner":
            return _IN_OWNER.get(name, "plain")
        case "modules":
            return "modules"
        case "worktrees":
            return "worktree"
        case "store":
            return "objects" if name == "objects" else "plain"
        case "objects":
            return "plain" if name in ("pack", "info") else None
        case _:
            return "plain"


def _link(entry: os.DirEntry[str], *, is_head: bool) -> Iterator[Misleading]:
    try:
        target = os.readlink(entry.path)
    except OSError:
        return
    if is_head and target.startswith("refs/") and ".." not in target.split("/"):
        return  # git makes such a link with `core.preferSymlinkRefs`
    yield Misleading(entry.path, f"a link to {escaped(target)}, through which git would write", is_link=True)


def _judged(index: str, owner: str, stamp: tuple[int, ...], known: _JudgedIndex | None) -> _JudgedIndex:
    settled = _is_settled(stamp)
    try:
        data = read_regular(index, _LARGEST_INDEX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return _JudgedIndex((), False, 0, "")
    except PermissionError:
        return _JudgedIndex(stamp, False, 0, f"an index that can't be read; {REMEDY}")
    digest = hash(data)
    if known is not None and known.stamp and known.digest == digest:
        return _JudgedIndex(stamp, settled, digest, known.reason)
    return _JudgedIndex(stamp, settled, digest, _fault(data, owner))


def _fault(data: bytes, owner: str) -> str:
    """Why an index may not stay; empty if it may."""
    if len(data) > _LARGEST_INDEX:
        return f"an index that is too large to be examined; {REMEDY}"
    try:
        path = forbidden_path(data, hash_size=32 if is_sha256(owner) else 20)
    except MalformedIndex:
        return f"an index that git did not write; {REMEDY}"
    return "" if path is None else f"an index with the path `{escaped(path)}`, where git would write; {REMEDY}"


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_settled(stamp: tuple[int, ...]) -> bool:
    return bool(stamp) and time.time_ns() - stamp[-1] > _TICK_NS
