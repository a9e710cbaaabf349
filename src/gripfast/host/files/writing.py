"""Writing: a new file is written beside the old one and then replaces it, unless somebody else was faster."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Sequence

from gripfast.errors import Conflict, Internal, NotFile, SandboxViolation
from gripfast.host.files.atomic import Fresh, MadeDirectories, locked, sweep_strays, sync_directory
from gripfast.host.files.beneath import ResolvedPath
from gripfast.host.files.faults import explained
from gripfast.host.files.guard import HASHED_BYTES, Identity, ReadLog, digest_of
from gripfast.host.files.opened import OpenFile
from gripfast.host.files.opening import open_regular
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.reading import whole_content
from gripfast.host.files.scoped_paths import ScopedPaths
from gripfast.host.files.witness import WITNESS, Replacement
from gripfast.host.files.writable import writable
from gripfast.records import dataclass
from gripfast.text.escape import escaped

_ANY_WRITE = 0o222
_HASTY = 2  # attempts at a write without holding the lock throughout
_TRIES = 16  # attempts while somebody changes the file or what the path leads to


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a write did. `before` is None where there was no file; bytes as they are in the file."""

    before: bytes | None
    after: bytes
    real: str

    @property
    def created(self) -> bool:
        return self.before is None


@dataclass(frozen=True, slots=True)
class CurrentFile:
    """A file as a change of it begins with it."""

    real: str
    data: bytes
    mode: int


class _SwappedError(Exception):
    """What a path led to became something else between looking and opening."""


