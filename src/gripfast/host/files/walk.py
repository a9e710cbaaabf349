"""The walk behind `tree`: lists each directory once, by descriptors, in bounded memory.

Of each listing only as many entries are kept as the answer has room for, so that a directory with a hundred thousand
names costs one pass and no more memory than a small one. No link is followed: a swapped one is not entered.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Literal, TypeAlias

from gripfast.records import dataclass

Kind: TypeAlias = Literal["directory", "file", "symlink"]
Accept: TypeAlias = Callable[[str, str, Kind], bool]

_RANK: dict[Kind, int] = {"directory": 0, "file": 1, "symlink": 2}
_LIST_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(slots=True)
class Node:
    """A place in the tree. `truncated`: a directory whose entries were not looked at, or could not be."""

    name: str
    path: str
    depth: int
    kind: Kind
    truncated: bool = False
    children: list[Node] = field(default_factory=list["Node"])


@dataclass(frozen=True, slots=True)
class Tree:
    """The root, how many nodes of each kind there are, and whether the limit stopped the walk."""

    root: Node
    counts: dict[Kind, int]
    limit_reached: bool

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def walk(directory: int, path: str, *, max_depth: int, max_entries: int, accept: Accept) -> Tree:
    """Depth first from an open directory, whose path from the workspace is `path` ("." is the workspace)."""
    root = Node(path.rpartition("/")[2], path, 0, "directory")
    walker = _Walker(max_depth, max_entries, accept)
    walker.fill(root, directory)
    return Tree(root, walker.counts, walker.room <= 0)


class _Walker:
    def __init__(self, max_depth: int, max_entries: int, accept: Accept) -> None:
        self.counts: dict[Kind, int] = {"directory": 1, "file": 0, "symlink": 0}
        self.room = max_entries - 1
        self._max_depth = max_depth
        self._accept = accept

    def fill(self, node: Node, directory: int) -> None:
        if node.depth >= self._max_depth:
            node.truncated = True
            return
        if self.room <= 0:
            return
        try:
            entries = self._first_entries(node, directory)
        except OSError:
            node.truncated = True
            return
        for kind, name in entries:
            if self.room <= 0:
                return
            self._add(node, directory, kind, name)

    def _add(self, parent: Node, directory: int, kind: Kind, name: str) -> None:
        node = Node(name, _below(parent.path, name), parent.depth + 1, kind)
        parent.children.append(node)
        self.counts[kind] += 1
        self.room -= 1
        if kind == "directory":
            self._enter(node, directory, name)

    def _enter(self, node: Node, directory: int, name: str) -> None:
        if node.depth >= self._max_depth or self.room <= 0:
            node.truncated = node.depth >= self._max_depth
            return
        try:
            below = os.open(name, _LIST_FLAGS, dir_fd=directory)
        except OSError:  # unreadable, gone, or no directory any more
            node.truncated = True
            return
        try:
            self.fill(node, below)
        finally:
            os.close(below)

    def _first_entries(self, node: Node, directory: int) -> list[tuple[Kind, str]]:
        """Those that come first, as many as there is room for: directories, files, links, each by name."""
        with os.scandir(directory) as listing:
            return heapq.nsmallest(self.room, self._accepted(node, listing), key=_order)

    def _accepted(self, node: Node, listing: Iterator[os.DirEntry[str]]) -> Iterator[tuple[Kind, str]]:
        above, accept = "" if node.path == "." else f"{node.path}/", self._accept
        for entry in listing:
            kind, name = _kind(entry), entry.name
            if kind is not None and accept(above + name, name, kind):
                yield kind, name


def _below(path: str, name: str) -> str:
    return name if path == "." else f"{path}/{name}"


def _kind(entry: os.DirEntry[str]) -> Kind | None:
    """None: a socket, FIFO or device; or it vanished."""
    try:
        if entry.is_file(follow_symlinks=False):
            return "file"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "symlink" if entry.is_symlink() else None
    except OSError:
        return None


def _order(entry: tuple[Kind, str]) -> tuple[int, bytes]:
    """Names compare by UTF-16 code unit, as they do in JavaScript."""
    return _RANK[entry[0]], entry[1].encode("utf-16-be", "surrogatepass")
