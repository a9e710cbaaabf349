"""Protected files that git tracks: git replaces and removes them in the sandbox as well.

A mount would keep git from that, and `git merge` would stop half-way. So nothing is mounted there while git runs, and
each change is judged after the command: it stays if it was git that moved the file, from one version to another. Of a
CI file, which runs nowhere but at a service after a push, that version must have been there before the command, or
have been fetched by it. Of a file that something on this machine runs, it must be the user's: see `origins.py`.
All else is put back.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from shlex import quote
from typing import Literal, TypeAlias

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
from gripfast.host.shell.held_roots import Place, keys_at
from gripfast.host.shell.origins import Origins
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

Opens: TypeAlias = Literal["none", "ci", "all"]
"""Which of these files a command may change: none, CI files, or all of them."""
_MOST_FILES, _MOST_JUDGED = 1000, 500
_LARGEST, _MOST_BYTES = 1 << 20, 16 << 20
_MOST_KNOWN = 200
_PLAIN_MODE = 0o664
_EARLY_SECONDS = 2.0
_NAMES_GIT = re.compile(rb"(?<![\w.-])(?:git|gh|glab|hub|jj|tig|lazygit|gitk|tea)(?![\w.])")
_MADE = "a protected name that a command made"


def names_git(command: bytes) -> bool:
    """Whether a command line may run git by its name, or a program that does little else."""
    return _NAMES_GIT.search(command) is not None


@dataclass(frozen=True, slots=True)
class _FileCopy:
    """A file's content, mode and stamp."""

    stamp: tuple[int, ...]
    content: bytes
    mode: int


@dataclass(slots=True)
class _Now:
    """A file after a command. `copy` is None if the file is absent or, with `is_odd`, not a plain file."""

    copy: _FileCopy | None
    is_odd: bool


