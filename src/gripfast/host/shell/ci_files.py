"""CI files: what only a CI service runs, after a push. git may replace and remove them in the sandbox too.

A mount would keep git from that, and `git merge` would stop half-way. So nothing is mounted there while git runs, and
each change is judged after the command: it stays if it was git that moved the file, from one version to another that
was there before. All else is put back.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import field

from gripfast.host.files.closed import ClosedName
from gripfast.host.files.gitdirs import common_directory, named_directory
from gripfast.host.files.sealed import entries_of
from gripfast.host.kernel.regular import beginning_of
from gripfast.host.program.git_view import (
    GitView,
    TrackedFile,
    Unsure,
    WorkTree,
    index_entries,
    object_name,
    time_of_files,
)
from gripfast.host.shell.quarantine import (
    CHANGED,
    Quarantined,
    restore,
    restore_mode,
    take_out,
    through_parent,
    was_released,
)
from gripfast.records import dataclass
from gripfast.text.below import is_below

_MOST_FILES, _MOST_JUDGED = 1000, 500
_LARGEST, _MOST_BYTES = 1 << 20, 16 << 20
_MOST_KNOWN = 200
_PLAIN_MODE = 0o664
_NAMES_GIT = re.compile(rb"(?<![\w.-])(?:git|gh|glab|hub|jj|tig|lazygit|gitk|tea)(?![\w.])")
_MADE = "a protected name that a command made"


def names_git(command: bytes) -> bool:
    """Whether a command line may run git by its name, or a program that does little else."""
    return _NAMES_GIT.search(command) is not None


@dataclass(frozen=True, slots=True)
class _Copy:
    """A file's content, mode and stamp."""

    stamp: tuple[int, ...]
    content: bytes
    mode: int


@dataclass(slots=True)
class _Now:
    """A file after a command. `copy` is None if the file is absent or, with `is_odd`, not a plain file."""

    copy: _Copy | None
    is_odd: bool


