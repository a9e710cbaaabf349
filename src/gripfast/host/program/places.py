"""Where the user's own files are kept, outside any workspace."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path
from typing import IO, Any

from gripfast.errors import Internal
from gripfast.host.program.homes import cache_home, state_home


def state_directory() -> Path:
    """Our directory for state: `gripfast` in `$XDG_STATE_HOME`, or else in `~/.local/state`."""
    return Path(state_home()) / "gripfast"


def cache_directory() -> Path:
    """Our directory for caches: `gripfast` in `$XDG_CACHE_HOME`, or else in `~/.cache`."""
    return Path(cache_home()) / "gripfast"


def private_places() -> tuple[str, ...]:
    """What no command may read, where the sandbox can prevent it: the token, and the outputs of other sessions."""
    try:
        return tuple(os.path.realpath(place) for place in (state_directory(), cache_directory()))
    except RuntimeError:  # a user without a home has nothing there
        return ()


def private_directory(path: Path) -> Path:
    """Creates a directory that only this user can enter, if it doesn't exist. Raises Internal if somebody else owns
    it."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    facts = os.lstat(path)
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise Internal(f"{str(path)!r} is not a directory of this user's own")
    if stat.S_IMODE(facts.st_mode) != 0o700:
        os.chmod(path, 0o700)
    return path


def own_command() -> list[str]:
    """The command that starts this program, for another program's configuration: its name if that is on everybody's
    PATH, and not only while a virtual environment is active; or else its path; or else the current interpreter, with
    -P so that it imports nothing from the working directory."""
    found = shutil.which("gripfast")
    own = os.path.join(os.path.dirname(sys.executable), "gripfast")
    in_environment = sys.prefix != sys.base_prefix and found == own
    if found is not None and os.path.realpath(found) == os.path.realpath(own) and not in_environment:
        return ["gripfast"]
    return [own] if os.access(own, os.X_OK) else [sys.executable, "-P", "-m", "gripfast"]


def is_directory(path: str) -> bool:
    return os.path.isdir(path)


def exists(path: str) -> bool:
    return os.path.lexists(path)


def is_pipe_or_file(stream: IO[Any]) -> bool:
    """Whether a stream is a pipe or a regular file; False if it has no descriptor."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
