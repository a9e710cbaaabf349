"""Which files a command created, changed or deleted: two looks at the workspace, each held to a few milliseconds."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.host.guard import HASHED_BYTES, Identity, ReadLog, digest_of

BUDGET_SECONDS = 0.05
# Not looked into: what tools keep there is not what a command was asked to do.
SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
_CHECK_EVERY = 256


@dataclass(frozen=True, slots=True)
class Look:
    """Files and what they were. `whole`: all of the workspace, not only the files the session knows."""

    files: dict[str, Identity]
    whole: bool
    spent: float


@dataclass(frozen=True, slots=True)
class Changes:
    """Real paths, sorted. `whole` is False when only the files the session had read or written were compared."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    whole: bool = True

    def __bool__(self) -> bool:
        return bool(self.created or self.changed or self.deleted)


def look(roots: Sequence[str], reads: ReadLog) -> Look:
    """The workspace before a command."""
    started = time.monotonic()
    files = _walk(roots, started + BUDGET_SECONDS / 2)
    known = _identities(seen.real for seen in reads.seen())
    return Look({**(files or {}), **known}, files is not None, time.monotonic() - started)


def changes_since(before: Look, roots: Sequence[str], reads: ReadLog) -> Changes:
    """What is different now. The read guard learns the new state of files it had seen as they were before."""
    until = time.monotonic() + BUDGET_SECONDS - before.spent
    after = _walk(roots, until) if before.whole else None
    known = {seen.real for seen in reads.seen()} & set(before.files)
    now = {**(after or {}), **_identities(known)}
    then = before.files if after is not None else {path: before.files[path] for path in known}
    found = Changes(
        tuple(sorted(now.keys() - then.keys())),
        tuple(sorted(path for path in now.keys() & then.keys() if _differs(now[path], then[path]))),
        tuple(sorted(then.keys() - now.keys())),
        after is not None,
    )
    _refresh(reads, found, before)
    return found


def _walk(roots: Sequence[str], until: float) -> dict[str, Identity] | None:
    """Every regular file and link below the roots; None when the time was not enough."""
    files: dict[str, Identity] = {}
    waiting = list(roots)
    count = 0
    while waiting:
        for entry in _entries(waiting.pop()):
            count += 1
            if count % _CHECK_EVERY == 0 and time.monotonic() > until:
                return None
            if not entry.is_dir(follow_symlinks=False):
                _add(files, entry)
            elif entry.name not in SKIPPED:
                waiting.append(entry.path)
    return files


def _entries(directory: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as found:
            yield from found
    except OSError:
        return


def _add(files: dict[str, Identity], entry: os.DirEntry[str]) -> None:
    try:
        files[entry.path] = Identity.of(entry.stat(follow_symlinks=False))
    except OSError:
        return


def _identities(paths: Iterable[str]) -> dict[str, Identity]:
    files: dict[str, Identity] = {}
    for path in paths:
        try:
            files[path] = Identity.of(os.lstat(path))
        except OSError:
            continue
    return files


def _differs(now: Identity, then: Identity) -> bool:
    """A new link or a chmod moves the ctime alone: the content is the same."""
    return (now.inode, now.size, now.mtime_ns) != (then.inode, then.size, then.mtime_ns)


def _refresh(reads: ReadLog, found: Changes, before: Look) -> None:
    for path in found.deleted:
        reads.forget(path)
    for seen in reads.seen():
        # Changed by somebody else before the command: that stays a conflict.
        if seen.real in found.changed and before.files.get(seen.real) == seen.identity:
            _record(reads, seen.real)


def _record(reads: ReadLog, path: str) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            reads.forget(path)  # a pipe or the like now stands where the file was
            return
        data = file.read(HASHED_BYTES + 1)  # it may grow while it is read
    reads.record(path, found, digest_of(data) if len(data) <= HASHED_BYTES else None)
