"""The embedded store of outputs: large ones as files, small ones as rows, one SQLite index over both.

    outputs-1/          0700, in the user's cache directory, shared by all processes of the user
    ├── lock            held while the index is opened or replaced
    ├── index.db        outputs (ref id, session, card, age) and blobs (content, once for all who have it)
    └── files/          the content of large blobs, under names that only the index knows

A file is complete before its row exists, and locked by its writer until then. So a process that is killed leaves at
most a file without a row, and the collector removes files that have neither a row nor a lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gripfast.errors import Internal, NotFound
from gripfast.host.kernel.regular import READ_FLAGS
from gripfast.host.program.places import cache_directory
from gripfast.host.stores.collector import Collector
from gripfast.host.stores.database import Database, closing_fd
from gripfast.records import dataclass

if TYPE_CHECKING:
    from gripfast.host.search.line_search import LineSearch

QUOTA = 4 * 1024**3
TTL = 7 * 24 * 3600.0

_SMALL = 256 * 1024  # bytes up to which a row is faster than a file
_SAMPLE = 64 * 1024  # bytes of head and of tail in the key by which equal files find each other
_PIECE = 1024 * 1024
_STRAY_AGE = 60.0  # seconds: a writer locks its file right after making it
_TOMBSTONES = 10_000
_REF = r"[0-9a-f]{16}"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS blobs(
    id INTEGER PRIMARY KEY, key BLOB NOT NULL, size INTEGER NOT NULL, name TEXT, data BLOB);
CREATE INDEX IF NOT EXISTS blobs_by_key ON blobs(key);
CREATE TABLE IF NOT EXISTS outputs(
    id TEXT PRIMARY KEY, session TEXT NOT NULL, blob INTEGER NOT NULL, created REAL NOT NULL, card BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS outputs_by_age ON outputs(created);
CREATE INDEX IF NOT EXISTS outputs_by_blob ON outputs(blob);
CREATE TABLE IF NOT EXISTS expired(id TEXT PRIMARY KEY, session TEXT NOT NULL, at REAL NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A found output; `name` is its file's, None for a row."""

    id: str
    size: int
    card: bytes
    blob: int
    name: str | None


