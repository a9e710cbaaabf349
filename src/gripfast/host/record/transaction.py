"""Transaction: changes several paths together or not at all, even under kill -9.

All contents, old and new, are in the store before the first path is touched, and a journal says what was and what
is to be. Whoever finds the journal of a process that is gone takes back what that had done.

    with Transaction(fs, contents, journals) as change:
        change.prepare([Step(path, before, after), ...])
        change.commit()
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import queue
import secrets
import stat
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from gripfast.errors import Conflict, Internal, NotFound, ToolError
from gripfast.host.files.atomic import STRAY_PREFIX, STRAY_SUFFIX, Fresh, locked, sync_directory
from gripfast.host.files.beneath import ResolvedPath
from gripfast.host.files.fs import ScopedFs
from gripfast.host.kernel.libc import sync_file_system
from gripfast.host.kernel.regular import READ_FLAGS
from gripfast.host.program.places import private_directory
from gripfast.host.record.contents import Contents
from gripfast.host.record.states import ABSENT, PathState, state_at
from gripfast.records import dataclass
from gripfast.text.below import is_below
from gripfast.text.escape import escaped

VERSION = 1
_ANY_SIZE = 1 << 62
_SYNCED = 16  # files that are synced one by one; more are synced together
_HELD_BYTES = 32 * 1024**2  # of contents that are read once and not twice
_RACY_NS = 100_000_000  # times of files move in steps, on some file systems of 10 ms
_CLOSERS, _BATCH, _MOST_BATCHES = 2, 32, 4  # descriptors of replaced files that wait to be closed
_UNFINISHED, _YOUNG = ".new", 5.0  # seconds
_HAS_O_PATH = hasattr(os, "O_PATH")
_MOST_LOCKS = 256  # directories locked at once: each takes a descriptor

_Look: TypeAlias = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Step:
    """One path, by its absolute real name: what must be there before, and what is to be there after. The content of
    `after` is in the store, by its digest. `lifted`: if the name is protected, it may be written nevertheless."""

    path: str
    before: PathState
    after: PathState
    lifted: bool = False

    def inverse(self) -> Step:
        return Step(self.path, self.after, self.before, self.lifted)


class Transaction:
    """Prepare, then commit. Left without a commit, nothing was done. Not for use by two threads."""

    def __init__(self, fs: ScopedFs, contents: Contents, journals: Path, looks: Looks | None = None) -> None:
        """`looks` are files that were compared already, while the steps were planned."""
        self._fs = fs
        self._contents = contents
        self._journals = journals
        self._steps: list[Step] = []
        self._held = contextlib.ExitStack()
        self._known = _Known(contents, looks or Looks())

    def prepare(self, steps: Iterable[Step]) -> None:
        """Locks the directories, in one order; checks that every path is what it must be; stores what is there.

        Raises Conflict if a path is something else, or the content it should get is not in the store.
        """
        self._steps = _with_missing_directories(self._fs, list(steps))
        self._lock()
        for step in self._steps:
            at = time.time_ns()
            with _entry(self._fs, step, self._steps) as place:
                if place is not None and not self._known.looks.is_same(step.path, place.stat):
                    _require(place, step.before, step.path)
                    self._known.looks.add(step.path, place.stat, at)
                self._keep(place, step)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was prepared, with the directories that have to be made."""
        return tuple(self._steps)

    def _lock(self) -> None:
        """Locks each directory once, found without following links. A second mount may give it another name."""
        held: set[tuple[int, int]] = set()
        above = {step.path.rpartition("/")[0]: step for step in self._steps}
        for directory in sorted(above)[:_MOST_LOCKS]:
            with _entry(self._fs, above[directory], self._steps) as place:
                if place is None or place.missing:
                    continue
                found = os.fstat(place.dir_fd)
                if (found.st_dev, found.st_ino) not in held:
                    held.add((found.st_dev, found.st_ino))
                    self._held.enter_context(locked(place.dir_fd, directory))

    def _keep(self, place: ResolvedPath | None, step: Step) -> None:
        """Both contents must be in the store: one to do it, the other to take it back."""
        if step.before.kind == "other" or step.after.kind == "other":
            raise Conflict(f"`{escaped(step.path)}` is a socket, pipe or device, which can't be put back")
        if step.after.kind == "file" and self._known.content(step.after.digest) is None:
            raise Conflict(f"the content for `{escaped(step.path)}` was not kept")
        if place is not None and step.before.kind == "file" and not self._contents.has(step.before.digest):
            fd = os.open(place.name, READ_FLAGS, dir_fd=place.dir_fd)
            try:
                if self._contents.put_file(fd) != step.before.digest:
                    raise Conflict(f"`{escaped(step.path)}` was changed just now; try again", retriable=True)
            finally:
                os.close(fd)

    def commit(self) -> None:
        """Does it. Whatever fails, what was done is taken back, and the error is raised."""
        journal = _Journal(self._journals, self._steps, self._contents.directory)
        try:
            _apply(self._fs, self._known, self._steps)
            if len(self._steps) > _SYNCED:
                self._sync_together()
            journal.remove()
        except BaseException as error:
            _apply(self._fs, _Known(self._contents, Looks()), [step.inverse() for step in self._steps], lenient=True)
            journal.remove()
            if isinstance(error, OSError):
                raise Internal(f"nothing was changed: {error.strerror}") from error
            raise
        finally:
            journal.close()

    def _sync_together(self) -> None:
        """One sync for each file system that the steps touch, instead of one for each file."""
        synced: set[int] = set()
        for directory in sorted({step.path.rpartition("/")[0] for step in self._steps}):
            try:
                fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue  # removed by a step
            try:
                device = os.fstat(fd).st_dev
                if device not in synced:
                    synced.add(device)
                    sync_file_system(fd)
            finally:
                os.close(fd)

    def __enter__(self) -> Transaction:
        private_directory(self._journals)
        recover(self._fs, self._journals)
        return self

    def __exit__(self, *exception: object) -> None:
        self._held.close()


