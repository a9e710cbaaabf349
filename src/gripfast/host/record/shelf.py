"""The records of all sessions on disk: where they are, which is the newest of a workspace, how much they may take."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from pathlib import Path

from gripfast.host.kernel.folders import folders
from gripfast.host.program.places import private_directory, state_directory
from gripfast.records import dataclass

_SAFE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}\Z"
_UNFINISHED = "unfinished"
_TAIL = 64 * 1024
# Quotes inside texts are escaped in the file, so this is never a part of one.
_TIME = rb',"time":([0-9]+(?:\.[0-9]+)?),'
_DAY = 86_400.0
_TIDY_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """What a record may take: bytes of all sessions together, days, and bytes of one file."""

    quota: int = 2 * 1024**3
    days: float = 14
    largest_file: int = 64 * 1024**2


def workspace_directory(root: str) -> Path:
    """Where the records of one workspace are, by the real path of its first root."""
    return state_directory() / "record" / hashlib.sha256(os.fsencode(root)).hexdigest()[:24]


def session_directory(root: str, session: str) -> Path:
    name = session if re.match(_SAFE, session) else hashlib.sha256(session.encode()).hexdigest()[:32]
    return workspace_directory(root) / name


def place_of(root: str, session: str) -> str:
    """What names a session's record among all of them."""
    return "/".join(session_directory(root, session).parts[-2:])


def journals_directory(root: str) -> Path:
    """Where the changes of several files are that somebody has begun and not ended."""
    return workspace_directory(root) / "journals"


def make_workspace_directory(root: str) -> Path:
    private_directory(state_directory())
    private_directory(state_directory() / "record")
    return private_directory(workspace_directory(root))


def make_session_directory(root: str, session: str) -> Path:
    make_workspace_directory(root)
    return private_directory(session_directory(root, session))


def sessions_of(root: str) -> list[str]:
    """The recorded sessions of a workspace, the newest last."""
    found = workspace_directory(root)
    names = [entry.parent for entry in found.glob("*/calls.jsonl")] if found.is_dir() else []
    return [entry.name for entry in sorted(names, key=last_used)]


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """The record of one session of this user. `place` names it among all of them."""

    place: str
    session: str
    roots: tuple[str, ...]
    last_used: float

    @property
    def file(self) -> Path:
        return state_directory() / "record" / self.place / "calls.jsonl"


def all_sessions(most: int = 500) -> list[RecordedSession]:
    """The recorded sessions of all workspaces, the newest first."""
    files = sorted((state_directory() / "record").glob("*/*/calls.jsonl"), key=_changed, reverse=True)
    return [found for file in files[:most] if (found := recorded_session(f"{file.parts[-3]}/{file.parts[-2]}"))]


def recorded_session(place: str) -> RecordedSession | None:
    """The session with this `place`; None if there is none, or its record can't be read."""
    workspace, _, name = place.partition("/")
    if not re.match(_SAFE, workspace) or not re.match(_SAFE, name):
        return None
    file = state_directory() / "record" / workspace / name / "calls.jsonl"
    try:
        with open(file, "rb") as opened:
            head = json.loads(opened.readline(1 << 16))
        roots = tuple(map(str, head["roots"]))
        return RecordedSession(place, str(head["session"]), roots, _changed(file))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def bytes_of_all() -> int:
    """What the records of all sessions take on disk."""
    return _size(state_directory() / "record")


def _changed(file: Path) -> float:
    """When a file was last changed. Commands under Landlock can set every time of it but this one."""
    try:
        return file.stat().st_ctime
    except OSError:
        return 0.0


def last_used(directory: Path) -> float:
    """When the last call of a session began, as its record says: commands can't write there, but may be able to set
    the times of files. Without a call, when the record was made."""
    file = directory / "calls.jsonl"
    try:
        with open(file, "rb") as opened:
            opened.seek(max(0, os.fstat(opened.fileno()).st_size - _TAIL))
            times = re.findall(_TIME, opened.read())
    except OSError:
        return 0.0
    return float(times[-1]) if times else _changed(file)


def hold(directory: Path) -> int:
    """Says that a session's record is in use, as long as the descriptor is open."""
    fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return fd


def mark_unfinished(directory: Path) -> None:
    """Says that a command runs on whose changes are still to be recorded."""
    (directory / _UNFINISHED).touch(mode=0o600)


def mark_finished(directory: Path) -> None:
    """At an orderly end: everything is recorded."""
    (directory / _UNFINISHED).unlink(missing_ok=True)


def was_cut_off(directory: Path) -> bool:
    """Whether a session ended, by a kill or a crash, before the changes of its last commands were recorded."""
    if not (directory / _UNFINISHED).exists():
        return False
    fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # it goes on
    finally:
        os.close(fd)
    return True


def tidying_is_due(options: RecordOptions) -> bool:
    """Whether the records were not tidied lately with the same options. Looking at them all takes longer than a short
    session; one that writes much tidies anyway."""
    stamp = _stamp()
    try:
        since = time.time() - stamp.stat().st_mtime
        return not 0 <= since < _TIDY_SECONDS or stamp.read_text(encoding="utf-8") != repr(options)
    except (OSError, ValueError):
        return True


def _stamp() -> Path:
    return state_directory() / "record" / "tidied"


def tidy(options: RecordOptions) -> int:
    """Removes the records that are too old, then the oldest until the rest fits; none that is in use. Returns the
    bytes that are left."""
    directories = [file.parent for file in (state_directory() / "record").glob("*/*/calls.jsonl")]
    sizes = {directory: _size(directory) for directory in directories}
    total = sum(sizes.values())
    for directory in sorted(directories, key=last_used):
        is_old = time.time() - last_used(directory) > options.days * _DAY
        if (is_old or total > options.quota) and _removed(directory):
            total -= sizes[directory]
    _stamp().touch(mode=0o600)
    _stamp().write_text(repr(options), encoding="utf-8")
    return total


def _removed(directory: Path) -> bool:
    fd = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(fd)
    return not directory.exists()


def _size(directory: Path) -> int:
    total = 0
    for above, _, names in folders(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(above, name)).st_size
    return total
