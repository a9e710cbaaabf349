"""What a sandbox must hold for a Scope: the writable roots, and the protected and denied places found in them."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Iterator

from holdfast.host.patterns import Patterns, folded
from holdfast.host.places import private_places
from holdfast.host.sandbox import Walls
from holdfast.host.scope import Scope

# Looking for protected names in a workspace ends after this long; those near the root come first.
SEARCH_SECONDS = 0.25
_NOT_ENTERED = {"node_modules", ".venv", "__pycache__"}
_GLOB = re.compile(r"[*?\[{]")


def walls_of(scope: Scope, temporary: str) -> Walls:
    """The walls as things are now. A name that appears later is found by `fingerprint`."""
    protected: list[str] = []
    denied: list[str] = []
    until = time.monotonic() + SEARCH_SECONDS
    for root in (directory.real for directory in scope.roots):
        for path, closed in _closed_places(root, scope, until):
            (denied if closed == "deny" else protected).append(os.path.realpath(path))
    write = tuple(directory.real for directory in scope.write)
    read = tuple(directory.real for directory in scope.read or ())
    denied += [place for place in private_places() if os.path.isdir(place)]
    protected += [place for path in protected for place in _git_directory(path, write)]
    return Walls(write, read, tuple(dict.fromkeys(protected)), tuple(dict.fromkeys(denied)), temporary)


def _closed_places(root: str, scope: Scope, until: float) -> Iterator[tuple[str, str]]:
    """Breadth first, so that time runs out in the depths. What is closed is not entered."""
    deny, protect = _Last(scope.deny), _Last(scope.protect)
    waiting = deque([""])
    while waiting and time.monotonic() < until:
        inside = waiting.popleft()
        for entry in _entries(os.path.join(root, inside)):
            relative = os.path.join(inside, entry.name)
            if deny.matches(entry.name, relative, entry.path):
                yield entry.path, "deny"
            elif protect.matches(entry.name, relative, entry.path):
                yield entry.path, "protect"
            elif entry.name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                waiting.append(relative)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            return list(found)
    except OSError:
        return []


class _Last:
    """Patterns with a cheap first look at a name's last part: most names match nothing."""

    def __init__(self, patterns: Patterns) -> None:
        lasts = [folded(text.rstrip("/").rpartition("/")[2]) for text in patterns.texts]
        self._patterns = patterns
        self._open = any(_GLOB.search(last) for last in lasts)
        self._names = frozenset(lasts)

    def matches(self, name: str, relative: str, absolute: str) -> bool:
        if not self._open and folded(name) not in self._names:
            return False
        return self._patterns.find(relative, absolute) is not None


def _git_directory(path: str, write: tuple[str, ...]) -> Iterator[str]:
    """A `.git` file names the real directory; inside a writable root that one is protected too."""
    if os.path.basename(path) != ".git" or not os.path.isfile(path):
        return
    try:
        with open(path, "rb") as file:
            named = file.read(4096)
    except OSError:
        return
    if named.startswith(b"gitdir:"):
        text = os.fsdecode(named[7:].strip())
        place = os.path.realpath(os.path.join(os.path.dirname(path), text))
        if os.path.isdir(place) and any(place.startswith(root + "/") for root in write):
            yield place


def fingerprint(scope: Scope, walls: Walls) -> tuple[object, ...]:
    """Changes when a root or a closed place was replaced, or a protected name appeared at a root's top, or a place
    of our own: then walls built before no longer hold."""
    names = [text for text in scope.protect.texts if "/" not in text and not _GLOB.search(text)]
    tops = (os.path.join(root, name) for root in walls.write for name in names)
    return tuple(
        _identity(path) for path in (*walls.write, *walls.protected, *walls.denied, *tops, *private_places())
    )


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