# --- doing it ---


def _with_missing_directories(fs: ScopedFs, steps: list[Step]) -> list[Step]:
    """A step more for each directory that is needed on the way, is not there, and is in no step."""
    known = {step.path for step in steps}
    more: dict[str, Step] = {}
    first = {step.path.rpartition("/")[0]: step for step in steps if step.after.kind != "absent"}
    for step in first.values():  # one for each directory
        with _entry(fs, step, steps) as place:
            above = step.path.split("/")[:-1]
            for at in range(len(place.missing) if place else 0):
                path = "/".join(above[: len(above) - at])
                if path not in known:
                    more[path] = Step(path, ABSENT, PathState("directory", 0o755), step.lifted)
    return [*steps, *more.values()]


@contextlib.contextmanager
def _entry(fs: ScopedFs, step: Step, steps: Sequence[Step]) -> Generator[ResolvedPath | None]:
    """The place of a step; None for one below something that is a file now and will be a directory."""
    try:
        place = fs.writable_entry(step.path, lifted=step.lifted)
    except NotFound:
        above = [one for one in steps if is_below(step.path, one.path) and one.after.kind == "directory"]
        if not above or step.before.kind != "absent":
            raise
        yield None
        return
    with place:
        yield place


def _require(place: ResolvedPath, expected: PathState, path: str) -> None:
    now = ABSENT if place.missing else state_at(place.name, place.dir_fd, largest=expected.largest_equal)
    if not expected.is_same(now):
        message = f"`{escaped(path)}` is not what it was: it was changed by somebody else"
        raise Conflict(message, details={"path": path})


class Looks:
    """How files were when their content was compared: one that looks the same still has that content."""

    def __init__(self) -> None:
        self._seen: dict[str, _Look] = {}

    def add(self, path: str, found: os.stat_result | None, at: int) -> None:
        """`at`: a moment before `found`, in nanoseconds, and the content was read after both. A file changed so
        shortly before could have been changed again without a new time."""
        if found is not None and stat.S_ISREG(found.st_mode) and at - found.st_ctime_ns > _RACY_NS:
            self._seen[path] = _look(found)

    def is_same(self, path: str, found: os.stat_result | None) -> bool:
        return found is not None and self._seen.get(path) == _look(found)


