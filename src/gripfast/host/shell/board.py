"""The background shells of all sessions of this user, as files in the state directory, for a page in another process.

    board = Board(session, root)             one session's side; `Shells` keeps it up to date
    board.begins("bash_1", "npm start")
    board.shows("bash_1", shell.size, read)  copies the end of the output, while somebody looks
    board.wants_end("bash_1")                whether a person asked to end it
    board.ends("bash_1", "exit code 0")

    shells = RunningShells()                 the other side
    shells.all()                             every background shell of sessions that run, the newest first
    shells.output(id)                        the end of what it printed
    shells.end(id)                           asks its session to end it

There is no socket, because Landlock does not keep a command from connecting to one. The sandbox keeps commands out of
the state directory, so they can neither read these files nor ask for an end. Each session's process holds a lock;
what a process that died has left is removed by the next one. The whole output stays in the session's unnamed file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

from gripfast.errors import Internal, NotFound
from gripfast.host.kernel.regular import read_regular
from gripfast.host.program.alive import PREFIX, is_alive, own_lock
from gripfast.host.program.places import private_directory, state_directory
from gripfast.records import dataclass

TAIL = 64 << 10
"""Bytes of an output that are copied for those who look."""
_BEFORE_TAIL = 16 << 10  # read before them, so that a secret that begins there is found whole
_COMMAND = 4000  # characters of a command
_LOOKED = "looked"  # its time says when somebody looked last
_LOOKING_SECONDS = 5.0
_RECENT = 60.0  # seconds within which a new lock file may not be locked yet
_ENDED_MOST = 10  # ended shells of one session that stay listed
_ID = r"[0-9a-f]{16}-[a-z]+_[0-9]{1,6}\Z"

ReadAt: TypeAlias = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True)
class RunningShell:
    """A background shell of some session. Times are seconds since 1970; `how` says how it ended."""

    id: str
    session: str
    root: str
    name: str
    command: str
    started_at: float
    pid: int
    owner: str
    ended_at: float | None = None
    how: str = ""


def _directory() -> Path:
    return state_directory() / "running"


class Board:
    """The background shells of one session, for others to see. If the state directory can't be used, nobody sees
    them, and nothing else is different."""

    def __init__(self, session: str, root: str, redact: Callable[[str], str] | None = None) -> None:
        self._session, self._root = session, root
        self._redact = redact
        self._token = secrets.token_hex(8)
        self._shown: dict[str, RunningShell] = {}
        self._copied: dict[str, int] = {}

    def begins(self, name: str, command: str) -> None:
        """A shell begins to run in the background."""
        with contextlib.suppress(OSError, RuntimeError, Internal):
            private_directory(state_directory())
            directory = private_directory(_directory())
            if not self._shown:
                tidy()
            owner, id = own_lock(directory), f"{self._token}-{name}"
            text = command if self._redact is None else self._redact(command)
            one = RunningShell(id, self._session, self._root, name, text[:_COMMAND], time.time(), os.getpid(), owner)
            self._shown[name] = one
            _put(f"{id}.json", json.dumps(asdict(one)).encode())

    def shows(self, name: str, size: int, read: ReadAt, *, always: bool = False) -> None:
        """Copies the end of an output that has grown, if somebody looks, or `always`."""
        one = self._shown.get(name)
        if one is None or self._copied.get(name) == size or not (always or _somebody_looks()):
            return
        with contextlib.suppress(OSError):
            start = max(0, size - TAIL - _BEFORE_TAIL)
            data = read(start, size - start)
            if self._redact is not None:
                data = self._redact(data.decode("utf-8", "replace")).encode("utf-8", "replace")
            _put(f"{one.id}.out", b"%d\n%s" % (size, data[-TAIL:]))
            self._copied[name] = size

    def wants_end(self, name: str) -> bool:
        """Whether a person asked to end a shell."""
        one = self._shown.get(name)
        return one is not None and os.path.lexists(_directory() / f"{one.id}.end")

    def ends(self, name: str, how: str) -> None:
        """A shell has ended. The last few stay listed until the session ends."""
        one = self._shown.get(name)
        if one is None or one.ended_at is not None:
            return
        with contextlib.suppress(OSError):
            self._shown[name] = replace(one, ended_at=time.time(), how=how)
            _put(f"{one.id}.json", json.dumps(asdict(self._shown[name])).encode())
            _remove(f"{one.id}.end")
            over = [known for known in self._shown.values() if known.ended_at is not None]
            for old in over[:-_ENDED_MOST]:
                self._forget(old)

    def _forget(self, one: RunningShell) -> None:
        _remove(*_files_of(one.id))
        self._shown.pop(one.name, None)
        self._copied.pop(one.name, None)

    def close(self) -> None:
        """The session ends: nothing of it stays."""
        for one in list(self._shown.values()):
            self._forget(one)


class RunningShells:
    """The background shells of all sessions, as another process of this user sees them."""

    def all(self) -> list[RunningShell]:
        """The shells of sessions that run, the newest first."""
        directory = _directory()
        found = (_read(name) for name in _names() if name.endswith(".json"))
        alive: dict[str, bool] = {}
        shells: list[RunningShell] = []
        for one in found:
            if one is not None and alive.setdefault(one.owner, is_alive(directory, one.owner)):
                shells.append(one)
        return sorted(shells, key=lambda one: one.started_at, reverse=True)

    def output(self, id: str) -> tuple[int, bytes]:
        """How many bytes a shell has printed, and the last of them as copied so far. Asks its session to go on
        copying."""
        self.looks()
        data = _load(f"{id}.out") if re.match(_ID, id) else None
        size, _, tail = (data or b"0\n").partition(b"\n")
        return (int(size), tail) if size.isdigit() else (0, b"")

    def looks(self) -> None:
        """Says that somebody looks, for the next few seconds."""
        with contextlib.suppress(OSError, Internal):
            private_directory(state_directory())
            place = private_directory(_directory()) / _LOOKED
            fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
            with open(fd, "wb"):
                os.utime(fd)

    def end(self, id: str) -> RunningShell:
        """Asks the session of a shell to end it and everything it started. Raises NotFound if it does not run."""
        one = _read(f"{id}.json") if re.match(_ID, id) else None
        if one is None or one.ended_at is not None or not is_alive(_directory(), one.owner):
            raise NotFound("this shell has ended")
        _put(f"{id}.end", b"")
        return one

    def stamp(self) -> object:
        """Differs when the list or an output may have changed, except if a session died."""
        stamps: list[tuple[str, int]] = []
        for name in sorted(_names()):
            if name.endswith((".json", ".out")):
                with contextlib.suppress(OSError):
                    stamps.append((name, os.lstat(_directory() / name).st_mtime_ns))
        return stamps


def tidy() -> None:
    """Removes what processes that died have left."""
    directory = _directory()
    names = _names()
    known = {name: one for name in names if name.endswith(".json") and (one := _read(name)) is not None}
    for one in known.values():
        if not is_alive(directory, one.owner):
            _remove(*_files_of(one.id), one.owner)
    ids = {one.id for one in known.values()}
    for name in names:
        is_lock = name.startswith(PREFIX)
        stays = is_alive(directory, name) if is_lock else name == _LOOKED or name.partition(".")[0] in ids
        if not stays and _age(name) > _RECENT:
            _remove(name)


def _age(name: str) -> float:
    try:
        return time.time() - os.lstat(_directory() / name).st_mtime
    except OSError:
        return 0.0


def _somebody_looks() -> bool:
    try:
        return abs(time.time() - os.lstat(_directory() / _LOOKED).st_mtime) < _LOOKING_SECONDS
    except OSError:
        return False


def _files_of(id: str) -> tuple[str, ...]:
    return f"{id}.json", f"{id}.out", f"{id}.end"


def _names() -> list[str]:
    try:
        return os.listdir(_directory())
    except OSError:
        return []


def _put(name: str, data: bytes) -> None:
    """Replaces a file at once."""
    temporary = _directory() / f".{secrets.token_hex(8)}"
    try:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(fd, "wb") as file:
            file.write(data)
        os.replace(temporary, _directory() / name)
    except OSError:
        _remove(temporary.name)
        raise


def _load(name: str) -> bytes | None:
    try:
        return read_regular(f"{_directory()}/{name}", 2 * TAIL)
    except OSError:
        return None


def _read(name: str) -> RunningShell | None:
    try:
        value: Any = json.loads(_load(name) or b"")
        one = RunningShell(**{field: value[field] for field in RunningShell.__slots__})
    except (ValueError, KeyError, TypeError):
        return None
    return one if re.match(_ID, one.id) and name == f"{one.id}.json" else None


def _remove(*names: str) -> None:
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(_directory() / name)
