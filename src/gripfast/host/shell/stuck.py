"""Protected files that git tracks. The sandbox keeps a command from changing them, so after `git switch` one may have
its old content while git's index has moved on: committed as it is, it would undo what others changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from gripfast.host.program.repository import index_of, staged
from gripfast.host.shell.walls import Walls
from gripfast.records import dataclass
from gripfast.text.below import is_below

_LARGEST = 8 << 20

_Stamp = tuple[int, int, int]
"""How an index file was."""
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
        self._staged: dict[_Place, dict[str, str]] = {}

    def has_news(self, walls: Walls) -> bool:
        return any(_stamp(root) != self._seen.get((root, _closed(root, walls))) for root in self._roots)

    def look(self, walls: Walls) -> tuple[StuckFile, ...]:
        """The files that are as they were although their entry in the index is not, since the last look."""
        found: list[StuckFile] = []
        for root in self._roots:
            now, place = _stamp(root), (root, _closed(root, walls))
            if now is None or now == self._seen.get(place):
                continue
            before, entries = self._staged.get(place, {}), staged(*place)
            self._seen[place], self._staged[place] = now, entries
            found += [
                StuckFile(path, path not in entries)
                for path, name in before.items()
                if entries.get(path) != name and _object_name(path, len(name)) == name
            ]
        return tuple(found)


def _stamp(root: str) -> _Stamp | None:
    index = index_of(root)
    try:
        found = None if index is None else os.stat(index)
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def _closed(root: str, walls: Walls) -> tuple[str, ...]:
    return tuple(mount.path for mount in walls.mounts if mount.kind == "read" and _is_of_tree(mount.path, root))


def _is_of_tree(path: str, root: str) -> bool:
    return path != root and is_below(path, root) and ".git" not in path[len(root) :].split("/")


def _object_name(path: str, length: int) -> str | None:
    """The name that git gives to what a file holds; None for what can't be read or is large."""
    try:
        with open(path, "rb", opener=_plainly) as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return None
    digest = hashlib.sha1 if length == 40 else hashlib.sha256
    return None if len(data) > _LARGEST else digest(b"blob %d\0" % len(data) + data).hexdigest()


def _plainly(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
