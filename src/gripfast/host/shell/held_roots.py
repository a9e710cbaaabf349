"""The roots of a session, held open while commands run: one that was moved meanwhile is found again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from gripfast.host.files.scope import Directory
from gripfast.host.kernel.path_of import path_of
from gripfast.records import dataclass
from gripfast.text.below import after

Place: TypeAlias = Callable[[str], str | None]
"""Where a path is after its root was moved; None if nobody knows."""
_Value = TypeVar("_Value")
_FLAGS = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_PATH if sys.platform == "linux" else os.O_RDONLY)


@dataclass(frozen=True, slots=True)
class MovedRoot:
    """A root that is no longer where it was. `now` is its path; empty if it can't be found: it was removed, or the
    file system it is on was unmounted."""

    path: str
    now: str


class RootDescriptors:
    """Descriptors of roots. `descriptors` are inherited ones, in the order of the roots."""

    def __init__(self, roots: Sequence[Directory], descriptors: Sequence[int] = ()) -> None:
        self._roots = roots
        self._held = dict(zip((root.real for root in roots), descriptors, strict=False))

    def hold(self) -> tuple[int, ...]:
        """Opens what is not open yet. Call it while every root is where it was. Returns the descriptors."""
        for root in self._roots:
            if root.real not in self._held:
                self._held[root.real] = _opened(root)
        return tuple(self._held[root.real] for root in self._roots)

    def moved(self) -> tuple[MovedRoot, ...]:
        """The roots that are no longer where they were."""
        away = (root for root in self._roots if not _is_at(root, root.real))
        return tuple(MovedRoot(root.real, self._found(root)) for root in away)

    def _found(self, root: Directory) -> str:
        fd = self._held.get(root.real)
        path = None if fd is None else path_of(fd)
        return path if path is not None and _is_at(root, path) else ""

    def close(self) -> None:
        for fd in self._held.values():
            os.close(fd)
        self._held = {}


def _opened(root: Directory) -> int:
    try:
        return os.open(root.real, _FLAGS)
    except FileNotFoundError:
        root.require_unmoved()
        raise


def _is_at(root: Directory, path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (root.device, root.inode)


def places_after(moved: Sequence[MovedRoot]) -> Place:
    """Says where paths below the roots are now. The innermost root counts."""
    ordered = sorted(moved, key=lambda root: len(root.path), reverse=True)

    def place(path: str) -> str | None:
        for root in ordered:
            if (rest := after(root.path, path)) is not None:
                return (f"{root.now}/{rest}" if rest else root.now) if root.now else None
        return path

    return place


def keys_at(place: Place, by_path: Mapping[str, _Value]) -> dict[str, _Value]:
    """The same by where the paths are now, without those that can't be found."""
    return {now: value for path, value in by_path.items() if (now := place(path)) is not None}