class _Known:
    """What was learned while a transaction was prepared, so that nothing is read twice: contents, as many as fit into
    memory, and how files were that were compared."""

    def __init__(self, contents: Contents, looks: Looks) -> None:
        self._contents = contents
        self._held: dict[str, bytes] = {}
        self._room = _HELD_BYTES
        self.looks = looks

    def content(self, digest: str | None) -> bytes | None:
        held = self._held.get(digest or "")
        if held is not None:
            return held
        data = self._contents.get(digest)
        if data is not None and digest is not None and len(data) <= self._room:
            self._held[digest] = data
            self._room -= len(data)
        return data


def _look(found: os.stat_result) -> _Look:
    return (found.st_dev, found.st_ino, found.st_size, found.st_mode, found.st_mtime_ns, found.st_ctime_ns)


def _apply(fs: ScopedFs, known: _Known, steps: Sequence[Step], *, lenient: bool = False) -> None:
    """Removes from below, then puts from above, then sets the modes of directories. `lenient`: on the way back, a
    path that is neither the one nor the other belongs to somebody else, and stays."""
    with _Closer() as closer:
        apply = _Applying(fs, known, lenient, closer, sync=len(steps) <= _SYNCED)
        for step in sorted(steps, key=_depth, reverse=True):
            if _must_go_first(step):
                apply.remove(step)
        for step in sorted(steps, key=_depth):
            if step.after.kind != "absent":
                apply.put(step)
        for step in sorted(steps, key=_depth, reverse=True):
            if step.after.kind == "directory":
                apply.set_mode(step)


class _Closer:
    """Closes descriptors in a thread: the last one of a file that was replaced frees its blocks, which may wait for
    the disk longer than all the rest of an undo. It does so in batches, each closed without Python's lock."""

    def __init__(self) -> None:
        self._batch: list[int] = []
        self._waiting: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        self._room = threading.Semaphore(_MOST_BATCHES)
        self._threads: list[threading.Thread] = []

    def take(self, fd: int) -> None:
        self._batch.append(fd)
        if len(self._batch) == _BATCH:
            self._hand_over()

    def _hand_over(self) -> None:
        self._room.acquire()
        self._waiting.put(self._batch)
        self._batch = []
        if len(self._threads) < _CLOSERS:
            self._threads.append(threading.Thread(target=self._close, daemon=True))
            self._threads[-1].start()

    def _close(self) -> None:
        while batch := self._waiting.get():
            _close_all(batch)
            self._room.release()

    def __enter__(self) -> _Closer:
        return self

    def __exit__(self, *exception: object) -> None:
        _close_all(self._batch)
        for _ in self._threads:
            self._waiting.put([])
        for thread in self._threads:
            thread.join()


def _close_all(descriptors: list[int]) -> None:
    """Errors don't matter: the files are replaced, only their room is freed late."""
    runs: list[list[int]] = []
    for fd in sorted(descriptors):
        if runs and runs[-1][-1] == fd - 1:
            runs[-1].append(fd)
        else:
            runs.append([fd])
    for run in runs:
        os.closerange(run[0], run[-1] + 1)


def _depth(step: Step) -> int:
    return step.path.count("/")


def _must_go_first(step: Step) -> bool:
    """What will be gone, and directories that become something else or the other way round."""
    directories = (step.before.kind == "directory", step.after.kind == "directory")
    return step.before.kind != "absent" and (step.after.kind == "absent" or directories[0] != directories[1])


