"""Watch: what changed below some directories since a mark, in time proportional to the changes, not to the tree.

One inotify watch for each directory, set up once in the background. The kernel queues an event before the change
returns to the program that made it, so once a command has ended its events can be read. An event only says where
to look: what counts is what `lstat` finds there, compared with the index. What is written by another name of a file
causes no event: files known to have one are compared at every look, and after a command the others as well.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence

from gripfast.host.files.sweep import Sweep
from gripfast.host.files.tree_index import IndexEntry, TreeIndex, entry_of, is_gone
from gripfast.host.kernel.features import why_not
from gripfast.host.kernel.inotify import (
    CHANGES,
    IN_DELETE_SELF,
    IN_IGNORED,
    IN_MOVE_SELF,
    IN_Q_OVERFLOW,
    IN_UNMOUNT,
    Event,
    Inotify,
)
from gripfast.host.program.places import private_places
from gripfast.records import dataclass
from gripfast.text.below import is_below

# Not looked into: what tools keep there is not what a command was asked to do.
SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
SLOW_WALK = 0.2  # seconds: a faster walk is not worth mentioning
_LEAST_BUDGET = 2.0  # seconds a walk may take where there is no inotify; more if the first walk took long
_BUDGET_TIMES = 4
_CHECK_EVERY = 256
COMPARED_AT_ONCE = 2_000
"""Names that are compared after a command before its answer; in larger trees that is done in the background."""


@dataclass(frozen=True, slots=True)
class PathChange:
    """What one path was and what it is now; None for nothing. Both the same: something changed in a SKIPPED
    directory, which is not looked into."""

    path: str
    before: IndexEntry | None
    after: IndexEntry | None

    @property
    def is_inside(self) -> bool:
        return self.before is not None and self.before == self.after


class Mark:
    """A moment. As long as somebody holds it, the changes since then are kept."""

    __slots__ = ("__weakref__", "position")

    def __init__(self, position: int) -> None:
        self.position = position


@dataclass(frozen=True, slots=True)
class ChangesSince:
    """`whole` is False when a walk ran out of time: what it did not reach is found by the next one."""

    paths: tuple[PathChange, ...]
    whole: bool = True


class Watch:
    """Follows the directories `roots`. May be shared between threads; close it when done."""

    def __init__(self, roots: Sequence[str], *, notify: Callable[[], Inotify] = Inotify) -> None:
        self._roots = [root for root in roots if not any(_inside(root, other) for other in roots)]
        self._starts = {root: entry_of(root) for root in self._roots}
        self._notify: Inotify | None = None
        self._make = notify
        self._own = private_places()  # our own records and outputs, where a root holds them
        self._index = TreeIndex()
        self._lock = threading.RLock()
        self._sweep = Sweep(self._index, self._lock)
        self._watched: dict[int, str] = {}
        self._watch_of: dict[str, int] = {}
        self._log: list[PathChange] = []
        self._dropped = 0  # entries of the log that nobody can ask for any more
        self._marks: weakref.WeakSet[Mark] = weakref.WeakSet()
        self._budget = float("inf")
        self._until = float("inf")
        self._walk_seconds = 0.0
        self._whole = True
        self._quiet = True  # nothing is a change while the index is filled
        self._closed = False
        self._note: str | None = None
        self._thread = threading.Thread(target=self._set_up, name="gripfast-watch", daemon=True)
        self._thread.start()

    # --- what others ask ---

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until everything is watched and indexed; False if that took longer."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def mark(self) -> Mark:
        """This moment. What changed before it is not in what `since` gives."""
        self.wait()
        with self._lock:
            self._drain()
            mark = Mark(self._dropped + len(self._log))
            self._marks.add(mark)
            self._trim()
            return mark

    def since(self, mark: Mark, *, after_command: bool = False, known: Iterable[str] = ()) -> ChangesSince:
        """What is different from what was there at a mark, by path. `after_command`: also what changed without an
        event, in a large tree only of the files `known`; `hidden` has the rest."""
        with self._lock:
            whole = self._drain()
            if after_command and self._is_watching() and not self.is_away():
                self._compare(known)
            first: dict[str, PathChange] = {}
            for change in self._log[max(0, mark.position - self._dropped) :]:
                earlier = first.get(change.path)
                before = change.before if earlier is None else earlier.before
                first[change.path] = PathChange(change.path, before, change.after)
        return ChangesSince(tuple(change for _, change in sorted(first.items()) if _counts(change)), whole)

    def hidden(self, *, finish: bool = False) -> tuple[PathChange, ...]:
        """What changed without an event and has been found since the last answer. `finish`: looks for all of it."""
        if finish:
            self._sweep.finish()
        mark = self.mark()
        with self._lock:
            for path in () if self.is_away() else self._sweep.take():
                self._look(path)
        return self.since(mark).paths

    def entries(self) -> list[tuple[str, IndexEntry]]:
        """Everything there is, as it was when last looked at."""
        self.wait()
        with self._lock:
            return list(self._index)

    def entry(self, path: str) -> IndexEntry | None:
        """What a path was when it was last looked at."""
        return self._index.get(path)

    def is_away(self) -> bool:
        """Whether a root was moved or replaced. Until it is back nothing counts as changed: no file was deleted."""
        return any(start and not _is_still(start, entry_of(root)) for root, start in self._starts.items())

    def take_note(self) -> str | None:
        """A note for the user about slow change detection, returned once, and only if it costs them time."""
        if self._walk_seconds < SLOW_WALK:
            return None
        note, self._note = self._note, None
        return note

    def close(self) -> None:
        self._closed = True
        self._sweep.close()
        self._thread.join()
        with self._lock:
            if self._notify is not None:
                self._notify.close()
                self._notify = None

    # --- setting up ---

    def _set_up(self) -> None:
        with self._lock:
            try:
                self._notify = self._make()
            except OSError as error:
                self._without_inotify(error)
            started = time.monotonic()
            waiting = list(self._roots)
            while waiting and not self._closed:
                directory = waiting.pop()
                self._add_watch(directory)
                if self._is_looked_into(directory):
                    waiting += self._index.fill(directory)
            self._walk_seconds = time.monotonic() - started
            self._budget = max(_LEAST_BUDGET, _BUDGET_TIMES * self._walk_seconds)
            self._quiet = False

    def _without_inotify(self, error: OSError) -> None:
        if self._notify is not None:
            self._notify.close()
            self._notify = None
        self._watched, self._watch_of = {}, {}
        why = (
            "fs.inotify.max_user_watches is too small for it"
            if error.errno == errno.ENOSPC
            else why_not("inotify", os.strerror(error.errno or 0))
        )
        self._note = (
            f"the workspace can't be watched ({why}), so every command waits while all its files are compared"
        )

    # --- looking ---

    def _drain(self) -> bool:
        """Looks at everything that may have changed. False if the time was not enough."""
        if self._closed:
            return False
        if self.is_away():
            return True  # events wait until it is back
        if self._notify is None:
            return self._walk_within_budget()
        dirty, lost = self._names(self._notify.read())
        if lost:
            self._walk()
        linked = self._index.linked
        for path in (*dirty, *(linked if len(linked) <= COMPARED_AT_ONCE else ())):
            self._look(path)
        return self._is_watching() or self._walk_within_budget()

    def _compare(self, known: Iterable[str]) -> None:
        """Looks at files that may have changed without an event."""
        if len(self._index) > COMPARED_AT_ONCE:
            self._sweep.start()
            moved = [path for path in known if self._index.get(path) is not None]
        else:
            moved = [path for directory in self._index.directories() for path in self._index.moved(directory)]
        for path in moved:
            self._look(path)

    def _is_watching(self) -> bool:
        """Whether inotify is in use; not after the limit of watches was reached."""
        return self._notify is not None

    def _names(self, events: Sequence[Event]) -> tuple[dict[str, None], bool]:
        """The paths to look at, and whether events were lost."""
        dirty: dict[str, None] = {}
        lost = False
        for event in events:
            directory = self._watched.get(event.watch)
            if event.mask & IN_Q_OVERFLOW:
                lost = True
            elif directory is None:
                continue
            elif event.mask & IN_IGNORED:
                self._unwatched(event.watch, directory)
            elif event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT):
                lost = lost or directory in self._roots
            elif event.mask & CHANGES and event.name:
                self._add_name(dirty, directory, event.name)
        return dirty, lost

    def _add_name(self, dirty: dict[str, None], directory: str, name: str) -> None:
        if _is_skipped(directory, self._roots):
            entry = self._index.get(directory)
            if entry is not None:
                self._note_change(PathChange(directory, entry, entry))
        else:
            dirty[f"{directory}/{name}"] = None

    def _look(self, path: str) -> None:
        """Compares one path with the index. An event may have the old name of a directory that was moved: where a
        link is in its place now, that name leads to what belongs to another path."""
        if not self._is_directory(path.rpartition("/")[0]):
            return
        now, before = entry_of(path), self._index.get(path)
        if before is not None and before.is_directory and now is not None and not _is_still(before, now):
            self._forget(path)
            before = None
        if now is None:
            if before is not None and is_gone(path):
                self._forget(path)
            return
        self._put(path, before, now)
        if now.is_directory and path not in self._watch_of:
            self._scan(path)

    def _is_directory(self, path: str) -> bool:
        entry = self._index.get(path)
        return path in self._roots or (entry is not None and entry.is_directory)

    def _put(self, path: str, before: IndexEntry | None, now: IndexEntry) -> None:
        if before is None or not before.same(now):
            self._index.put(path, now)
            self._note_change(PathChange(path, before, now))

    def _forget(self, path: str) -> None:
        """A path and all below it are gone."""
        for gone, entry in self._index.remove(path):
            self._note_change(PathChange(gone, entry, None))
            if entry.is_directory:
                watch = self._watch_of.pop(gone, None)
                # A directory that was moved keeps its watch, perhaps under its new name already.
                if watch is not None and self._watched.get(watch) == gone:
                    del self._watched[watch]
                    if self._notify is not None:
                        self._notify.remove(watch)

    def _walk_within_budget(self) -> bool:
        self._until = time.monotonic() + self._budget
        self._walk()
        self._until = float("inf")
        return self._whole

    def _walk(self) -> None:
        """Compares everything with the index, and watches every directory that is not watched yet."""
        self._whole = True
        for root in self._roots:
            self._scan(root)

    def _scan(self, top: str) -> None:
        waiting, count = [top], 0
        while waiting:
            directory = waiting.pop()
            self._add_watch(directory)
            if not self._is_looked_into(directory):
                continue
            known = set(self._index.names(directory))
            for path, now in _listed(directory):
                known.discard(path.rpartition("/")[2])
                if self._take(path, now):
                    waiting.append(path)
                count += 1
                if count % _CHECK_EVERY == 0 and (self._closed or time.monotonic() > self._until):
                    self._whole = False
                    return
            waiting += self._not_listed(f"{directory}/{name}" for name in known)

    def _not_listed(self, paths: Iterable[str]) -> Iterator[str]:
        """Names that a scan did not find: most are gone. A directory that may not be listed still has its own."""
        for path in paths:
            now = entry_of(path)
            if now is not None:
                if self._take(path, now):
                    yield path
            elif is_gone(path):
                self._forget(path)

    def _take(self, path: str, now: IndexEntry) -> bool:
        """Puts what a scan found into the index. True for a directory, which is scanned next."""
        before = self._index.get(path)
        if before is not None and before.is_directory and not _is_still(before, now):
            self._forget(path)
            before = None
        self._put(path, before, now)
        if before is not None and before.mtime_ns != now.mtime_ns and _is_skipped(path, self._roots):
            self._index.put(path, now)  # a name in it is new or gone: all that a walk can tell
            self._note_change(PathChange(path, now, now))
        return now.is_directory

    def _is_looked_into(self, directory: str) -> bool:
        return not _is_skipped(directory, self._roots) and directory not in self._own

    def _add_watch(self, directory: str) -> None:
        if self._notify is None or directory in self._own:
            return
        try:
            watch = self._notify.add(directory)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                self._without_inotify(error)
            return  # gone meanwhile, or not readable
        self._watched[watch] = directory
        self._watch_of[directory] = watch

    def _unwatched(self, watch: int, directory: str) -> None:
        del self._watched[watch]
        if self._watch_of.get(directory) == watch:
            del self._watch_of[directory]

    # --- the log ---

    def _note_change(self, change: PathChange) -> None:
        if not self._quiet:
            self._log.append(change)

    def _trim(self) -> None:
        oldest = min((mark.position for mark in self._marks), default=self._dropped + len(self._log))
        if oldest > self._dropped:
            del self._log[: oldest - self._dropped]
            self._dropped = oldest


def _inside(root: str, other: str) -> bool:
    return root != other and is_below(root, other)


def _is_skipped(directory: str, roots: Sequence[str]) -> bool:
    return os.path.basename(directory) in SKIPPED and directory not in roots


def _is_still(before: IndexEntry, now: IndexEntry | None) -> bool:
    return now is not None and now.is_directory and (now.device, now.inode) == (before.device, before.inode)


def _counts(change: PathChange) -> bool:
    """Whether a path is different in the end: one that was made and removed again has not changed."""
    if change.before is None or change.after is None:
        return change.before is not change.after
    return change.is_inside or not change.before.same(change.after)


def _listed(directory: str) -> Iterator[tuple[str, IndexEntry]]:
    try:
        with os.scandir(directory) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    yield f"{directory}/{entry.name}", IndexEntry.of(entry.stat(follow_symlinks=False))
    except OSError:
        return
