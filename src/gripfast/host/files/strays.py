"""Links below the roots that lead to places where commands write unwatched, and what would be run there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from gripfast.host.files.gitdirs import is_inside_repository, is_repository
from gripfast.host.files.sealed import entries_of
from gripfast.text.below import after, is_below
from gripfast.text.fold import folded

# Packages bring their own `.npmrc`, `.vscode` and the like: in these, only repositories and denied names are closed.
DEPENDENCIES = frozenset({"node_modules", ".venv", "venv"})
# What these contain differs from process to process.
_OF_PROCESS = re.compile(r"/proc/.*/(?:cwd|fd)(?:/|\Z)|/dev/fd/")
_CLIMBS = re.compile(r"(?:\A|/)(?!\.\.?(?:/|\Z))[^/]+/(?:.*/)?\.\.(?:/|\Z)")
_MOST_NAMES, _MOST_IN_ALL = 2_000, 200_000


class Strays:
    """Follows links. `unseen` gives the directories that commands can write and that are not watched; `is_protected`
    judges a name by the path that a user sees."""

    def __init__(
        self, roots: Sequence[str], unseen: Callable[[], Sequence[str]], is_protected: Callable[[str], bool]
    ) -> None:
        self._roots, self._find_unseen, self._is_protected = roots, unseen, is_protected
        self._unseen: Sequence[str] = ()
        self._left = 0

    def may_stray(self, link: str) -> bool:
        """Whether a link must be followed at every look. One that stays below the roots need not: if it leads through
        another link, that one is followed."""
        text, place = _text(link), _spelled(link)
        inside = next((rest for root in self._roots if (rest := after(root, place)) is not None), None)
        return inside is None or _CLIMBS.search(text) is not None or ".git" in map(folded, inside.split("/"))

    def begin(self) -> None:
        """Called before each look."""
        self._left, self._unseen = _MOST_IN_ALL, ()

    def behind(self, link: str, *, packages: bool) -> str | None:
        """What other programs would run behind a link, in a few words. None: nothing, or the place is watched.
        `packages`: only repositories count."""
        self._unseen = self._unseen or self._find_unseen()
        if _OF_PROCESS.match(_spelled(link)):
            return "a directory that differs from process to process"
        real = os.path.realpath(link)
        if folded(os.path.basename(real)) == ".git" and os.path.isdir(real):
            return f"the git directory {real}"
        return self._first(link, real, packages) if self._is_unjudged(real) and os.path.isdir(real) else None

    def _is_unjudged(self, real: str) -> bool:
        return is_below(real, *self._unseen) or is_inside_repository(real)

    def _first(self, link: str, real: str, packages: bool) -> str | None:
        left = min(_MOST_NAMES, self._left)
        waiting, seen = [(real, link, packages)], set[tuple[str, bool]]()
        while waiting:
            place, shown, packages = waiting.pop()
            if (place, packages) in seen:
                continue
            seen.add((place, packages))
            entries = entries_of(place, unseal=False)
            left -= len(entries or ())
            self._left -= len(entries or ())
            if entries is None or left < 0:
                return f"{real}, which has too many entries to check"
            if is_repository({entry.name for entry in entries}):
                return f"the repository {place}, which is not watched"
            for entry in entries:
                visible = f"{shown}/{entry.name}"
                if folded(entry.name) == ".git" or (not packages and self._is_protected(visible)):
                    return f"{entry.path}, which is not watched"
                target = self._target(entry)
                if target is not None:
                    waiting.append((target, visible, packages or entry.name in DEPENDENCIES))
        return None

    def _target(self, entry: os.DirEntry[str]) -> str | None:
        """The directory that an entry is or leads to, if it is not watched."""
        if not entry.is_symlink():
            return entry.path if entry.is_dir(follow_symlinks=False) else None
        real = os.path.realpath(entry.path)
        return real if self._is_unjudged(real) and os.path.isdir(real) else None


def _spelled(link: str) -> str:
    """Where a link leads by its text alone."""
    return "/" + os.path.normpath(os.path.join(os.path.dirname(link), _text(link))).lstrip("/")


def _text(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
