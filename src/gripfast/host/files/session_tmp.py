"""The session's private temporary directory: one place for commands and file tools, removed with the session."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable

_SHARED = "/tmp"
_ROUNDS = 20  # each opens one more level of directories that are closed


class SessionTmp:
    """A directory made at its first use. Where commands see it as `/tmp`, so do file tools."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._path = ""
        self._remove: Callable[[], object] = lambda: None
        self.is_tmp: Callable[[], bool] = lambda: False
        """Whether commands see it as `/tmp`; set by whoever opens the session, asked when a path needs it."""

    def path(self) -> str:
        """Its real path; made if need be."""
        with self._lock:
            if not os.path.isdir(self._path):
                self._path = os.path.realpath(tempfile.mkdtemp(prefix="gripfast-"))
                self._remove = weakref.finalize(self, _remove, self._path)
            return self._path

    @property
    def real(self) -> str:
        """Its real path, or nothing while there is none."""
        return self._path

    def shown(self) -> str:
        """How commands and answers call it."""
        return _SHARED if self.is_tmp() else self.path()

    def holds(self, absolute: str) -> bool:
        """Whether a path means this directory or something in it, by either name."""
        if self._path and (absolute == self._path or absolute.startswith(f"{self._path}/")):
            return True
        return (absolute == _SHARED or absolute.startswith(f"{_SHARED}/")) and self.is_tmp()

    def remove(self) -> None:
        """Removes it with all it holds. A later use makes a new one."""
        with self._lock:
            self._remove()
            self._path = ""


def _remove(directory: str) -> None:
    """A directory that its maker closed to itself is opened, so that the next round can empty it."""
    for _ in range(_ROUNDS):
        if os.path.lexists(directory):
            shutil.rmtree(directory, onerror=lambda _, path, __: _unlock(path, directory))


def _unlock(path: str, within: str) -> None:
    """Opens what could not be removed, and the directory it is in; nothing outside of `within`."""
    for place in {path, os.path.dirname(path)} if path != within else {within}:
        with contextlib.suppress(OSError, NotImplementedError):
            os.chmod(place, 0o700, follow_symlinks=False)