class _Applying:
    def __init__(self, fs: ScopedFs, known: _Known, lenient: bool, closer: _Closer, sync: bool) -> None:
        self._fs, self._known, self._lenient, self._sync = fs, known, lenient, sync
        self._closer = closer

    def _is_ours(self, place: ResolvedPath, step: Step) -> bool:
        """Whether what is there now is what the step begins with. On the way back: or what it ends with."""
        if self._known.looks.is_same(step.path, place.stat):
            return True
        largest = max(step.before.largest_equal, step.after.largest_equal)
        now = ABSENT if place.missing else state_at(place.name, place.dir_fd, largest=largest)
        if step.before.is_same(now) or (now.kind == "absent" and _must_go_first(step)):
            return True
        if now.kind == "directory" and step.before.kind == "directory":
            return True  # its mode is set last
        if self._lenient or step.after.is_same(now):
            return False
        message = f"`{escaped(step.path)}` was changed by somebody else just now"
        raise Conflict(message, details={"path": step.path})

    def remove(self, step: Step) -> None:
        with self._place(step) as place:
            if place is None or place.stat is None or not self._is_ours(place, step):
                return
            if stat.S_ISDIR(place.stat.st_mode):
                self._remove_directory(place)
            else:
                os.unlink(place.name, dir_fd=place.dir_fd)

    @contextlib.contextmanager
    def _place(self, step: Step) -> Generator[ResolvedPath | None]:
        """The place of a step. While undoing, None if a directory above it does not exist: nothing was done there."""
        try:
            place = self._fs.writable_entry(step.path, lifted=step.lifted, restoring=self._lenient)
        except NotFound:
            if not self._lenient:
                raise
            yield None
            return
        with place:
            yield place

    def _remove_directory(self, place: ResolvedPath) -> None:
        try:
            os.rmdir(place.name, dir_fd=place.dir_fd)
        except OSError:
            if not self._lenient:
                raise

    def put(self, step: Step) -> None:
        with self._place(step) as place:
            if place is None:
                return
            if place.missing:
                if self._lenient:
                    return
                raise Conflict(f"the directory of `{escaped(step.path)}` was removed just now")
            if not self._is_ours(place, step):
                return
            if step.after.kind == "file":
                self._put_file(place, step)
            elif step.after.kind == "link":
                self._put_link(place, step)
            else:
                _put_directory(place, step)
            if self._sync:
                sync_directory(place.dir_fd)

    def _put_file(self, place: ResolvedPath, step: Step) -> None:
        if step.before.kind == "file" and step.before.digest == step.after.digest and place.stat is not None:
            _chmod(place, step.after.mode)
            return
        data = self._known.content(step.after.digest)
        if data is None:
            raise Internal(f"the content for `{escaped(step.path)}` is lost from the record")
        # A name costs less than none, and `recover` sweeps it; but one more than the file's own could fail to go.
        with Fresh(place.dir_fd, nameless=place.stat is None) as fresh, _old_file(place, self._closer) as old:
            fresh.fill(data, old, sync=self._sync)
            os.fchmod(fresh.fd, step.after.mode)
            if place.stat is None:
                fresh.publish_new(place.name)
            else:
                fresh.publish_over(place.name)

    def _put_link(self, place: ResolvedPath, step: Step) -> None:
        stray = f"{STRAY_PREFIX}{secrets.token_hex(8)}{STRAY_SUFFIX}"
        os.symlink(step.after.target or "", stray, dir_fd=place.dir_fd)
        try:
            os.rename(stray, place.name, src_dir_fd=place.dir_fd, dst_dir_fd=place.dir_fd)
        except BaseException:
            os.unlink(stray, dir_fd=place.dir_fd)
            raise

    def set_mode(self, step: Step) -> None:
        with self._place(step) as place:
            if place is not None and place.stat is not None and stat.S_ISDIR(place.stat.st_mode):
                _chmod(place, step.after.mode)


def _put_directory(place: ResolvedPath, step: Step) -> None:
    if place.stat is None:
        os.mkdir(place.name, 0o700 | step.after.mode, dir_fd=place.dir_fd)


@contextlib.contextmanager
def _old_file(place: ResolvedPath, closer: _Closer) -> Generator[int | None]:
    """The file that is replaced, for its owner and attributes; None where there is none to open."""
    fd = None
    if place.stat is not None and stat.S_ISREG(place.stat.st_mode):
        with contextlib.suppress(OSError):
            fd = os.open(place.name, READ_FLAGS, dir_fd=place.dir_fd)
    try:
        yield fd
    finally:
        if fd is not None:
            closer.take(fd)


def _chmod(place: ResolvedPath, mode: int) -> None:
    """Sets the mode of the name itself, even of a file that can't be opened for reading; never through a link."""
    if not _HAS_O_PATH:  # macOS, which can set the mode of a link itself
        if not stat.S_ISLNK(os.stat(place.name, dir_fd=place.dir_fd, follow_symlinks=False).st_mode):
            os.chmod(place.name, mode, dir_fd=place.dir_fd, follow_symlinks=False)
        return
    fd = os.open(place.name, os.O_PATH | os.O_NOFOLLOW, dir_fd=place.dir_fd)
    try:
        if not stat.S_ISLNK(os.fstat(fd).st_mode):
            os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)