@dataclass(slots=True)
class MovedFiles:
    """The protected files of a session's working trees, as they were before a command."""

    roots: Sequence[str]
    judged: frozenset[str] = frozenset()
    """The names where a command may change files, provided that git makes the change."""
    copies: dict[str, _FileCopy] = field(default_factory=dict[str, _FileCopy])
    """The files there, before the command."""
    _trees: dict[str, WorkTree] = field(default_factory=dict[str, WorkTree])
    _repositories: frozenset[str] = frozenset()
    _names: frozenset[str] = frozenset()
    _began: int = 0
    _last: dict[str, _FileCopy] = field(default_factory=dict[str, _FileCopy])
    _known: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """By path, contents from before some command: put there by the user, or judged already."""
    _refused: set[str] = field(default_factory=set[str])
    """Contents that were refused and put back. Committing one later doesn't make it acceptable."""
    _run_here: frozenset[str] = frozenset()
    """The names that something on this machine runs."""
    _origins: dict[str, Origins] = field(default_factory=dict[str, Origins])
    """By working tree."""
    _since: dict[str, float] = field(default_factory=dict[str, float])
    """When such a file was first seen changed, while git runs."""

    def relocated(self, place: Place) -> MovedFiles:
        """The same after roots were moved."""
        found = ((place(tree.path), place(tree.git), place(tree.common), tree) for tree in self._trees.values())
        trees = {
            path: WorkTree(path, git, common, tree.identity)
            for path, git, common, tree in found
            if path and git and common
        }
        return replace(
            self,
            roots=[*keys_at(place, dict.fromkeys(self.roots))],
            judged=frozenset(keys_at(place, dict.fromkeys(self.judged))),
            copies=keys_at(place, self.copies),
            _trees=trees,
            _repositories=frozenset(keys_at(place, dict.fromkeys(self._repositories))),
            _names=frozenset(keys_at(place, dict.fromkeys(self._names))),
            _last=keys_at(place, self._last),
            _known={path: {*known} for path, known in keys_at(place, self._known).items()},
            _refused={*self._refused},
            _run_here=frozenset(keys_at(place, dict.fromkeys(self._run_here))),
            _origins={
                path: origins.at(trees[path])
                for path, origins in keys_at(place, self._origins).items()
                if path in trees
            },
            _since={},
        )

    def take(
        self,
        closed: Sequence[ClosedName],
        made: Collection[str],
        *,
        suspect: bool,
        opens: Opens = "all",
        may_be_new: bool = True,
    ) -> None:
        """Before a command. `made` are repositories of commands, where nothing is judged. `suspect`: another may
        still change the files, so what is copied stays the copy. `opens` are the files that it may change: mounts
        close the others that are there, and only new ones are judged. Without `may_be_new` a command may have made
        what the last look did not find: the next one judges it."""
        self._repositories = frozenset(os.path.dirname(name.path) for name in closed if name.kind == "git")
        self._trees = dict(_trees(closed, made))
        judged = [name for name in closed if self.is_judged(name) and (may_be_new or name.path in self._names)]
        self._names = frozenset(name.path for name in judged)
        self._run_here = frozenset(name.path for name in judged if not name.is_ci)
        self._look_at_refs(suspect)
        if not suspect:
            self.forget()
            self._began = time_of_files()
        room = _MOST_BYTES - sum(len(copy.content) for copy in self.copies.values())
        for name in sorted(self._to_copy(opens, suspect)):
            found = self._copied(name, closed, room)
            if found is not None and len(self.copies) + len(found) <= _MOST_FILES:
                room -= sum(len(copy.content) for copy in found.values())
                self.copies = self.copies | found
                self.judged |= {name}
        self._last = self.copies or self._last

    def opened(self, opens: Opens) -> frozenset[str]:
        """The names that are not closed to a command, because they are judged afterwards."""
        if opens == "all":
            return self.judged
        return self.judged - self._run_here if opens == "ci" else frozenset()

    def _to_copy(self, opens: Opens, suspect: bool) -> frozenset[str]:
        """The names to copy now. What a command may still change was copied before it."""
        ci = frozenset[str]() if opens == "none" or suspect else self._names - self._run_here
        return ci | (self._run_here - self.judged if opens == "all" else frozenset[str]())

    def _look_at_refs(self, suspect: bool) -> None:
        """While a command may run, refs that are new count as its own."""
        if suspect:
            for origins in self._origins.values():
                origins.look_after()
            return
        self._origins = {place: Origins(tree) for place, tree in self._trees.items()}
        for origins in self._origins.values():
            origins.look_before()

    def runs_here(self, names: Collection[str]) -> bool:
        """Whether something on this machine runs one of these names."""
        return not self._run_here.isdisjoint(names)

    def _runs_here(self, path: str) -> bool:
        return is_below(path, *self._run_here)

    def forget(self) -> None:
        """Called when no command can change the files any more: from now on only the user does."""
        self.copies, self.judged = {}, frozenset()

    def is_judged(self, name: ClosedName) -> bool:
        """Whether a name is one that git may move, in a working tree that was there before the command."""
        return name.may_move and not name.is_link and self._tree(name.path) is not None

    def _tree(self, path: str) -> WorkTree | None:
        """The working tree that a path belongs to; None without one, or if a command made it."""
        above = next((above for above in _above(path) if above in self._repositories), None)
        return None if above is None else self._trees.get(above)

    def _copied(self, name: str, closed: Sequence[ClosedName], room: int) -> dict[str, _FileCopy] | None:
        """The files at or below a name; None if one can't be copied, in which case nothing there is judged."""
        found: dict[str, _FileCopy] = {}
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
            if self._runs_here(path):
                self._note(path, copy)
        return found

    def _note(self, path: str, copy: _FileCopy) -> None:
        """It lies there before a command, so it is the user's."""
        tree = self._tree(path)
        if tree is not None and tree.path in self._origins:
            self._origins[tree.path].note(path.removeprefix(f"{tree.path}/"), object_name(copy.content))

    def _knows(self, path: str, content: bytes) -> None:
        known, name = self._known.setdefault(path, set()), object_name(content)
        self._refused.discard(name)
        if len(known) < _MOST_KNOWN:
            known.add(name)

    def settle(self, closed: Sequence[ClosedName], *, goes_on: bool = False) -> list[Quarantined]:
        """After a command, with the names that are closed now: puts back what may not stay. `goes_on`: a command may
        still change files, so where git is at work the next look judges."""
        self._repositories |= {os.path.dirname(name.path) for name in closed if name.kind == "git"}
        judged = [name for name in closed if self.is_judged(name)]
        new = {name.path for name in judged} - self._names
        self._names, self.judged = self._names | new, self.judged | new
        self._run_here |= {name.path for name in judged if not name.is_ci}
        for origins in self._origins.values():
            origins.look_after()
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
                taken.append(take_out(name, self._reason(name, _now(name).copy, _MADE)))
                self._names -= {name}  # one that is made again is new again
        # First removes what is in the way, then restores what was there.
        for path, copy in sorted(changed.items(), key=lambda one: one[1] is not None):
            if path in kept:
                self._accept(path, kept[path])
            else:
                taken += self._undone(path, copy)
        return [item for item in taken if item is not None]

    def judge_early(self) -> list[Quarantined]:
        """While git runs: puts back what is not the user's and has lain for some seconds where something on this
        machine runs it. Most merges are over by then."""
        now = time.monotonic()
        changed = [path for path in self._changed() if self._runs_here(path) and os.path.lexists(path)]
        self._since = {path: self._since.get(path, now) for path in changed}
        late = [path for path, since in self._since.items() if now - since > _EARLY_SECONDS]
        taken = [item for path in late if not self._is_users(path) for item in self._undone(path, self.copies[path])]
        return [item for item in taken if item is not None]

    def _is_users(self, path: str) -> bool:
        now, tree = _now(path).copy, self._tree(path)
        if now is None or tree is None:
            return False
        mode = 0o100755 if now.mode & stat.S_IXUSR else 0o100644
        name = path.removeprefix(f"{tree.path}/")
        with suppress(Unsure):
            names = {object_name(content) for content in (now.content, now.content.replace(b"\r\n", b"\n"))}
            return self._was_there(path, now) or any(
                self._origins[tree.path].is_users(name, TrackedFile(one, mode, False)) for one in names
            )
        return False

    def _changed(self) -> dict[str, _FileCopy | None]:
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

    def _accept(self, path: str, copy: _FileCopy | None) -> None:
        """Takes this as the file's state before the next command."""
        self.copies = {other: old for other, old in self.copies.items() if other != path}
        if copy is not None:
            self.copies[path] = copy
            self._knows(path, copy.content)

    def _moved_by_git(self, paths: Sequence[str]) -> dict[str, _FileCopy | None]:
        """The files that may stay as they are now, each with its content; None: the file may stay absent."""
        kept: dict[str, _FileCopy | None] = {}
        by_tree: dict[str, list[str]] = {}
        for path in paths:
            now = _now(path)
            if now.copy is not None and (self._was_released(path) or self._was_there(path, now.copy)):
                kept[path] = now.copy
            elif not now.is_odd and (tree := self._tree(path)) is not None:
                by_tree.setdefault(tree.path, []).append(path)
        for place, some in by_tree.items():
            tree = self._trees[place]
            if len(some) <= _MOST_JUDGED and tree.is_unmoved():
                with suppress(Unsure):
                    kept |= self._moved_in(tree, some)
        return kept

    def _was_released(self, path: str) -> bool:
        """Whether a person released this file, or the directory that it was found in now."""
        within = (name for name in self._names if is_below(path, name)) if path not in self.copies else ()
        return was_released(path) or any(map(was_released, within))

    def _was_there(self, path: str, now: _FileCopy) -> bool:
        """Whether a file has had this content before, and its permissions are as they were."""
        before = self.copies.get(path)
        is_plain = before is None or not (
            (now.mode & ~before.mode & ~_PLAIN_MODE) or (now.mode ^ before.mode) & stat.S_IRWXU
        )
        return is_plain and object_name(now.content) in self._known.get(path, ())

    def _was_refused(self, now: _FileCopy) -> bool:
        return object_name(now.content) in self._refused

    def _moved_in(self, tree: WorkTree, paths: Sequence[str]) -> dict[str, _FileCopy | None]:
        view = GitView(tree, self._began)
        inner = {path: path.removeprefix(f"{tree.path}/") for path in paths}
        entries = index_entries(tree, [*inner.values()])
        kept: dict[str, _FileCopy | None] = {}
        unsure: dict[str, str] = {}
        for path, name in inner.items():
            now, entry = _now(path), entries.get(name)
            if now.is_odd or (entry is None and name in entries) or not self._is_gits(path, now.copy, entry, view):
                continue
            if self._runs_here(path):
                if self._origins[tree.path].is_users(name, entry if now.copy else None):
                    kept[path] = now.copy
            elif now.copy is None or not self._was_refused(now.copy):
                kept[path] = now.copy
                if now.copy is not None and entry is not None and not view.is_old(entry.name):
                    unsure[name] = entry.name
        fetched = view.fetched(unsure) if unsure else set[str]()
        return {path: copy for path, copy in kept.items() if inner[path] not in unsure or inner[path] in fetched}

    def _is_gits(self, path: str, now: _FileCopy | None, entry: TrackedFile | None, view: GitView) -> bool:
        """Whether a file is what the index says, or is absent as the index says and git has stored it."""
        if now is not None:
            return entry is not None and _is_entry(now, entry)
        before = self.copies.get(path)
        return (entry is None or entry.is_left_out) and before is not None and _is_stored(view, before)

    def _undone(self, path: str, copy: _FileCopy | None) -> Iterator[Quarantined | None]:
        for above in reversed([*_above(path)]):
            if is_below(above, *self.roots) and above not in self.roots and _blocks(above):
                yield take_out(above, CHANGED)
        now = _now(path).copy
        if now is not None and object_name(now.content) not in self._known.get(path, ()):
            self._refused.add(object_name(now.content))
        if copy is None:
            yield take_out(path, self._reason(path, now, _MADE))
        else:
            yield _restored(path, copy, self._reason(path, now, CHANGED))

    def _reason(self, path: str, now: _FileCopy | None, reason: str) -> str:
        """Why a file is put back, and what to do if git already has the new content."""
        tree = self._tree(path)
        if tree is None:
            return reason
        name, entries = path.removeprefix(f"{tree.path}/"), dict[str, TrackedFile | None]()
        with suppress(Unsure):
            entries = index_entries(tree, [name])
        entry = entries.get(name)
        is_new = bool(entries) if now is None else entry is not None and _is_entry(now, entry)
        if is_new and (now is not None or os.path.isdir(path)):
            return f"{reason}; git has the new content, so don't commit it as it is now: {_REMEDY} {quote(name)}"
        return reason


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
    """Everything at or below a name except directories and names that are closed themselves."""
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
            return _Now(_FileCopy(_stamp_of(found), content, stat.S_IMODE(found.st_mode)), False)
    except FileNotFoundError:
        return _Now(None, any(map(_blocks, _above(path))))
    except OSError:
        return _Now(None, True)


def _is_entry(copy: _FileCopy, entry: TrackedFile) -> bool:
    """Whether a file matches its entry in the index. With `eol=crlf`, git writes other line ends than it stores."""
    if (copy.mode ^ entry.mode) & stat.S_IRWXU:
        return False
    contents = (copy.content, copy.content.replace(b"\r\n", b"\n"))
    return any(object_name(content, len(entry.name)) == entry.name for content in contents)


def _is_stored(view: GitView, copy: _FileCopy) -> bool:
    """Whether git has a file's content, so that removing the file loses nothing."""
    contents = (copy.content, copy.content.replace(b"\r\n", b"\n"))
    return any(view.has(object_name(content, length)) for content in contents for length in (40, 64))


def _restored(path: str, copy: _FileCopy, reason: str) -> Quarantined | None:
    now = _now(path).copy
    if now is None or now.content != copy.content:
        return restore(path, copy.content, copy.mode, reason)
    restore_mode(path, copy.mode)
    return None