@dataclass(slots=True)
class CiFiles:
    """The CI files of a session's working trees, as they were before a command."""

    roots: Sequence[str]
    judged: frozenset[str] = frozenset()
    """The names where a command may change files, provided that git makes the change."""
    copies: dict[str, _Copy] = field(default_factory=dict[str, _Copy])
    """The files there, before the command."""
    _trees: dict[str, WorkTree] = field(default_factory=dict[str, WorkTree])
    _repositories: frozenset[str] = frozenset()
    _names: frozenset[str] = frozenset()
    _began: int = 0
    _last: dict[str, _Copy] = field(default_factory=dict[str, _Copy])
    _known: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """By path, contents from before some command: put there by the user, or judged already."""
    _refused: set[str] = field(default_factory=set[str])
    """Contents that were refused and put back. Committing one later doesn't make it acceptable."""

    def take(
        self, closed: Sequence[ClosedName], made: Collection[str], *, suspect: bool, may_change: bool = True
    ) -> None:
        """Before a command. `made` are repositories of commands, where nothing is judged. `suspect`: another may
        still change the files, so what is copied stays the copy. Without `may_change`, mounts close the names that
        are there, and only new ones are judged."""
        self._repositories = frozenset(os.path.dirname(name.path) for name in closed if name.kind == "git")
        self._trees = dict(_trees(closed, made))
        self._names = frozenset(name.path for name in closed if self.is_judged(name))
        if suspect:
            return
        self.forget()
        self._began = time_of_files()
        room = _MOST_BYTES
        for name in sorted(self._names) if may_change else ():
            found = self._copied(name, closed, room)
            if found is not None and len(self.copies) + len(found) <= _MOST_FILES:
                room -= sum(len(copy.content) for copy in found.values())
                self.copies |= found
                self.judged |= {name}
        self._last = self.copies or self._last

    def forget(self) -> None:
        """Called when no command can change the files any more: from now on only the user does."""
        self.copies, self.judged = {}, frozenset()

    def is_judged(self, name: ClosedName) -> bool:
        """Whether a name is one of a CI service, in a working tree that was there before the command."""
        return name.is_ci and not name.is_link and self._tree(name.path) is not None

    def _tree(self, path: str) -> WorkTree | None:
        """The working tree that a path belongs to; None without one, or if a command made it."""
        above = next((above for above in _above(path) if above in self._repositories), None)
        return None if above is None else self._trees.get(above)

    def _copied(self, name: str, closed: Sequence[ClosedName], room: int) -> dict[str, _Copy] | None:
        """The files at or below a name; None if one can't be copied, in which case nothing there is judged."""
        found: dict[str, _Copy] = {}
        for path in _files(name, closed, unseal=False):
            known = self._last.get(path)
            is_same = known is not None and known.stamp == _stamp(path)
            copy = known if is_same else _now(path).copy
            room -= len(copy.content) if copy else 0
            if copy is None or room < 0 or len(found) >= _MOST_FILES:
                return None
            found[path] = copy
            if not is_same:
                self._knows(path, copy.content)
        return found

    def _knows(self, path: str, content: bytes) -> None:
        known, name = self._known.setdefault(path, set()), object_name(content)
        self._refused.discard(name)
        if len(known) < _MOST_KNOWN:
            known.add(name)

    def settle(self, closed: Sequence[ClosedName], *, goes_on: bool = False) -> list[Quarantined]:
        """After a command, with the names that are closed now: puts back what may not stay. `goes_on`: a command may
        still change files, so where git is at work the next look judges."""
        self._repositories |= {os.path.dirname(name.path) for name in closed if name.kind == "git"}
        new = {name.path for name in closed if self.is_judged(name)} - self._names
        self._names, self.judged = self._names | new, self.judged | new
        taken: list[Quarantined | None] = []
        changed = self._changed()
        for name in sorted(self.judged):
            found = [*_files(name, closed, unseal=True)] if os.path.lexists(name) else []
            if len(found) > _MOST_FILES:
                taken.append(take_out(name, _MADE))
                changed |= {path: copy for path, copy in self.copies.items() if is_below(path, name)}
            else:
                changed |= dict.fromkeys(path for path in found if path not in self.copies)
        if goes_on:
            changed = {path: copy for path, copy in changed.items() if not self._is_at_work(path)}
        kept = self._moved_by_git([*changed]) if changed else {}
        for name in new:
            if not any(is_below(path, name) for path in kept) and not (goes_on and self._is_at_work(name)):
                taken.append(take_out(name, _MADE))
        # First removes what is in the way, then restores what was there.
        for path, copy in sorted(changed.items(), key=lambda one: one[1] is not None):
            if path in kept:
                self._accept(path, kept[path])
            else:
                taken += self._undone(path, copy)
        return [item for item in taken if item is not None]

    def _changed(self) -> dict[str, _Copy | None]:
        """The files that differ from before. A directory may have been moved and replaced by a link to it."""
        led_away = {place for place in {*map(os.path.dirname, self.copies)} if os.path.realpath(place) != place}
        return {
            path: copy
            for path, copy in self.copies.items()
            if _stamp(path) != copy.stamp or os.path.dirname(path) in led_away
        }

    def _is_at_work(self, path: str) -> bool:
        tree = self._tree(path)
        return tree is not None and os.path.lexists(f"{tree.git}/index.lock")

    def _accept(self, path: str, copy: _Copy | None) -> None:
        """Takes this as the file's state before the next command."""
        self.copies = {other: old for other, old in self.copies.items() if other != path}
        if copy is not None:
            self.copies[path] = copy
            self._knows(path, copy.content)

    def _moved_by_git(self, paths: Sequence[str]) -> dict[str, _Copy | None]:
        """The files that may stay as they are now, each with its content; None: the file may stay absent."""
        kept: dict[str, _Copy | None] = {}
        by_tree: dict[str, list[str]] = {}
        for path in paths:
            now = _now(path)
            if now.copy is not None and (was_released(path) or self._was_there(path, now.copy)):
                kept[path] = now.copy
            elif not now.is_odd and (tree := self._tree(path)) is not None:
                by_tree.setdefault(tree.path, []).append(path)
        for place, some in by_tree.items():
            tree = self._trees[place]
            if len(some) <= _MOST_JUDGED and tree.is_unmoved():
                with suppress(Unsure):
                    kept |= self._moved_in(tree, some)
        return kept

    def _was_there(self, path: str, now: _Copy) -> bool:
        """Whether a file has had this content before, and its permissions are as they were."""
        before = self.copies.get(path)
        is_plain = before is None or not (
            (now.mode & ~before.mode & ~_PLAIN_MODE) or (now.mode ^ before.mode) & stat.S_IRWXU
        )
        return is_plain and object_name(now.content) in self._known.get(path, ())

    def _was_refused(self, now: _Copy) -> bool:
        return object_name(now.content) in self._refused

    def _moved_in(self, tree: WorkTree, paths: Sequence[str]) -> dict[str, _Copy | None]:
        view = GitView(tree, self._began)
        inner = {path: path.removeprefix(f"{tree.path}/") for path in paths}
        entries = index_entries(tree, [*inner.values()])
        kept: dict[str, _Copy | None] = {}
        unsure: dict[str, str] = {}
        for path, name in inner.items():
            now, entry = _now(path), entries.get(name)
            if now.is_odd or (entry is None and name in entries):
                continue
            if now.copy is None:
                before = self.copies.get(path)
                if (entry is None or entry.is_left_out) and before is not None and _is_stored(view, before):
                    kept[path] = None
            elif entry is not None and _is_entry(now.copy, entry) and not self._was_refused(now.copy):
                kept[path] = now.copy
                if not view.is_old(entry.name):
                    unsure[name] = entry.name
        fetched = view.fetched(unsure) if unsure else set[str]()
        return {path: copy for path, copy in kept.items() if inner[path] not in unsure or inner[path] in fetched}

    def _undone(self, path: str, copy: _Copy | None) -> Iterator[Quarantined | None]:
        for above in reversed([*_above(path)]):
            if is_below(above, *self.roots) and above not in self.roots and _blocks(above):
                yield take_out(above, CHANGED)
        now = _now(path).copy
        if now is not None and object_name(now.content) not in self._known.get(path, ()):
            self._refused.add(object_name(now.content))
        if copy is None:
            yield take_out(path, _MADE)
        else:
            yield _restored(path, copy, self._reason(path, now))

    def _reason(self, path: str, now: _Copy | None) -> str:
        """Why a file is put back, and what to do if git already has the new content."""
        tree = self._tree(path)
        entry: TrackedFile | None = None
        if tree is not None and now is not None:
            name = path.removeprefix(f"{tree.path}/")
            with suppress(Unsure):
                entry = index_entries(tree, [name]).get(name)
            if entry is not None and _is_entry(now, entry):
                return f"{CHANGED}; git has the new content, so don't commit the file as it is now: {_REMEDY} {name}"
        return CHANGED