def open_as_owner(place: ResolvedPath, found: os.stat_result) -> int:
    """Opens a file of ours that its mode closes to us, for reading. The mode is another one only for that moment."""
    mode = stat.S_IMODE(found.st_mode)
    _chmod(place, mode | stat.S_IRUSR)
    try:
        return os.open(place.name, READ_FLAGS, dir_fd=place.dir_fd)
    finally:
        _chmod(place, mode)


# --- the journal ---


class _Journal:
    """What a transaction is about to do, on disk and locked as long as this process lives."""

    def __init__(self, directory: Path, steps: Sequence[Step], contents: Path) -> None:
        name = secrets.token_hex(8)
        self._path = directory / f"{name}.json"
        temporary = directory / f"{name}{_UNFINISHED}"
        self._fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            with open(self._fd, "wb", closefd=False) as file:
                file.write(_dumped(steps, contents))
            os.fsync(self._fd)
            os.rename(temporary, self._path)
        except BaseException:
            os.close(self._fd)
            temporary.unlink(missing_ok=True)
            raise

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what was done is done
            os.close(self._fd)


def _dumped(steps: Sequence[Step], contents: Path) -> bytes:
    rows = [[step.path, step.before.to_json(), step.after.to_json(), step.lifted] for step in steps]
    return json.dumps({"version": VERSION, "contents": str(contents), "steps": rows}).encode()


def recover(fs: ScopedFs, journals: Path) -> list[str]:
    """Takes back what processes that are gone had begun. Returns the paths concerned."""
    paths: list[str] = []
    for file in sorted(journals.glob("*.json")) if journals.is_dir() else ():
        with contextlib.suppress(OSError), open(file, "rb") as opened:
            fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(opened.fileno()).st_nlink:  # or its process has finished between the two lines above
                paths += _taken_back(fs, file, opened.read())
    _sweep_unfinished(journals)
    return paths


def _sweep_unfinished(journals: Path) -> None:
    """Removes journals that were never finished, so nothing was done by them. A young one may not be locked yet."""
    for file in journals.glob(f"*{_UNFINISHED}"):
        with contextlib.suppress(OSError), open(file, "rb") as opened:
            fcntl.flock(opened.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.time() - os.fstat(opened.fileno()).st_mtime > _YOUNG:
                file.unlink(missing_ok=True)


def _taken_back(fs: ScopedFs, file: Path, text: bytes) -> list[str]:
    try:
        value = json.loads(text)
        if value["version"] != VERSION:
            return []  # left to the version that wrote it
        steps = [
            Step(path, PathState.from_json(before), PathState.from_json(after), lifted == [True])
            for path, before, after, *lifted in value["steps"]
        ]
        contents = Contents(Path(value["contents"]), _ANY_SIZE)
    except (ValueError, KeyError, TypeError):
        file.rename(file.with_suffix(".unreadable"))
        return []
    try:
        for directory in sorted({step.path.rpartition("/")[0] for step in steps}):
            _sweep(directory, {state.target for step in steps for state in (step.before, step.after)})
        _apply(fs, _Known(contents, Looks()), [step.inverse() for step in steps], lenient=True)
    except ToolError:
        return []  # another scope: whoever has the right one finds it
    file.unlink(missing_ok=True)
    return [step.path for step in steps]


def _sweep(directory: str, targets: set[str | None]) -> None:
    """Removes what a killed process had put beside its place: files nobody locks, links that were to be put."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in list(entries):
            if not (entry.name.startswith(STRAY_PREFIX) and entry.name.endswith(STRAY_SUFFIX)):
                continue
            if _is_left(entry.path) if not entry.is_symlink() else os.readlink(entry.path) in targets:
                os.unlink(entry.path)


def _is_left(path: str) -> bool:
    """Whether a file beside its place is locked by nobody: whoever writes one holds its lock."""
    fd = os.open(path, READ_FLAGS)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
