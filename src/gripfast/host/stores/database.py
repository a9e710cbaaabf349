"""A SQLite database in a private directory, shared by all processes of one user."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gripfast.errors import Internal
from gripfast.host.program.places import private_directory


class Database:
    """Opened on first use: making one can't fail. Failures are reported as those of `what`, without a path. One
    that is damaged is replaced by an empty one."""

    def __init__(
        self, directory: Path, schema: str, *, what: str, patience: float = 2.0, folders: Sequence[str] = ()
    ) -> None:
        """`folders` are made beside it."""
        self.directory = directory
        self._folders = tuple(folders)
        self._schema = schema
        self._what = what
        self._patience = patience
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._suspect = False

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        with self._lock, self._watched():
            yield self._opened()

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """One transaction, whole or not at all."""
        with self._lock, self._watched():
            db = self._opened()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def open(self) -> None:
        with self._lock:
            self._opened()

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                with suppress(sqlite3.Error):
                    self._db.close()
                self._db = None

    @contextmanager
    def failures_as_internal(self) -> Generator[None, None, None]:
        """Failures of disk and database in words that name no path."""
        try:
            yield
        except sqlite3.Error as fault:
            raise Internal(f"{self._what} failed: {fault}") from fault
        except OSError as fault:
            raise Internal(f"{self._what} failed: {fault.strerror or type(fault).__name__}") from fault

    @contextmanager
    def _watched(self) -> Generator[None, None, None]:
        """A database that is damaged is looked at before it is used again."""
        try:
            with self.failures_as_internal():
                yield
        except Internal as failure:
            if _is_damage(failure.__cause__):
                self._suspect = True
                self.close()
            raise

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            with self.failures_as_internal():
                for path in (self.directory, *(self.directory / name for name in self._folders)):
                    self._make_private(path)
                with self._locked(self.directory / "lock"):
                    self._db = self._open_or_renew()
        return self._db

    def _make_private(self, path: Path) -> None:
        try:
            private_directory(path)
        except Internal:  # it names the path
            raise Internal(f"{self._what}'s directory is not a directory of this user's own") from None

    def _open_or_renew(self) -> sqlite3.Connection:
        try:
            return self._connect(check=self._suspect)
        except sqlite3.DatabaseError as fault:
            if not _is_damage(fault):
                raise
        for ending in ("", "-wal", "-shm"):
            (self.directory / f"index.db{ending}").unlink(missing_ok=True)
        self._suspect = False
        return self._connect(check=False)

    def _connect(self, *, check: bool) -> sqlite3.Connection:
        path = self.directory / "index.db"
        with closing_fd(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)):
            pass  # SQLite gives its other files the mode of this one
        db = sqlite3.connect(path, timeout=self._patience, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            db.execute("PRAGMA synchronous = NORMAL")
            if check and db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("database disk image is malformed")
            db.executescript(self._schema)
        except sqlite3.Error:
            db.close()
            raise
        return db

    @contextmanager
    def _locked(self, path: Path) -> Generator[None, None, None]:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with closing_fd(fd):
            deadline = time.monotonic() + self._patience
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise Internal(f"{self._what} is locked by another process") from None
                    time.sleep(0.01)
            yield


def _is_damage(fault: BaseException | None) -> bool:
    message = str(fault)
    return isinstance(fault, sqlite3.DatabaseError) and ("malformed" in message or "not a database" in message)


@contextmanager
def closing_fd(fd: int) -> Generator[int, None, None]:
    try:
        yield fd
    finally:
        os.close(fd)
