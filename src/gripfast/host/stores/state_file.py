"""Small files of state between processes, one for each name and place."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from types import TracebackType

from gripfast.errors import Conflict
from gripfast.host.program.places import private_directory, state_directory

PATIENCE = 30.0


class StateFile:
    """State under a name, locked while it is in use: whoever comes second waits, for a while."""

    def __init__(self, name: str, *, place: str) -> None:
        self._name = name
        self._directory = private_directory(state_directory() / "sessions")
        self.id = f"{name}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}"
        self._path = self._directory / f"{self.id}.json"
        self._lock = -1

    def __enter__(self) -> StateFile:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._lock = os.open(self._directory / f"{self.id}.lock", flags, 0o600)
        deadline = time.monotonic() + PATIENCE
        while not self._locked():
            if time.monotonic() > deadline:
                os.close(self._lock)
                raise Conflict(f"session {self._name!r} is busy with another call; try again or use another name")
            time.sleep(0.02)
        return self

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def read(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def write(self, text: str) -> None:
        """The old text or the new one, whatever happens meanwhile."""
        fd, temporary = tempfile.mkstemp(dir=self._directory, prefix=f".{self.id}.")
        try:
            with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            os.replace(temporary, self._path)
        except OSError:
            os.unlink(temporary)
            raise
