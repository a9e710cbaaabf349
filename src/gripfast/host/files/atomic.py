"""Atomic writes: a file is the old one or the new one at every instant, and its mode, owner and attributes stay."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Generator

from gripfast.errors import TimedOut
from gripfast.host.kernel.regular import READ_FLAGS

STRAY_PREFIX = ".gripfast-"
STRAY_SUFFIX = ".tmp"
_STRAY = r"\.gripfast-[0-9a-f]{16}\.tmp"  # only what `_stray_name` makes: others may be the user's
_STRAY_AGE = 5.0  # seconds: the writer of a younger one may not have locked it yet
_LOCK_WAIT = 30.0
_LISTED = 20_000

_O_TMPFILE = getattr(os, "O_TMPFILE", 0)
_HAS_PROC = os.path.isdir("/proc/self/fd")
_NO_TMPFILE = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL, errno.ENOSYS})
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Fresh:
    """A new file that will replace another: without a name (O_TMPFILE, see open(2)) if the system can do that, or
    else with a name that `sweep_strays` recognises."""

    def __init__(self, dir_fd: int, *, nameless: bool = True) -> None:
        self._dir_fd = dir_fd
        self._name: str | None = None
        self.fd = _nameless(dir_fd) if nameless and _O_TMPFILE and _HAS_PROC else -1
        if self.fd < 0:
            name = _stray_name()
            self.fd = os.open(name, _NEW, 0o666, dir_fd=dir_fd)
            self._name = name
        with contextlib.suppress(OSError):  # tells `sweep_strays` that the file is in use
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def fill(self, data: bytes, like: int | None, *, sync: bool = True) -> None:
        """Writes the content, copies the old file's owner, mode and attributes, and syncs it to disk."""
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view) :]
        if like is not None:
            _take_after(self.fd, like)
        if sync:
            os.fsync(self.fd)

    def publish_new(self, name: str) -> None:
        """Gives the file its name. Raises FileExistsError if somebody was faster."""
        if self._name is None:
            os.link(f"/proc/self/fd/{self.fd}", name, dst_dir_fd=self._dir_fd, follow_symlinks=True)
            return
        try:
            both = {"src_dir_fd": self._dir_fd, "dst_dir_fd": self._dir_fd}
            os.link(self._name, name, **both, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self._rename_to_new(name)
        self._remove_name()

    def _rename_to_new(self, name: str) -> None:
        """For file systems without hard links: meanwhile the directory's lock keeps our other writers away."""
        with contextlib.suppress(FileNotFoundError):
            os.stat(name, dir_fd=self._dir_fd, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        self.publish_over(name)

    def publish_over(self, name: str) -> None:
        """Replaces the file `name`."""
        if self._name is None:
            fresh = _stray_name()
            os.link(f"/proc/self/fd/{self.fd}", fresh, dst_dir_fd=self._dir_fd, follow_symlinks=True)
            self._name = fresh
        os.rename(self._name, name, src_dir_fd=self._dir_fd, dst_dir_fd=self._dir_fd)
        self._name = None

    def close(self) -> None:
        """Removes the file unless it was published."""
        self._remove_name()
        os.close(self.fd)

    def _remove_name(self) -> None:
        if self._name is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._dir_fd)
            self._name = None

    def __enter__(self) -> Fresh:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _nameless(dir_fd: int) -> int:
    try:
        return os.open(".", os.O_RDWR | _O_TMPFILE | os.O_CLOEXEC, 0o666, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in _NO_TMPFILE:
            return -1
        if os.fstat(dir_fd).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "the directory was removed") from error
        raise


def _stray_name() -> str:
    return f"{STRAY_PREFIX}{secrets.token_hex(8)}{STRAY_SUFFIX}"


def _take_after(fd: int, like: int) -> None:
    """Copies owner, mode and extended attributes of the old file, as far as the system allows it."""
    old, new = os.fstat(like), os.fstat(fd)
    mode = stat.S_IMODE(old.st_mode)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) and not _owned(fd, old):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    _copy_attributes(fd, like)
    os.fchmod(fd, mode)


def _owned(fd: int, old: os.stat_result) -> bool:
    for owner, group in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
        with contextlib.suppress(PermissionError):
            os.fchown(fd, owner, group)
            return owner != -1
    return False


def _copy_attributes(fd: int, like: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(like):
            with contextlib.suppress(OSError):
                os.setxattr(fd, name, os.getxattr(like, name))


@contextlib.contextmanager
def locked(dir_fd: int, shown: str) -> Generator[int]:
    """Holds the directory's lock, so that writers of one file wait for each other. Yields a descriptor to sync."""
    fd = os.open(".", _DIRECTORY, dir_fd=dir_fd)
    try:
        _lock(fd, shown)
        yield fd
    finally:
        os.close(fd)


def _lock(fd: int, shown: str) -> None:
    end, pause = time.monotonic() + _LOCK_WAIT, 0.0005
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return None
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                raise
        if time.monotonic() > end:
            raise TimedOut(f"another program holds the lock on the directory of `{shown}` for {_LOCK_WAIT:.0f} s")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


class MadeDirectories:
    """Directories that were created for a new file; removed again unless `keep` is called."""

    def __init__(self, dir_fd: int, names: tuple[str, ...]) -> None:
        self._made: list[tuple[int, str]] = []
        self._held: list[int] = []
        self.fd = dir_fd
        try:
            for name in names:
                self._step(name)
        except BaseException:
            self.undo()
            self.close()
            raise

    def _step(self, name: str) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=self.fd)
            self._made.append((self.fd, name))
        self.fd = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self.fd)
        self._held.append(self.fd)

    def keep(self) -> list[int]:
        """Keeps them. Returns the descriptors of all directories that have a new entry and must be synced."""
        changed = [above for above, _ in self._made] + [self.fd]
        self._made = []
        return changed

    def undo(self) -> None:
        for above, name in reversed(self._made):
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=above)
        self._made = []

    def close(self) -> None:
        for fd in self._held:
            os.close(fd)
        self._held = []

    def __enter__(self) -> MadeDirectories:
        return self

    def __exit__(self, *exception: object) -> None:
        self.undo()
        self.close()


def sync_directory(dir_fd: int) -> None:
    fd = os.open(".", _DIRECTORY, dir_fd=dir_fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sweep_strays(dir_fd: int) -> int:
    """Removes the temporary files that killed writers left in a directory. Returns how many."""
    swept = 0
    fd = os.open(".", _DIRECTORY, dir_fd=dir_fd)
    try:
        with os.scandir(fd) as entries:
            names = [entry.name for _, entry in zip(range(_LISTED), entries, strict=False)]
        for name in names:
            if re.fullmatch(_STRAY, name) and _is_stray(fd, name):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=fd)
                    swept += 1
    finally:
        os.close(fd)
    return swept


def _is_stray(dir_fd: int, name: str) -> bool:
    """Whether a file was left behind: it is old, regular, and nobody holds its lock."""
    try:
        fd = os.open(name, READ_FLAGS, dir_fd=dir_fd)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or time.time() - found.st_mtime < _STRAY_AGE:
            return False
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(fd)
