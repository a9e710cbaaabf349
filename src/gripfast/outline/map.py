"""The map of a directory: which files are named, which directories are closed, what of each file is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from gripfast.outline.definition import Definition
from gripfast.records import dataclass

NAMES = 0.4  # the share of the room that names may take; the rest is for what the files define
MOST_A_FILE = 25
_ASIDE = frozenset({"constant", "variable", "declaration", "macro", "key"})  # shown where there is nothing else
_OPEN = frozenset({"module"})  # shown with what is in them


@dataclass(frozen=True, slots=True)
class Closed:
    """A directory of which only the number of files is shown."""

    path: str
    count: int


@dataclass(slots=True)
class _MappedDirectory:
    path: str
    depth: int
    files: list[str] = field(default_factory=list[str])
    inside: dict[str, _MappedDirectory] = field(default_factory=dict[str, "_MappedDirectory"])
    total: int = 0


def laid_out(paths: Iterable[str], limit: int) -> list[str | Closed]:
    """Names that fit, by path: directories are opened from the top down, so that the deepest stay closed first."""
    root = _tree(paths)
    room = max(1, int(limit * NAMES))
    first, opened = root, {root.path}
    while not first.files and len(first.inside) == 1:  # the way to the directory that was asked for
        (first,) = first.inside.values()
        opened.add(first.path)
    rows = len(first.files) + len(first.inside)
    level: list[_MappedDirectory] = list(first.inside.values())
    while level:
        for each in sorted(level, key=lambda one: one.total):
            cost = len(each.files) + len(each.inside) - 1
            if rows + cost <= room:
                rows += cost
                opened.add(each.path)
        level = [inner for each in level if each.path in opened for inner in each.inside.values()]
    return sorted(_entries(root, opened, room), key=_by_path)


def _tree(paths: Iterable[str]) -> _MappedDirectory:
    root = _MappedDirectory("", 0)
    for path in paths:
        here = root
        root.total += 1
        *directories, _ = path.split("/")
        for name in directories:
            inner = here.inside.get(name)
            if inner is None:
                inner = here.inside[name] = _MappedDirectory(f"{here.path}{name}/", here.depth + 1)
            here = inner
            here.total += 1
        here.files.append(path)
    return root


def _entries(root: _MappedDirectory, opened: set[str], room: int) -> Iterator[str | Closed]:
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        files = sorted(directory.files)
        yield from files[:room]
        if len(files) > room:
            yield Closed(directory.path, len(files) - room)
        for each in directory.inside.values():
            if each.path in opened:
                waiting.append(each)
            else:
                yield Closed(each.path, each.total)


def _by_path(entry: str | Closed) -> tuple[str, ...]:
    return tuple((entry if isinstance(entry, str) else entry.path).split("/"))


def tops(definitions: Iterable[Definition]) -> list[Definition]:
    """The top level of a file: definitions outside any other, or directly in a namespace."""
    around: list[Definition] = []
    found: list[Definition] = []
    for each in definitions:
        while around and around[-1].depth >= each.depth:
            around.pop()
        if all(outer.kind in _OPEN for outer in around):
            found.append(each)
        around.append(each)
    return [each for each in found if each.kind not in _ASIDE] or found
