"""ReadLog: the state in which a session has last seen each file, so that it overwrites nothing it has not seen."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import asdict, replace
from typing import Any

from gripfast.errors import BinaryNotSupported, Conflict, NotRead
from gripfast.host.files.encodings import NO_TEXT, is_binary
from gripfast.host.files.hashing import digest_of
from gripfast.records import dataclass

HASHED_BYTES = 16 * 1024 * 1024  # larger files are compared by identity only
# Two changes within one tick of the file system's clock look the same. Younger files are always hashed.
_SETTLED_NS = 50_000_000
# Some file systems store times in steps of one or two seconds: vfat, HFS+, ext3, some network file systems.
_COARSE_NS = 2_500_000_000
_FINE_NS = 10_000_000  # a time that is a multiple of this may come from such a file system
_EDITS = 8  # the last ones of each file are remembered


@dataclass(frozen=True, slots=True)
class Identity:
    """What changes when a file is changed or replaced, as far as the file system tells."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Identity:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@dataclass(frozen=True, slots=True)
class Seen:
    """One file as it was when it was last read or written here. `edits` are digests of the last edits made here,
    so that one whose answer was lost is known when it is sent again."""

    real: str
    identity: Identity
    digest: str | None
    settled: bool
    lines: int | None = None
    edits: tuple[str, ...] = ()

    def still(self, identity: Identity, digest: str | None) -> bool:
        """Whether the file is what was seen: by content where that is known, else by identity. A file that somebody
        has mapped into memory may change without a new time."""
        if digest is None or self.digest is None:
            return identity == self.identity
        return digest == self.digest


def is_settled(found: os.stat_result) -> bool:
    """Whether any further change would get a different time."""
    tick = _SETTLED_NS if found.st_ctime_ns % _FINE_NS else _COARSE_NS
    return time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > tick


