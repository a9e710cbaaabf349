"""Which processes of this program run: each keeps a file locked, and the kernel releases the lock when it ends."""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from pathlib import Path

PREFIX = "server-"
"""How the names of these files begin."""

_held: dict[tuple[int, str], str] = {}
_holding = threading.Lock()


def held_lock(directory: Path) -> str | None:
    """The name of the file in a directory that this process keeps locked; None if there is none yet."""
    name = _held.get((os.getpid(), str(directory)))
    return name if name is not None and os.path.exists(f"{directory}/{name}") else None


def own_lock(directory: Path) -> str:
    """The name of the file in a directory that this process keeps locked until it ends."""
    with _holding:
        key = (os.getpid(), str(directory))
        name = held_lock(directory)
        if name is None:
            name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
            fd = os.open(directory / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _held[key] = name
        return name


def is_alive(directory: Path, name: str) -> bool:
    """Whether the process that locked a file still runs."""
    try:
        fd = os.open(directory / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
