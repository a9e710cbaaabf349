"""Protected files that git tracks. The sandbox keeps a command from changing them, so after `git switch` one may have
its old content while git's index has moved on: committed as it is, it would undo what others changed."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gripfast.host.kernel.regular import beginning_of
from gripfast.host.program.git_view import Unsure, WorkTree, index_entries, object_name
from gripfast.host.shell.walls import Walls
from gripfast.records import dataclass
from gripfast.text.below import is_below

_LARGEST = 8 << 20

_Stamp = tuple[int, int, int]
"""How an index file was."""
_Staged = dict[str, str | None]
"""By absolute path, the name of the object that git's index has; None for a conflict, a link or a submodule."""
_Place = tuple[str, tuple[str, ...]]
"""A root and the protected files in it that are closed: fewer for a command that names git."""


@dataclass(frozen=True, slots=True)
class StuckFile:
    """A file that a git command would have changed, or removed (`is_gone`: git does not track it any more)."""

    path: str
    is_gone: bool


class StuckFiles:
    """Compares git's index before and after a command. git runs only where that changed."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self._seen: dict[_Place, _Stamp] = {}
        self._staged: dict[_Place, _Staged] = {}

    def has_news(self, walls: Walls) -> bool:
        return any(_stamp(root) != self._seen.get((root, _closed(root, walls))) for root in self._roots)

    def look(self, walls: Walls) -> tuple[StuckFile, ...]:
        """The files that are as they were although their entry in the index is not, since the last look."""
        found: list[StuckFile] = []
        for root in self._roots:
            now, place = _stamp(root), (root, _closed(root, walls))
            if now is None or now == self._seen.get(place):
                continue
            self._seen[place] = now
            try:
                staged = _staged(*place)
            except Unsure:
                continue
            before, self._staged[place] = self._staged.get(place, {}), staged
            found += [
                StuckFile(path, path not in staged)
                for path, name in before.items()
                if name is not None and staged.get(path) != name and _has_content(path, name)
            ]
        return tuple(found)


def _stamp(root: str) -> _Stamp | None:
    tree = WorkTree.of(root)
    try:
        found = None if tree is None else os.stat(f"{tree.git}/index")
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def _staged(root: str, paths: Sequence[str]) -> _Staged:
    """What git's index has at or below these absolute paths. Raises Unsure."""
    tree = WorkTree.of(root) if paths else None
    if tree is None:
        return {}
    entries = index_entries(tree, [os.path.relpath(path, tree.path) for path in paths])
    return {f"{tree.path}/{path}": None if entry is None else entry.name for path, entry in entries.items()}


def _closed(root: str, walls: Walls) -> tuple[str, ...]:
    return tuple(mount.path for mount in walls.mounts if mount.kind == "read" and _is_of_tree(mount.path, root))


def _is_of_tree(path: str, root: str) -> bool:
    return path != root and is_below(path, root) and ".git" not in path[len(root) :].split("/")


def _has_content(path: str, name: str) -> bool:
    """Whether a file holds what git knows by a name; False for one that can't be read or is large."""
    data = beginning_of(path, _LARGEST + 1)
    return data is not None and len(data) <= _LARGEST and object_name(data, len(name)) == name