class ReadLog:
    """One entry per real file, however it was spelled: found by device and inode, and by real path when a file
    was replaced. Safe to share between threads. Unless `required`, it records but refuses nothing."""

    def __init__(self, *, required: bool = True) -> None:
        self.required = required
        self._lock = threading.Lock()
        self._by_path: dict[str, Seen] = {}
        self._by_inode: dict[tuple[int, int], Seen] = {}
        self._changed: set[str] = set()
        self._promised: dict[str, Future[str]] = {}
        """Digests that are still being computed. An entry is returned only when its own is there."""

    def record(
        self, real: str, found: os.stat_result, digest: str | Future[str] | None, lines: int | None = None
    ) -> None:
        """A file was read or written: this is what it is now, and how many lines it has if somebody counted."""
        identity, settled = Identity.of(found), is_settled(found)
        if isinstance(digest, Future):
            self._put(Seen(real, identity, None, settled, lines), digest)
        else:
            self._put(Seen(real, identity, digest, settled, lines))

    def _put(self, seen: Seen, promised: Future[str] | None = None) -> None:
        with self._lock:
            before = self._by_path.get(seen.real)
            if before is not None:
                self._by_inode.pop((before.identity.device, before.identity.inode), None)
                seen = replace(seen, edits=seen.edits or before.edits)
            self._by_path[seen.real] = seen
            self._by_inode[seen.identity.device, seen.identity.inode] = seen
            self._changed.add(seen.real)
            self._promised.pop(seen.real, None)
            if promised is not None:
                self._promised[seen.real] = promised

    def _whole(self, seen: Seen | None) -> Seen | None:
        """The entry with its digest, which is waited for."""
        if seen is None or seen.real not in self._promised:
            return seen
        with self._lock:
            promised = self._promised.get(seen.real) if self._by_path.get(seen.real) is seen else None
        if promised is None:
            return seen
        whole = replace(seen, digest=promised.result())
        with self._lock:
            if self._by_path.get(seen.real) is seen:
                del self._promised[seen.real]
                self._by_path[seen.real] = self._by_inode[seen.identity.device, seen.identity.inode] = whole
        return whole

    def unchanged(self, real: str, found: os.stat_result) -> Seen | None:
        """What was last seen of the file at this path, if it can't have changed since."""
        seen = self._by_path.get(real)
        same = seen if seen is not None and seen.settled and seen.identity == Identity.of(found) else None
        return self._whole(same)

    def _doubt(self, seen: Seen) -> None:
        """From now on the file counts as changed, whatever its times say, until a newer state is known."""
        with self._lock:
            if self._by_path.get(seen.real) is seen:
                doubted = replace(seen, settled=False)
                self._by_path[seen.real] = self._by_inode[seen.identity.device, seen.identity.inode] = doubted
                self._changed.add(seen.real)

    def edited(self, real: str, edit: str) -> None:
        """Remembers an edit that was made of a file; `edit` is its digest."""
        with self._lock:
            seen = self._by_path.get(real)
            if seen is not None:
                edits = (*(one for one in seen.edits if one != edit), edit)[-_EDITS:]
                marked = replace(seen, edits=edits)
                self._by_path[real] = self._by_inode[seen.identity.device, seen.identity.inode] = marked
                self._changed.add(real)

    def was_edited(self, real: str, edit: str) -> bool:
        """Whether this session has made that edit of the file at this path."""
        seen = self._by_path.get(real)
        return seen is not None and edit in seen.edits

    def find(self, real: str, identity: Identity) -> Seen | None:
        return self._whole(self._by_inode.get((identity.device, identity.inode)) or self._by_path.get(real))

    def forget(self, real: str) -> None:
        with self._lock:
            seen = self._by_path.pop(real, None)
            self._promised.pop(real, None)
            if seen is not None:
                self._by_inode.pop((seen.identity.device, seen.identity.inode), None)
                self._changed.add(real)

    def take_changes(self) -> dict[str, Seen | None]:
        """What changed since this was last asked: files by their real path, None for one that was forgotten."""
        self._keep_promises()
        with self._lock:
            changed, self._changed = self._changed, set()
            return {real: self._by_path.get(real) for real in changed}

    def _keep_promises(self) -> None:
        for real in list(self._promised):
            self._whole(self._by_path.get(real))

    def change_all(self) -> None:
        """Everything counts as changed."""
        with self._lock:
            self._changed.update(self._by_path)

    def replace(self, seen: Iterable[Seen]) -> None:
        """From now on this is what was seen, and nothing else. A negative device is one of another machine: such a
        file is known by its path and its content only."""
        with self._lock:
            self._promised.clear()
            self._by_path = {one.real: one for one in seen}
            known = (one for one in self._by_path.values() if one.identity.device >= 0)
            self._by_inode = {(one.identity.device, one.identity.inode): one for one in known}
            self._changed.clear()

    def seen(self) -> tuple[Seen, ...]:
        """Every file this session has read or written, for those who look for changes."""
        self._keep_promises()
        return tuple(self._by_path.values())

    def check(self, shown: str, real: str, found: os.stat_result, data: bytes | None) -> None:
        """NOT_READ or CONFLICT unless the file is what this session last saw. `data` is its content where known."""
        if not self.required:
            return
        identity = Identity.of(found)
        seen = self.find(real, identity)
        if seen is None and data is not None and is_binary(data):
            raise BinaryNotSupported(f"`{shown}` {NO_TEXT}")
        if seen is None:
            raise NotRead(f"`{shown}` exists but was not read in this session (`cat` does not count); read it first")
        digest = digest_of(data) if data is not None and len(data) <= HASHED_BYTES else None
        if not seen.still(identity, digest):
            self._doubt(seen)
            raise Conflict(f"`{shown}` was changed by somebody else since it was read; read it again, then redo this")

    def state(self) -> list[dict[str, Any]]:
        """Everything as plain values, to be stored between processes."""
        return [asdict(seen) for seen in self.seen()]

    def restore(self, state: list[dict[str, Any]]) -> None:
        for entry in state:
            identity, lines = Identity(**entry["identity"]), entry.get("lines")
            if lines is not None and not 0 <= lines <= identity.size + 1:
                lines = None  # no such file
            edits = tuple(entry.get("edits", ()))[-_EDITS:]
            self._put(Seen(entry["real"], identity, entry["digest"], entry["settled"], lines, edits))
