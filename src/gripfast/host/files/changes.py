"""Which files a command created, changed or deleted, and what the read guard learns from that."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping

from gripfast.host.files.guard import HASHED_BYTES, Identity, ReadLog, digest_of
from gripfast.host.files.tree_index import IndexEntry
from gripfast.host.files.watch import Mark, PathChange, Watch
from gripfast.host.files.witness import WITNESS
from gripfast.host.kernel.regular import READ_FLAGS
from gripfast.records import dataclass

MOST_RECORDED, LARGEST_RECORDED = 20, 1024 * 1024


@dataclass(frozen=True, slots=True)
class Look:
    """The state before a command: a mark of the watch, and the files that the session knows."""

    mark: Mark
    known: dict[str, Identity]


@dataclass(frozen=True, slots=True)
class Changes:
    """Real paths of files and links, sorted. `whole` is False when a walk of the workspace ran out of time."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    whole: bool = True
    note: str | None = None

    def __bool__(self) -> bool:
        return bool(self.created or self.changed or self.deleted)


def prepare(watch: Watch) -> None:
    """Before a command: waits for what must be known of the files so that its changes can be taken back."""
    witness = WITNESS.get()
    if witness is not None:
        witness.command_nears(watch)


def look(watch: Watch, reads: ReadLog) -> Look:
    """Notes the state of the workspace before a command."""
    witness = WITNESS.get()
    if witness is not None:
        witness.command_starts(watch)
    return Look(watch.mark(), _identities(seen.real for seen in reads.seen()))


def follow(watch: Watch, is_running: Callable[[], bool]) -> None:
    """Call this before starting a command that outlives the call: what it changes still belongs to the call."""
    witness = WITNESS.get()
    if witness is not None:
        witness.command_stays(watch, is_running)


def changes_since(before: Look, watch: Watch, reads: ReadLog, *, goes_on: bool = False) -> Changes:
    """What is different now, after a command has ended or while it goes on. The read guard learns the new state of
    files it had seen as they were before."""
    since = watch.since(before.mark, after_command=True, known=before.known)
    witness = WITNESS.get()
    paths, contents = since.paths, dict[str, bool]()
    if witness is not None:
        contents = witness.command_changed(since.paths, watch, goes_on=goes_on)
    else:
        paths = (*paths, *watch.hidden())
    found: dict[str, set[str]] = {"created": set(), "changed": set(), "deleted": set()}
    for change in paths:
        kind = _kind(change, contents)
        if kind is not None:
            found[kind].add(change.path)
    if not watch.is_away():
        _add_known(found, before)
    _refresh(reads, found["changed"], found["deleted"], before)
    _record_new(reads, found["created"])
    return Changes(
        tuple(sorted(found["created"])),
        tuple(sorted(found["changed"])),
        tuple(sorted(found["deleted"])),
        since.whole,
        watch.take_note(),
    )


def _kind(change: PathChange, contents: Mapping[str, bool]) -> str | None:
    """`created`, `changed` or `deleted`; None for directories and for what only got another mode or name. `contents`
    says for some files whether their content differs, since the time of a write can be set back."""
    before, after = _unless_directory(change.before), _unless_directory(change.after)
    if before is None or after is None:
        return "created" if after else "deleted" if before else None
    if not before.same_content(after) or contents.get(change.path, before.touched_only(after)):
        return "changed"
    return None


def _unless_directory(entry: IndexEntry | None) -> IndexEntry | None:
    return None if entry is None or entry.is_directory else entry


def _add_known(found: dict[str, set[str]], before: Look) -> None:
    """The files the session knows are compared in any case: they may be outside what is watched."""
    now = _identities(before.known)
    for path, then in before.known.items():
        if path not in now:
            found["deleted"].add(path)
        elif _differs(now[path], then) and path not in found["created"]:
            found["changed"].add(path)


def _identities(paths: Iterable[str]) -> dict[str, Identity]:
    files: dict[str, Identity] = {}
    for path in paths:
        try:
            files[path] = Identity.of(os.lstat(path))
        except OSError:
            continue
    return files


def _differs(now: Identity, then: Identity) -> bool:
    """Whether the content may differ. A new hard link or a chmod changes only the ctime."""
    return (now.inode, now.size, now.mtime_ns) != (then.inode, then.size, then.mtime_ns)


def _record_new(reads: ReadLog, created: set[str]) -> None:
    """Files that the session's command made count as read; many or large ones would take too long to hash."""
    for path in created if len(created) <= MOST_RECORDED else ():
        with contextlib.suppress(OSError):
            if os.lstat(path).st_size <= LARGEST_RECORDED:
                _record(reads, path)


def _refresh(reads: ReadLog, changed: set[str], deleted: set[str], before: Look) -> None:
    for path in deleted:
        reads.forget(path)
    for seen in reads.seen():
        # Changed by somebody else before the command: that stays a conflict.
        if seen.real in changed and before.known.get(seen.real) == seen.identity:
            _record(reads, seen.real)


def _record(reads: ReadLog, path: str) -> None:
    try:
        fd = os.open(path, READ_FLAGS)
    except OSError:
        return
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            reads.forget(path)  # the file was replaced by a directory, a pipe or the like
            return
        with open(fd, "rb", closefd=False) as file:
            data = file.read(HASHED_BYTES + 1)  # it may grow while it is read
    finally:
        os.close(fd)
    reads.record(path, found, digest_of(data) if len(data) <= HASHED_BYTES else None)
