"""The last look of a session, by a separate program, in case the server is killed before it can look itself.

Clients give a server a moment to stop and then kill it. So before a command runs, what was there is written down, and
the warden, which outlives the server, starts this program when nothing of the session runs any more.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from gripfast.errors import SandboxViolation
from gripfast.host.files.closed import ClosedName, ClosedNames
from gripfast.host.files.closed_places import ClosedPlaces
from gripfast.host.files.scope import Directory, Scope, distinct
from gripfast.host.program.places import private_directory, state_directory
from gripfast.host.shell.broker_connection import LastLook
from gripfast.host.shell.held_roots import MovedRoot, Place, RootDescriptors, places_after
from gripfast.host.shell.late import Protected, undo_late_names
from gripfast.host.shell.made import remember
from gripfast.host.shell.moved_files import MovedFiles
from gripfast.host.shell.put_back import ProtectedCopies
from gripfast.host.shell.quarantine import Quarantined
from gripfast.records import dataclass

_OLD_SECONDS = 24 * 3600
_MODULES = frozenset(
    f"gripfast.host.{name}"
    for name in (
        "files.closed",
        "files.scope",
        "program.git_view",
        "shell.late",
        "shell.moved_files",
        "shell.origins",
        "shell.put_back",
    )
) | {"gripfast.host.shell.unfinished"}


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What is needed for a look after the commands of a session. It is written into our own state directory, which no
    command can reach, and read by `_OwnClasses`."""

    read: tuple[Directory, ...] | None
    write: tuple[Directory, ...]
    deny: tuple[str, ...]
    protect: tuple[str, ...]
    seen: Protected
    copies: ProtectedCopies | None
    moved: MovedFiles

    @property
    def roots(self) -> tuple[Directory, ...]:
        return distinct((*(self.read or ()), *self.write))

    def look(self, moved: Sequence[MovedRoot] = ()) -> list[Quarantined]:
        """Takes out what commands made, and puts back what they changed. Roots that were moved are looked at where
        they are now."""
        place = places_after(moved)
        read = None if self.read is None else _paths(self.read, place)
        write = _paths(self.write, place)
        if not read and not write:
            return []
        scope = Scope(read, write, self.deny, self.protect, wide=True)
        seen, files = self.seen.relocated(place), self.moved.relocated(place)
        copies = self.copies.relocated(place) if self.copies else None
        names = ClosedNames(scope, ClosedPlaces(scope), lambda: seen.unseen)
        roots = tuple(place.real for place in scope.roots)

        def look_again() -> tuple[ClosedName, ...]:
            return names.look(unseal=True)

        taken = [*copies.put_back(), *copies.take_new()] if copies else []
        taken += files.settle(look_again())
        late, now = undo_late_names(seen, look_again, roots, files.is_judged)
        remember(now.loose, roots)
        return [*taken, *late]


def _paths(directories: Sequence[Directory], place: Place) -> list[str]:
    return [path for directory in directories if (path := place(directory.real)) is not None]


class LastLookFile:
    """The file in which a session writes down what was there before its commands."""

    def __init__(self, scope: Scope, mark: str) -> None:
        self._scope, self._mark = scope, mark
        self._written: tuple[object, ...] | None = None
        self._file: Path | None = None

    def program(self, roots: Sequence[int]) -> LastLook | None:
        """What looks once more, with the descriptors of the session's roots."""
        if not sys.executable:
            return None
        return LastLook((sys.executable, "-I", "-m", __name__, str(self._place()), *map(str, roots)), tuple(roots))

    def state(self, seen: Protected, copies: ProtectedCopies | None, moved: MovedFiles) -> Unfinished:
        scope = self._scope
        return Unfinished(scope.read, scope.write, scope.deny.texts, scope.protect.texts, seen, copies, moved)

    def write(self, seen: Protected, copies: ProtectedCopies | None, moved: MovedFiles) -> None:
        """Written before each command; usually nothing has changed. On a full disk only this last look is lost."""
        now = (seen, copies and copies.contents, moved.copies)
        if self._written == now:
            return
        with contextlib.suppress(OSError, RuntimeError):
            file = self._place()
            new = file.with_suffix(".new")
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as opened:
                pickle.dump(self.state(seen, copies, moved), opened)
            os.replace(new, file)
            self._written = now

    def remove(self) -> None:
        """Removes it when a session ends in the usual way."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)
            self._written = None

    def _place(self) -> Path:
        if self._file is None:
            folder = private_directory(private_directory(state_directory()) / "unfinished")
            _forget_old(folder)
            self._file = folder / self._mark
        return self._file


def _forget_old(folder: Path) -> None:
    for file in folder.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_ctime > _OLD_SECONDS:  # commands may be able to set the other times
                file.unlink()


def read(file: IO[bytes]) -> Unfinished:
    """What `LastLookFile.write` wrote. Raises UnpicklingError if it names anything else."""
    return _OwnClasses(file).load()


class _OwnClasses(pickle.Unpickler):
    """Reads classes of ours that hold plain data, and nothing else: a pickle may name any function, to be called.
    https://docs.python.org/3/library/pickle.html#restricting-globals"""

    def find_class(self, module: str, name: str) -> type:
        found = super().find_class(module, name) if module in _MODULES else None
        if not isinstance(found, type) or found.__module__ != module:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of what was written")
        return found


def main(file: str, *roots: str) -> None:
    """Started by a warden, with descriptors of the roots. The file stays for the session's other wardens; a session
    that ends normally removes it."""
    with contextlib.suppress(FileNotFoundError, SandboxViolation), open(file, "rb") as opened:
        state = read(opened)
        state.look(RootDescriptors(state.roots, [*map(int, roots)]).moved())


if __name__ == "__main__":
    main(*sys.argv[1:])