_REMEDY = "the user can take it with git checkout --"


def _trees(closed: Sequence[ClosedName], made: Collection[str]) -> Iterator[tuple[str, WorkTree]]:
    """The working trees below the roots whose repository is where their `.git` says."""
    for name in closed:
        if name.kind != "git" or name.is_link or name.path in made or os.path.basename(name.path) != ".git":
            continue
        git = name.path if os.path.isdir(name.path) else named_directory(name.path)
        common = name.path if git == name.path else common_directory(name.path)
        tree = None if git is None or common is None else WorkTree.at(os.path.dirname(name.path), git, common)
        if tree is not None:
            yield tree.path, tree


def _files(name: str, closed: Sequence[ClosedName], *, unseal: bool) -> Iterator[str]:
    """Everything at or below a CI name except directories and names that are closed themselves."""
    inner = {other.path for other in closed if other.kind != "denied" and other.path != name}
    return _below(name, inner, [_MOST_FILES + 1], unseal=unseal)


def _below(path: str, without: Collection[str], left: list[int], *, unseal: bool) -> Iterator[str]:
    if os.path.islink(path) or not os.path.isdir(path):
        left[0] -= 1
        yield path
        return
    for entry in sorted(entries_of(path, unseal=unseal) or (), key=lambda entry: entry.name):
        if left[0] <= 0:
            return
        if entry.path not in without:
            yield from _below(entry.path, without, left, unseal=unseal)


def _above(path: str) -> Iterator[str]:
    above = os.path.dirname(path)
    while above != "/":
        yield above
        above = os.path.dirname(above)


def _blocks(path: str) -> bool:
    """Whether something other than a directory is where a directory must be."""
    return os.path.lexists(path) and (os.path.islink(path) or not os.path.isdir(path))


def _stamp(path: str) -> tuple[int, ...]:
    try:
        return _stamp_of(os.lstat(path))
    except OSError:
        return ()


def _stamp_of(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode


def _now(path: str) -> _Now:
    """A plain file with one name, reached through no link; absent; or odd."""
    try:
        with through_parent(path) as place:
            found = os.lstat(place)
            is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size <= _LARGEST
            content = beginning_of(place, _LARGEST + 1) if is_plain else None
            if content is None or _stamp_of(os.lstat(place)) != _stamp_of(found):
                return _Now(None, True)
            return _Now(_Copy(_stamp_of(found), content, stat.S_IMODE(found.st_mode)), False)
    except FileNotFoundError:
        return _Now(None, any(map(_blocks, _above(path))))
    except OSError:
        return _Now(None, True)


def _is_entry(copy: _Copy, entry: TrackedFile) -> bool:
    """Whether a file matches its entry in the index. With `eol=crlf`, git writes other line ends than it stores."""
    if (copy.mode ^ entry.mode) & stat.S_IRWXU:
        return False
    contents = (copy.content, copy.content.replace(b"\r\n", b"\n"))
    return any(object_name(content, len(entry.name)) == entry.name for content in contents)


def _is_stored(view: GitView, copy: _Copy) -> bool:
    """Whether git has a file's content, so that removing the file loses nothing."""
    contents = (copy.content, copy.content.replace(b"\r\n", b"\n"))
    return any(view.has(object_name(content, length)) for content in contents for length in (40, 64))


def _restored(path: str, copy: _Copy, reason: str) -> Quarantined | None:
    now = _now(path).copy
    if now is None or now.content != copy.content:
        return restore(path, copy.content, copy.mode, reason)
    restore_mode(path, copy.mode)
    return None
