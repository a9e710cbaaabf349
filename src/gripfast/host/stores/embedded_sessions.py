"""The embedded store of sessions: a SQLite database of this user, for all servers on this machine."""

from __future__ import annotations

import fcntl
import math
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gripfast.host.program.places import state_directory
from gripfast.host.stores.database import Database, closing_fd
from gripfast.host.stores.sessions import (
    LEASE_SECONDS,
    MOST_MESSAGES,
    SESSION_SECONDS,
    Busy,
    Found,
    Lease,
    Leased,
    Recorded,
    accepted,
    busy_with,
    stored_name,
    text_bytes,
    unfinished,
)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS epoch(name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS sessions(
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, hello BLOB NOT NULL, used REAL NOT NULL,
    fence INTEGER NOT NULL DEFAULT 0, busy TEXT NOT NULL DEFAULT '',
    holder TEXT NOT NULL DEFAULT '', until REAL NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS sessions_by_use ON sessions(used);
CREATE TABLE IF NOT EXISTS fields(
    session TEXT NOT NULL, name BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (session, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS messages(id INTEGER PRIMARY KEY, session TEXT NOT NULL, message BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS messages_by_session ON messages(session);
CREATE TABLE IF NOT EXISTS once(name TEXT PRIMARY KEY, value BLOB NOT NULL, at REAL NOT NULL, until REAL NOT NULL);
"""
_TABLES = ("fields", "messages")


class EmbeddedSessions:
    """Sessions on this machine, for all servers of one user. Opened on first use: making one can't fail."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        lease: float = LEASE_SECONDS,
        keep: float = SESSION_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        place = (directory or state_directory()) / "sessions-1"
        self._db = Database(place, _SCHEMA, what="the session store", folders=["servers"])
        self._up: dict[str, int] = {}
        self._lease = lease
        self._keep = keep
        self._now = now

    def ping(self) -> None:
        self.epoch()

    def epoch(self) -> str:
        with self._db.writing() as db:
            row = db.execute("SELECT name FROM epoch").fetchone()
            if row is None:
                row = (secrets.token_hex(8),)
                db.execute("INSERT INTO epoch VALUES (?)", row)
        return str(row[0])

    def begin(self, session: str, owner: str, hello: bytes, *, most: int) -> None:
        with self._db.writing() as db:
            self._insert(db, stored_name(session), owner, hello)
            old = db.execute("SELECT id FROM sessions WHERE used < ?", (self._now() - self._keep,)).fetchall()
            query = "SELECT id FROM sessions WHERE owner = ? ORDER BY used DESC, rowid DESC LIMIT -1 OFFSET ?"
            for (id,) in [*old, *db.execute(query, (owner, most)).fetchall()]:
                self._remove(db, id)
            db.execute("DELETE FROM once WHERE until < ?", (self._now(),))

    def find(self, session: str) -> Found | None:
        with self._db.reading() as db:
            query = "SELECT owner, hello, holder, until, used FROM sessions WHERE id = ?"
            row = db.execute(query, (stored_name(session),)).fetchone()
        if row is None or row[4] + self._keep < self._now():
            return None
        return Found(row[0], bytes(row[1]), row[2] if self._holds(row[3]) else "")

    def end(self, session: str) -> None:
        with self._db.writing() as db:
            self._remove(db, stored_name(session))

    def lease(
        self, session: str, owner: str, holder: str, doing: str, *, known: int = 0, new: bool = False
    ) -> Leased | Busy | None:
        id, now = stored_name(session), self._now()
        with self._db.writing() as db:
            if new:
                self._insert(db, id, owner, b"")
            query = "SELECT fence, busy, holder, until FROM sessions WHERE id = ? AND owner = ?"
            row = db.execute(query, (id, owner)).fetchone()
            if row is None:
                return None
            before, busy, other, until = row
            if other not in ("", holder) and self._holds(until):
                return Busy(other)
            fence = max(before, known) + 1
            changed = "UPDATE sessions SET fence = ?, busy = ?, holder = ?, until = ?, used = ? WHERE id = ?"
            db.execute(changed, (fence, f"{holder}\n{doing}", holder, now + self._lease, now, id))
            fields = None if known >= before else accepted(_fields(db, id))
        return Leased(Lease(session, holder, fence), fields, unfinished(busy, holder), known > before)

    def renew(self, lease: Lease) -> list[bytes] | None:
        id = stored_name(lease.session)
        with self._db.writing() as db:
            kept = "UPDATE sessions SET until = ? WHERE id = ? AND holder = ? AND fence = ?"
            if not db.execute(kept, (self._now() + self._lease, id, lease.holder, lease.fence)).rowcount:
                return None
            rows = db.execute("SELECT message FROM messages WHERE session = ? ORDER BY id", (id,)).fetchall()
            if rows:
                db.execute("DELETE FROM messages WHERE session = ?", (id,))
        return [bytes(message) for (message,) in rows]

    def save(
        self,
        lease: Lease,
        changes: Mapping[str, bytes | None],
        lines: Sequence[bytes] = (),
        *,
        root: str = "",
        release: bool = False,
        unfinished: str = "",
    ) -> bool:
        """Lines are not stored: all servers of one user on one machine write the same record."""
        id = stored_name(lease.session)
        with self._db.writing() as db:
            used = "UPDATE sessions SET used = ? WHERE id = ? AND fence = ?"
            if not db.execute(used, (self._now(), id, lease.fence)).rowcount:
                return False
            for name, value in changes.items():
                if value is None:
                    db.execute("DELETE FROM fields WHERE session = ? AND name = ?", (id, text_bytes(name)))
                else:
                    db.execute("INSERT OR REPLACE INTO fields VALUES (?, ?, ?)", (id, text_bytes(name), value))
            if release:
                busy = busy_with(lease.holder, unfinished) if unfinished else ""
                db.execute("UPDATE sessions SET holder = '', busy = ?, until = 0 WHERE id = ?", (busy, id))
                db.execute("DELETE FROM messages WHERE session = ?", (id,))
        return True

    def send(self, session: str, message: bytes) -> None:
        id = stored_name(session)
        with self._db.writing() as db:
            count = db.execute("SELECT count(*) FROM messages WHERE session = ?", (id,)).fetchone()[0]
            if count < MOST_MESSAGES:
                db.execute("INSERT INTO messages(session, message) VALUES (?, ?)", (id, message))

    def recorded(self) -> list[Recorded]:
        return []

    def lines(self, session: str) -> list[bytes]:
        return []

    def put(self, name: str, value: bytes, seconds: float) -> None:
        now = self._now()
        with self._db.writing() as db:
            db.execute(
                "INSERT OR REPLACE INTO once VALUES (?, ?, ?, ?)", (stored_name(name), value, now, now + seconds)
            )

    def take(self, name: str) -> tuple[bytes, float] | None:
        with self._db.writing() as db:
            row = db.execute("SELECT value, at, until FROM once WHERE name = ?", (stored_name(name),)).fetchone()
            db.execute("DELETE FROM once WHERE name = ?", (stored_name(name),))
        if row is None or row[2] < self._now():
            return None
        return bytes(row[0]), max(0.0, self._now() - row[1])

    def announce(self, server: str) -> None:
        """The server runs as long as it has its file locked: nothing has to be said again."""
        if server in self._up:
            return
        with self._db.failures_as_internal():
            self._db.open()
            path = self._db.directory / "servers" / stored_name(server)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._up[server] = fd
        self._sweep()

    def is_up(self, server: str) -> bool:
        return server in self._up or self._is_locked(stored_name(server))

    def close(self) -> None:
        for server, fd in self._up.items():
            with suppress(OSError):
                (self._db.directory / "servers" / stored_name(server)).unlink(missing_ok=True)
            os.close(fd)
        self._up.clear()
        self._db.close()

    def _is_locked(self, name: str) -> bool:
        try:
            fd = os.open(self._db.directory / "servers" / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        with closing_fd(fd):
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def _sweep(self) -> None:
        """Removes the files of servers that are gone."""
        with suppress(OSError):
            for name in os.listdir(self._db.directory / "servers"):
                if not self._is_locked(name):
                    (self._db.directory / "servers" / name).unlink(missing_ok=True)

    def _holds(self, until: float) -> bool:
        """Whether a lease runs. One that ends too far in the future was made before the clock was set back."""
        return self._now() < until <= self._now() + self._lease and math.isfinite(until)

    def _insert(self, db: sqlite3.Connection, id: str, owner: str, hello: bytes) -> None:
        new = "INSERT OR IGNORE INTO sessions(id, owner, hello, used) VALUES (?, ?, ?, ?)"
        db.execute(new, (id, owner, hello, self._now()))

    def _remove(self, db: sqlite3.Connection, id: str) -> None:
        db.execute("DELETE FROM sessions WHERE id = ?", (id,))
        for table in _TABLES:
            db.execute(f"DELETE FROM {table} WHERE session = ?", (id,))


def _fields(db: sqlite3.Connection, id: str) -> dict[str, bytes]:
    rows = db.execute("SELECT name, value FROM fields WHERE session = ?", (id,)).fetchall()
    return {bytes(name).decode("utf-8", "surrogatepass"): bytes(value) for name, value in rows}