class EmbeddedStore:
    """Outputs on this machine, for all processes of one user. Opened on first use: making one can't fail."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        quota: int = QUOTA,
        ttl: float = TTL,
        patience: float = 2.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._directory = (directory or cache_directory()) / "outputs-1"
        what = "the output cache"
        self._index = Database(self._directory, _SCHEMA, what=what, patience=patience, folders=["files"])
        self._quota = quota
        self._ttl = ttl
        self._now = now
        self._collector = Collector(self.collect, every=300.0, or_bytes=quota // 16)

    def writer(self, session: str) -> BlobWriter:
        self._index.open()
        return BlobWriter(self, session, self._directory / "files", self._quota)

    def find(self, session: str, ref_id: str) -> StoredBlob:
        if not re.fullmatch(_REF, ref_id):
            raise unknown_ref(ref_id)
        with self._index.reading() as db:
            row = db.execute(
                "SELECT b.size, o.card, b.id, b.name, o.created FROM outputs o JOIN blobs b ON b.id = o.blob"
                " WHERE o.id = ? AND o.session = ?",
                (ref_id, session),
            ).fetchone()
            gone = "SELECT 1 FROM expired WHERE id = ? AND session = ?"
            if row is None and db.execute(gone, (ref_id, session)).fetchone() is None:
                raise unknown_ref(ref_id)
        if row is None or row[4] + self._ttl < self._now():
            raise expired_ref(ref_id, self._ttl)
        return StoredBlob(ref_id, *row[:4])

    def read(self, stored: StoredBlob, start: int, size: int) -> bytes:
        if stored.name is None:
            return self._read_row(stored, start, size)
        with self.failures_as_internal(), closing_fd(self._open(stored)) as fd:
            data = b""
            while len(data) < size and (piece := os.pread(fd, size - len(data), start + len(data))):
                data += piece
            return data

    def search(
        self,
        stored: StoredBlob,
        pattern: str,
        *,
        size: int,
        longest_line: int,
        regex: bool,
        before: int,
        after: int,
        max_matches: int,
    ) -> LineSearch:
        from gripfast.host.search.line_search import (  # noqa: PLC0415 - few sessions search what they stored
            LONGEST_LINE,
            LineSearch,
            Query,
            check_pattern,
        )

        check_pattern(pattern)
        query = Query(pattern, regex, before, after, max_matches)
        if stored.name is not None and size == stored.size and longest_line <= LONGEST_LINE:
            return LineSearch(query, lambda start: self._open_at(stored, start))
        return LineSearch(query, lambda start: self._pieces(stored, start, size))

    def collect(self) -> None:
        """Remove what is too old, the oldest of what is too much, and what killed processes left behind."""
        with self._index.writing() as db:
            self._expire(db)
            unused = "SELECT id, name FROM blobs WHERE id NOT IN (SELECT blob FROM outputs)"
            names = [name for _, name in db.execute(unused).fetchall() if name]
            db.execute("DELETE FROM blobs WHERE id NOT IN (SELECT blob FROM outputs)")
        with self.failures_as_internal():
            for name in names:
                (self._directory / "files" / name).unlink(missing_ok=True)
            self._sweep()
        with self._index.reading() as db:
            db.execute("PRAGMA incremental_vacuum").fetchall()

    def close(self) -> None:
        self._collector.close()
        self._index.close()

    def failures_as_internal(self) -> AbstractContextManager[None]:
        """Failures of disk and database in words that name no path."""
        return self._index.failures_as_internal()

    # -- committing: called by BlobWriter

    def commit_row(self, session: str, data: bytes, card: bytes) -> str:
        key = b"row" + hashlib.sha256(data).digest()
        with self._index.writing() as db:
            found = db.execute("SELECT id FROM blobs WHERE key = ?", (key,)).fetchone()
            blob = found[0] if found else _insert_blob(db, key, len(data), None, data)
            return self._insert_output(db, session, blob, card, len(data))

    def commit_file(self, session: str, fd: int, size: int, name: str, card: bytes) -> str:
        """Point to an equal file that is there already, else to this one."""
        key = _file_key(fd, size)
        twin = self._twin(fd, size, key)
        with self._index.writing() as db:
            if twin and not db.execute("SELECT 1 FROM blobs WHERE id = ?", (twin.blob,)).fetchone():
                twin = None
            blob = twin.blob if twin else _insert_blob(db, key, size, name, None)
            ref = self._insert_output(db, session, blob, card, size)
        if twin:
            (self._directory / "files" / name).unlink(missing_ok=True)
        return ref

    def _insert_output(self, db: sqlite3.Connection, session: str, blob: int, card: bytes, size: int) -> str:
        ref = secrets.token_hex(8)
        db.execute("INSERT INTO outputs VALUES (?, ?, ?, ?, ?)", (ref, session, blob, self._now(), card))
        self._collector.added(size)
        return ref

    def _twin(self, fd: int, size: int, key: bytes) -> StoredBlob | None:
        with self._index.reading() as db:
            rows = db.execute("SELECT id, name FROM blobs WHERE key = ? LIMIT 4", (key,)).fetchall()
        for blob, name in rows:
            candidate = StoredBlob("", size, b"", blob, name)
            with suppress(NotFound, OSError), closing_fd(self._open(candidate)) as other:
                if _same_bytes(fd, other, size):
                    return candidate
        return None

    # -- reading

    def _read_row(self, stored: StoredBlob, start: int, size: int) -> bytes:
        with self._index.reading() as db:
            statement = "SELECT substr(data, ?, ?) FROM blobs WHERE id = ?"
            row = db.execute(statement, (start + 1, size, stored.blob)).fetchone()
        if row is None:
            raise expired_ref(stored.id, self._ttl)
        return bytes(row[0])

    def _open(self, stored: StoredBlob) -> int:
        try:
            fd = os.open(self._directory / "files" / str(stored.name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise expired_ref(stored.id, self._ttl) from None
        if os.fstat(fd).st_size != stored.size:
            os.close(fd)
            raise NotFound(f'the output "{stored.id}" was damaged on disk; run the call again')
        return fd

    def _open_at(self, stored: StoredBlob, start: int) -> int:
        fd = self._open(stored)
        os.lseek(fd, start, os.SEEK_SET)
        return fd

    def _pieces(self, stored: StoredBlob, start: int, end: int) -> Iterator[bytes]:
        for at in range(start, end, _PIECE):
            yield self.read(stored, at, min(_PIECE, end - at))

    # -- collecting

    def _expire(self, db: sqlite3.Connection) -> None:
        total = db.execute("SELECT coalesce(sum(size), 0) FROM blobs").fetchone()[0]
        oldest = db.execute(
            "SELECT o.id, o.session, o.blob, o.created, b.size FROM outputs o LEFT JOIN blobs b ON b.id = o.blob"
            " ORDER BY o.created, o.rowid"
        ).fetchall()
        users: dict[int, int] = {}
        for _, _, blob, _, _ in oldest:
            users[blob] = users.get(blob, 0) + 1
        for ref, session, blob, created, size in oldest:
            if created + self._ttl >= self._now() and total <= self._quota:
                break
            db.execute("DELETE FROM outputs WHERE id = ?", (ref,))
            db.execute("INSERT OR REPLACE INTO expired VALUES (?, ?, ?)", (ref, session, self._now()))
            users[blob] -= 1
            total -= 0 if users[blob] else size or 0
        newest = "SELECT id FROM expired ORDER BY at DESC LIMIT ?"
        db.execute(f"DELETE FROM expired WHERE id NOT IN ({newest})", (_TOMBSTONES,))

    def _sweep(self) -> None:
        """Remove files that have no row and no writer."""
        with self._index.reading() as db:
            known = {name for (name,) in db.execute("SELECT name FROM blobs WHERE name IS NOT NULL")}
        with os.scandir(self._directory / "files") as entries:
            strays = [entry for entry in entries if entry.name not in known]
        for entry in strays:
            with suppress(FileNotFoundError):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > _STRAY_AGE:
                    self._remove_stray(entry.path, entry.name)

    def _remove_stray(self, path: str, name: str) -> None:
        fd = os.open(path, READ_FLAGS)
        with closing_fd(fd), suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self._has_row(name):  # its writer may have committed before we had the lock
                os.unlink(path)

    def _has_row(self, name: str) -> bool:
        with self._index.reading() as db:
            return db.execute("SELECT 1 FROM blobs WHERE name = ?", (name,)).fetchone() is not None


class BlobWriter:
    """An output on its way in: in memory while it is small, then in a file that this writer holds locked."""

    def __init__(self, store: EmbeddedStore, session: str, files: Path, quota: int) -> None:
        self._store = store
        self._session = session
        self._files = files
        self._quota = quota
        self._held = bytearray()
        self._size = 0
        self._fd: int | None = None
        self._name = secrets.token_hex(16)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._size + len(data) > self._quota:
            raise Internal(f"the output cache holds no more than {self._quota} bytes")
        with self._store.failures_as_internal():
            if self._fd is None and self._size + len(data) <= _SMALL:
                self._held += data
            else:
                self._to_file(data)
        self._size += len(data)

    def read(self, start: int, size: int) -> bytes:
        if self._fd is None:
            return bytes(self._held[start : start + size])
        with self._store.failures_as_internal():
            return os.pread(self._fd, size, start)

    def commit(self, card: bytes) -> str:
        with self._store.failures_as_internal():
            if self._fd is None:
                return self._store.commit_row(self._session, bytes(self._held), card)
            ref = self._store.commit_file(self._session, self._fd, self._size, self._name, card)
            os.close(self._fd)
            self._fd = None
            return ref

    def abandon(self) -> None:
        self._held.clear()
        if self._fd is not None:
            with suppress(OSError):
                (self._files / self._name).unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = None

    def __del__(self) -> None:
        self.abandon()

    def _to_file(self, data: bytes | bytearray | memoryview) -> None:
        if self._fd is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(self._files / self._name, flags, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write_all(self._fd, self._held)
            self._held.clear()
        _write_all(self._fd, data)


def unknown_ref(ref_id: str) -> NotFound:
    shown = ref_id if len(ref_id) <= 40 else f"{ref_id[:40]}..."
    return NotFound(f"no output has the ref {shown!r} in this session; refs are given where an output was cut")


def expired_ref(ref_id: str, ttl: float) -> NotFound:
    lifetime = f"{ttl / 86400:.3g} days" if ttl >= 86400 else f"{ttl:.3g} seconds"
    return NotFound(
        f'the output "{ref_id}" has expired: outputs are stored for {lifetime}, and the oldest go when the cache is '
        "full; run the call again"
    )


def _insert_blob(db: sqlite3.Connection, key: bytes, size: int, name: str | None, data: bytes | None) -> int:
    statement = "INSERT INTO blobs(key, size, name, data) VALUES (?, ?, ?, ?)"
    return int(db.execute(statement, (key, size, name, data)).lastrowid or 0)


def _file_key(fd: int, size: int) -> bytes:
    """Equal files have equal keys; files with equal keys are compared byte by byte."""
    sample = hashlib.sha256(size.to_bytes(8, "big"))
    sample.update(os.pread(fd, _SAMPLE, 0))
    sample.update(os.pread(fd, _SAMPLE, max(0, size - _SAMPLE)))
    return b"file" + sample.digest()


def _same_bytes(one: int, other: int, size: int) -> bool:
    return all(os.pread(one, _PIECE, at) == os.pread(other, _PIECE, at) for at in range(0, size, _PIECE))


def _write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    with memoryview(data) as rest:
        written = 0
        while written < len(rest):
            written += os.write(fd, rest[written:])
