"""Who brought a version of a file into a repository: the user, or a command. Remembered between sessions.

A command can make commits, branches and tags of any content, and fetch others. So what a ref named before a command,
and no command had put there, is the user's; and so is a version that lay in the working tree before a command.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Collection, Iterable
from dataclasses import field
from pathlib import Path

from gripfast.host.program.git_history import History, history_of
from gripfast.host.program.git_view import TrackedFile, Unsure, WorkTree, tips
from gripfast.host.program.places import private_directory, state_directory
from gripfast.records import dataclass

_MOST_LINES, _MOST_BASE = 50_000, 10_000
_BASE, _MADE, _KNOWN = "base", "made", "known"
_ALL = "*"


@dataclass(slots=True)
class Origins:
    """What is known of one repository. The lists are `base`, the tips when it was first seen; `made`, those that
    appeared while commands ran; `known`, versions that lay in the working tree before a command."""

    tree: WorkTree
    _before: frozenset[str] = frozenset()
    _lists: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    _first: WorkTree | None = None
    """Where the repository was when the session began, if its root was moved since: the lists are stored by that."""

    def at(self, tree: WorkTree) -> Origins:
        """The same repository after its root was moved: what is learned there counts here too."""
        return Origins(tree, self._before, self._lists, self._first or self.tree)

    def look_before(self) -> None:
        """Before a command, when none runs."""
        found = tips(self.tree)
        self._before = found or frozenset()
        self._read()
        if not self._lists:
            self._add(_BASE, sorted(self._before)[:_MOST_BASE] or [_ALL])

    def look_after(self) -> None:
        """After a command, or while it runs: what is new, it may have made."""
        found = tips(self.tree)
        if found is None:
            self._add(_MADE, [_ALL])
        elif new := found - self._before - self._list(_MADE):
            self._add(_MADE, sorted(self._unknown(new)))

    def _unknown(self, new: Collection[str]) -> Collection[str]:
        """Without those that were in the history already: `git branch old HEAD~3` makes nothing."""
        with contextlib.suppress(Unsure), history_of(self.tree) as history:
            users = self._before - self._list(_MADE)
            return [name for name in new if not history.is_near(name, users)]
        return new

    def note(self, path: str, name: str) -> None:
        """A version that lies in the working tree before a command."""
        if f"{name} {path}" not in self._list(_KNOWN) and "\n" not in path:
            self._add(_KNOWN, [f"{name} {path}"])

    def is_users(self, path: str, wanted: TrackedFile | None) -> bool:
        """Whether a version of a file, or that there is none, is the user's. Raises Unsure."""
        if wanted is not None and f"{wanted.name} {path}" in self._list(_KNOWN):
            return True
        self._read()  # another session may have added to it
        made, base = self._list(_MADE), self._list(_BASE)
        users = self._before & base if _ALL in made else self._before - made
        with history_of(self.tree) as history:
            found = history.commits_with(path, wanted, users, made)
            return any(self._came_by_user(history, commit, path, wanted) for commit in found)
        return False

    def _came_by_user(self, history: History, commit: str, path: str, wanted: TrackedFile | None) -> bool:
        made = self._list(_MADE)
        return wanted is None or not made or history.came_by_others(commit, path, wanted, made, self._list(_BASE))

    def _list(self, kind: str) -> set[str]:
        return self._lists.get(kind, set[str]())

    def _add(self, kind: str, names: Iterable[str]) -> None:
        names = [*names]
        self._lists.setdefault(kind, set[str]()).update(names)
        with (
            contextlib.suppress(OSError, RuntimeError),
            open(self._file(), "a", encoding="utf-8", errors="surrogateescape") as file,
        ):
            file.write("".join(f"{kind} {name}\n" for name in names))

    def _read(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            lines = os.fsdecode(self._file().read_bytes()).split("\n")[:-1]
            for line in lines[-_MOST_LINES:]:
                kind, _, name = line.partition(" ")
                self._lists.setdefault(kind, set[str]()).add(name)

    def _file(self) -> Path:
        first = self._first or self.tree
        place = f"{os.fsencode(first.common)!r} {first.identity[1]}"
        folder = private_directory(private_directory(state_directory()) / "origins")
        return folder / hashlib.sha256(place.encode()).hexdigest()[:32]
