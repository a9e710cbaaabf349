"""Cover: what every file of the workspace held, so that what a command did to it can be taken back.

Files that are as git's index has them need no copy if git has their content, and in this form. The others are
copied once in the background, those that were changed last first. What git ignores is not covered.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gripfast.host.files.tree_index import IndexEntry
from gripfast.host.files.watch import Mark, PathChange, Watch
from gripfast.host.kernel.regular import READ_FLAGS
from gripfast.host.record.calls import PathDelta
from gripfast.host.record.contents import Contents
from gripfast.host.record.shelf import RecordOptions
from gripfast.host.record.states import ABSENT, PathState, state_of

if TYPE_CHECKING:
    from gripfast.host.record.git_blobs import GitBlobs

_HASHED_AT_ONCE = 2_000  # files a command changed whose content is read before its answer; more are read afterwards
_MOST_WAITED = 10.0  # seconds the first command waits, as long as one file after the other is covered
_STALLED = 3.0  # seconds without a file after which it does not wait any longer
_LOOK_EVERY = 0.25

Stamp = tuple[int, int, int]


class Cover:
    """What is known of the files, and where their content is."""

    def __init__(self, contents: Contents, options: RecordOptions, roots: Sequence[str]) -> None:
        self._contents, self._options = contents, options
        self._roots = tuple(roots)
        self._git: list[tuple[str, GitBlobs]] = []
        self._digests: dict[str, tuple[Stamp, str]] = {}
        self._objects: dict[str, tuple[Stamp, str, GitBlobs]] = {}
        self._targets: dict[str, tuple[Stamp, str]] = {}
        self._ignored: tuple[str, ...] = ()
        self._ignored_set: frozenset[str] = frozenset()
        self._faults: dict[str, str] = {}
        self.copied: set[str] = set()
        self._done = threading.Event()
        self._steps = 0  # files looked at so far: as long as it grows, the work gets on
        self._mark: Mark | None = None
        self._closed = False
        self._threads: list[threading.Thread] = []

    # --- in the background ---

    def start(self, watch: Watch) -> None:
        self._run(lambda: self._build(watch))

    def _run(self, work: object) -> None:
        thread = threading.Thread(target=work, name="gripfast-cover", daemon=True)  # pyright: ignore[reportArgumentType] - a callable
        thread.start()
        self._threads.append(thread)

    def wait(self, seconds: float) -> bool:
        """Waits so many seconds at most. Returns whether everything is covered."""
        return not self._threads or self._done.wait(seconds)

    def wait_while_it_moves(self) -> bool:
        """Waits as long as the work gets on. Returns whether everything is covered."""
        started = moved = time.monotonic()
        steps = self._steps
        while not self.wait(_LOOK_EVERY):
            now = time.monotonic()
            if steps != self._steps:
                steps, moved = self._steps, now
            if now - started > _MOST_WAITED or now - moved > _STALLED:
                return False
        return True

    def _build(self, watch: Watch) -> None:
        try:
            from gripfast.host.record.git_blobs import GitBlobs  # noqa: PLC0415 - loaded with the first command

            self._mark = watch.mark()
            self._git = [(root, GitBlobs(root)) for root in self._roots]
            self._ignored = tuple(name for _, git in self._git for name in git.ignored())
            self._ignored_set = frozenset(name.rstrip("/") for name in self._ignored)
            entries = watch.entries()
            for root, git in self._git:
                files = {path: entry for path, entry in entries if entry.is_file and path.startswith(f"{root}/")}
                held = git.held(files)
                self._objects |= {path: (_stamp(files[path]), oid, git) for path, oid in held.items()}
            rest = [found for found in entries if found[0] not in self._objects]
            for path, entry in sorted(rest, key=lambda found: found[1].mtime_ns, reverse=True):
                if self._closed:
                    return
                self._steps += 1
                if not self.is_ignored(path):
                    self._copy(path, entry)
        finally:
            self._done.set()

    def is_ignored(self, path: str) -> bool:
        if not self._ignored_set:
            return False
        while path not in self._ignored_set:
            path = path.rpartition("/")[0]
            if not path:
                return False
        return True

    def loss(self, path: str, found: os.stat_result) -> str | None:
        """Why a file or link could not be put back if it were removed now; None if it could."""
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
        if stat.S_ISLNK(found.st_mode):
            return None if self._targets.get(path, (None, ""))[0] == stamp else "its target is not known"
        if not stat.S_ISREG(found.st_mode):
            return "a socket, pipe or device"
        blob = self._objects.get(path)
        if self._digests.get(path, (None, ""))[0] == stamp or (blob is not None and blob[0] == stamp):
            return None
        if found.st_size > self._options.largest_file:
            return f"larger than {self._options.largest_file} bytes"
        return "ignored by git" if self.is_ignored(path) else "it is not recorded"

    def _copy(self, path: str, entry: IndexEntry) -> None:
        """Keeps the content of a file, or where a link leads, if it still is what the index of names says."""
        if entry.is_link:
            with contextlib.suppress(OSError):
                self._targets[path] = (_stamp(entry), os.readlink(path))
        elif entry.is_file and self._digests.get(path, ((), ""))[0] != _stamp(entry):
            state = self._captured(path)
            if state.stamp is not None and state.digest is not None:
                self._digests[path] = (state.stamp, state.digest)

    def refresh(self, watch: Watch) -> None:
        """Before a command: takes in what changed since the last one, whoever changed it."""
        mark, now = self._mark, watch.mark()
        if mark is None:
            return  # still at the first look, which takes everything in
        for change in watch.since(mark).paths:
            if change.after is not None and not change.is_inside and not self.is_ignored(change.path):
                self._copy(change.path, change.after)
        self._mark = now

    def close(self) -> None:
        self._closed = True
        for thread in self._threads:
            thread.join()
        for _, git in self._git:
            git.close()

    # --- after a command ---

    def deltas(
        self, changes: Sequence[PathChange], *, goes_on: bool = True
    ) -> tuple[list[PathDelta], list[tuple[str, str]]]:
        """What a command did, path by path; and the paths that can't be put back, with the reason. If it has ended, a
        file that changes while this looks is somebody else's, and what the command left there is not known."""
        found: list[PathDelta] = []
        uncovered: list[tuple[str, str]] = []
        is_many = len(changes) > _HASHED_AT_ONCE
        for change in changes:
            if change.is_inside:
                uncovered.append((change.path, "not recorded"))
                continue
            before, why = (ABSENT, "") if change.before is None else self._before(change.path, change.before)
            after = ABSENT if change.after is None else self._after(change.path, change.after, is_many)
            if not goes_on and after.stamp is not None and change.after is not None:
                after = after if after.stamp == _stamp(change.after) else replace(_state(change.after), stamp=None)
            why = why or ("a socket, pipe or device" if after.kind == "other" else "")
            if why:
                uncovered.append((change.path, why))
            elif after.kind == "directory" and not os.access(change.path, os.R_OK | os.X_OK, effective_ids=True):
                uncovered.append((change.path, "you may not look into it now, so what changed inside is not known"))
            found.append(PathDelta(change.path, before, after, why))
        if is_many:
            rows = [(change.path, change.after) for change in changes if change.after is not None]
            self._run(lambda: [self._copy(path, entry) for path, entry in rows if not self._closed])
        return found, uncovered

    def _before(self, path: str, entry: IndexEntry) -> tuple[PathState, str]:
        """What was there, and why that can't be put back, if so."""
        state = _state(entry)
        if entry.is_link:
            stamp, target = self._targets.pop(path, (None, ""))
            known = stamp == _stamp(entry)
            return replace(state, target=target if known else None), "" if known else "its target was not known"
        if not entry.is_file:
            return state, "a socket, pipe or device" if state.kind == "other" else ""
        digest = self._digest(path, _stamp(entry))
        return replace(state, digest=digest), "" if digest else self._reason(path, entry)

    def _digest(self, path: str, stamp: Stamp) -> str | None:
        known = self._digests.pop(path, None)
        if known is not None and known[0] == stamp:
            return known[1]
        blob = self._objects.pop(path, None)
        if blob is None or blob[0] != stamp:
            return None
        data = blob[2].read(blob[1])
        if data is None or len(data) != stamp[1]:
            self._faults[path] = "git no longer has its content"
            return None
        return self._contents.put(data)

    def _reason(self, path: str, entry: IndexEntry) -> str:
        if path in self._faults:
            return self._faults[path]
        if entry.size > self._options.largest_file:
            return f"larger than {self._options.largest_file} bytes"
        if self.is_ignored(path):
            return "ignored by git"
        return "it was changed before a copy was made"

    def _after(self, path: str, entry: IndexEntry, is_many: bool) -> PathState:
        if entry.is_link:
            with contextlib.suppress(OSError):
                self._targets[path] = (_stamp(entry), os.readlink(path))
                return PathState("link", target=self._targets[path][1])
        if not entry.is_file or is_many:
            return _state(entry)
        state = self._captured(path)
        if state.stamp is not None and state.digest is not None:
            self._digests[path] = (state.stamp, state.digest)
        return state

    def _captured(self, path: str) -> PathState:
        """A file as it is now, its content in the store unless it is too large."""
        try:
            fd = os.open(path, READ_FLAGS)
        except OSError as error:
            if isinstance(error, PermissionError):
                self._faults[path] = "you may not read it"
            return _lstat(path)
        try:
            found = os.fstat(fd)
            state = state_of(found)
            if not stat.S_ISREG(found.st_mode) or found.st_size > self._options.largest_file:
                return state
            digest = self._contents.put_file(fd)
            self.copied.add(digest)
            same = state_of(os.fstat(fd)).stamp == state.stamp
            return replace(state, digest=digest if same else None)
        except OSError as error:
            self._faults[path] = error.strerror or "it could not be copied"
            return _lstat(path)
        finally:
            os.close(fd)


def _lstat(path: str) -> PathState:
    try:
        return state_of(os.lstat(path))
    except OSError:
        return ABSENT


def _stamp(entry: IndexEntry) -> Stamp:
    return (entry.inode, entry.size, entry.mtime_ns)


def _state(entry: IndexEntry) -> PathState:
    mode = stat.S_IMODE(entry.mode)
    if entry.is_directory:
        return PathState("directory", mode)
    if entry.is_link:
        return PathState("link")
    if not entry.is_file:
        return PathState("other", mode)
    return PathState("file", mode, size=entry.size, stamp=_stamp(entry))