class FileWriter:
    """Puts new content in a file's place, atomically. May be shared between threads."""

    def __init__(self, paths: ScopedPaths) -> None:
        self._paths = paths
        self._swept: set[tuple[int, int]] = set()

    def change(
        self,
        path: WorkPath,
        compute: Callable[[bytes | None], bytes],
        *,
        reads: ReadLog | None = None,
        commit: bool = True,
        last_word: Callable[[], None] | None = None,
    ) -> FileChange:
        """Put `compute(the file's bytes, or None)` in the file's place, atomically.

        With `reads`, an existing file must be what that log last saw. `compute` may be called again, when the file
        changes meanwhile. Without `commit`, or when nothing changes, nothing is touched. `last_word` is called when
        all is ready and nothing done: what it raises stops the change.
        """
        for attempt in range(_TRIES):
            try:
                done = self._attempt(path, compute, reads, commit, last_word, patient=attempt >= _HASTY)
            except Conflict:
                if attempt >= _HASTY:
                    raise
                done = None  # another call of this session may have written the file and not recorded it yet
            except _SwappedError:
                done = None
            except OSError as error:
                raise explained(error, path.text, "write") from None
            if done is not None:
                return done
        raise Conflict(f"`{escaped(path.text)}` keeps changing; try again", retriable=True)

    def current(self, path: WorkPath, *, reads: ReadLog | None = None) -> CurrentFile | None:
        """The file as it is, None where there is none. Raises what a change of it would raise before it begins."""
        for _ in range(_TRIES):
            try:
                with contextlib.ExitStack() as stack:
                    return self._current(path, reads, stack)
            except _SwappedError:
                continue
            except OSError as error:
                raise explained(error, path.text, "write") from None
        raise Conflict(f"`{escaped(path.text)}` keeps changing; try again", retriable=True)

    def _current(self, path: WorkPath, reads: ReadLog | None, stack: contextlib.ExitStack) -> CurrentFile | None:
        place = stack.enter_context(writable(self._paths, path))
        old = self._old(path, place, stack)
        if old is None:
            return None
        data = whole_content(path, old)
        if reads is not None:
            reads.check(escaped(path.text), place.absolute, old.stat, data)
        return CurrentFile(place.absolute, data, stat.S_IMODE(old.stat.st_mode))

    def _attempt(
        self,
        path: WorkPath,
        compute: Callable[[bytes | None], bytes],
        reads: ReadLog | None,
        commit: bool,
        last_word: Callable[[], None] | None,
        *,
        patient: bool,
    ) -> FileChange | None:
        """One attempt. A hasty one locks only to publish, so that files don't wait for each other; a patient one
        locks from the beginning, so that nobody can overtake it. None if the file changed meanwhile."""
        with contextlib.ExitStack() as stack:
            place = stack.enter_context(writable(self._paths, path))
            if patient and not place.missing:
                stack.enter_context(locked(place.dir_fd, escaped(path.text)))
            old = self._old(path, place, stack)
            before = None if old is None else whole_content(path, old)
            if old is not None and reads is not None:
                reads.check(escaped(path.text), place.absolute, old.stat, before)
            after = compute(before)
            if commit and after != before:
                held = patient and not place.missing
                if not self._publish(path, place, old, before, after, reads, last_word, held=held):
                    return None
            return FileChange(before, after, place.absolute)

    def _old(self, path: WorkPath, place: ResolvedPath, stack: contextlib.ExitStack) -> OpenFile | None:
        """The file that is there now, open; None where there is none."""
        if place.name == ".":
            raise NotFile(f"`{escaped(path.text)}` is a directory; name a file in it")
        if place.stat is None:
            return None
        file = open_regular(self._paths, path, place)
        if file is None:
            raise _SwappedError
        stack.enter_context(file)
        if not stat.S_IMODE(file.stat.st_mode) & _ANY_WRITE or not _may_write(place):
            raise SandboxViolation(
                f"`{escaped(path.text)}` is read-only (mode {stat.S_IMODE(file.stat.st_mode):04o}): it is not meant "
                "to be changed. Ask the user, or make it writable first with chmod"
            )
        if os.geteuid() not in (0, file.stat.st_uid):
            raise SandboxViolation(
                f"`{escaped(path.text)}` belongs to another user, and writing it would make it yours. Ask the user, "
                "or change it in place with a command"
            )
        return file

    def _publish(
        self,
        path: WorkPath,
        place: ResolvedPath,
        old: OpenFile | None,
        before: bytes | None,
        after: bytes,
        reads: ReadLog | None,
        last_word: Callable[[], None] | None,
        *,
        held: bool,
    ) -> bool:
        """Write beside, lock, make sure the file is still the one that was read, put the new one in its place."""
        with MadeDirectories(place.dir_fd, place.missing) as made, contextlib.ExitStack() as stack:
            self._sweep(made.fd)
            fresh = stack.enter_context(Fresh(made.fd))
            fresh.fill(after, None if old is None else old.fd)
            lock = contextlib.nullcontext(-1) if held else locked(made.fd, escaped(path.text))
            stack.enter_context(lock)
            if not _unchanged(made.fd, place.name, old):
                return False
            if last_word is not None:
                last_word()
            witness = WITNESS.get()
            replacement = _replacement(place, old, before, after, fresh)
            if witness is not None:
                witness.replacing(replacement)
            try:
                (fresh.publish_new if old is None else fresh.publish_over)(place.name)
            except FileExistsError:
                return False
            changed = made.keep()
            if witness is not None:
                witness.replaced(replacement)
            if reads is not None:
                digest = digest_of(after) if len(after) <= HASHED_BYTES else None
                reads.record(place.absolute, os.fstat(fresh.fd), digest)
            _sync(path, changed)
        return True

    def _sweep(self, dir_fd: int) -> None:
        """Removes what killed writers left, once for each directory that is written to."""
        found = os.fstat(dir_fd)
        if (found.st_dev, found.st_ino) not in self._swept:
            self._swept.add((found.st_dev, found.st_ino))
            with contextlib.suppress(OSError):
                sweep_strays(dir_fd)


def _replacement(
    place: ResolvedPath, old: OpenFile | None, before: bytes | None, after: bytes, fresh: Fresh
) -> Replacement:
    top = place.absolute.split("/")[: -len(place.missing) - 1]
    made = tuple("/".join([*top, *place.missing[: at + 1]]) for at in range(len(place.missing)))
    mode = stat.S_IMODE(os.fstat(fresh.fd).st_mode)
    return Replacement(place.absolute, before, stat.S_IMODE(old.stat.st_mode) if old else 0, after, mode, made)


def _may_write(place: ResolvedPath) -> bool:
    """Whether the file itself may be written, as an editor that writes in place would need."""
    return os.access(place.name, os.W_OK, dir_fd=place.dir_fd, effective_ids=os.access in os.supports_effective_ids)


def _unchanged(dir_fd: int, name: str, old: OpenFile | None) -> bool:
    """Whether a name still is the file that was read; under the lock, just before it is replaced."""
    try:
        now = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return old is None
    return old is not None and Identity.of(now) == Identity.of(old.stat) and old.is_still_what_was_read()


def _sync(path: WorkPath, directories: Sequence[int]) -> None:
    try:
        for dir_fd in directories:
            sync_directory(dir_fd)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "unknown")
        raise Internal(
            f"`{escaped(path.text)}` was written, but its directory could not be synced ({name}): "
            "after a power cut the old content may be back",
            details={"errno": name, "written": True},
        ) from None
