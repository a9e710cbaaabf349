"""Git settings of commands: they work on a copy of each repository's configuration; harmless changes are taken over.

Inside bubblewrap a link is mounted over `.git/config`. It leads to the copy, and git, which replaces a configuration
by renaming a new one over it, follows links when it does so. The file itself is never in a command's reach.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Generator, Iterator, Sequence
from functools import partial

from gripfast.host.files.gitconfig import changed_part
from gripfast.host.files.gitremotes import leads_astray
from gripfast.host.kernel.regular import READ_FLAGS, read_regular
from gripfast.host.kernel.shortage import is_shortage
from gripfast.host.shell.made import identity_of
from gripfast.host.shell.quarantine import Quarantined, keep_copy, through_parent
from gripfast.host.shell.walls import SETTINGS, ConfigLink
from gripfast.records import dataclass

_MOST = 64
_LARGEST = 1024 * 1024
_LOCK_SECONDS = 1.0
_INSIDE = f"/tmp/{SETTINGS}"


@dataclass(slots=True)
class _SettingsCopy:
    """One configuration. `held` is an open descriptor of it, so that its inode number means no other file; `base` is
    what it said when the copy was last the same."""

    name: str
    held: int
    identity: tuple[int, int]
    base: bytes


class GitSettings:
    """The copies of one session, in a directory that commands see at a mount of its own."""

    def __init__(self, temporary: str, unseen: Sequence[str]) -> None:
        """`unseen`: directories that commands write and nobody looks through, so that no remote may be there."""
        folder = f"{temporary}/{SETTINGS}"
        os.mkdir(folder, 0o700)
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._unseen = unseen
        self._copies: dict[str, _SettingsCopy] = {}
        self._numbers = 0

    def links(self, paths: Sequence[str]) -> tuple[ConfigLink, ...]:
        """What is mounted over these configurations. One without a link stays as it is, to be read only."""
        for path in set(self._copies) - set(paths):
            self._forget(path)
        for path in paths:
            known = self._copies.get(path)
            if known is not None and known.identity != identity_of(path):
                self._forget(path)
            if path not in self._copies and len(self._copies) < _MOST:
                self._add(path)
        copies = ((path, self._copies[path]) for path in paths if path in self._copies)
        return tuple(ConfigLink(path, f"{_INSIDE}/{copy.name}", copy.identity) for path, copy in copies)

    def _add(self, path: str) -> None:
        try:
            with through_parent(path) as place:
                held = os.open(place, READ_FLAGS)
        except OSError as fault:
            if is_shortage(fault):
                raise
            return
        found, content = os.fstat(held), _read(held)
        if content is None:
            os.close(held)
            return
        self._numbers += 1
        self._copies[path] = _SettingsCopy(f"{self._numbers}", held, (found.st_dev, found.st_ino), content)
        self._write(self._copies[path])

    def _forget(self, path: str) -> None:
        copy = self._copies.pop(path)
        os.close(copy.held)
        with contextlib.suppress(OSError):
            os.unlink(copy.name, dir_fd=self._folder)

    def settle(self) -> list[Quarantined]:
        """Takes over the harmless changes of commands and all those of the user; the rest goes to quarantine."""
        return [item for path, copy in list(self._copies.items()) for item in self._settled(path, copy)]

    def _settled(self, path: str, copy: _SettingsCopy) -> Iterator[Quarantined]:
        real, private = _content(path), self._private(copy)
        if real is None or real == copy.base == private:
            return
        if private is not None and private != copy.base:
            yield from self._taken_over(path, copy, private)
        copy.base = _content(path) or real
        self._write(copy)

    def _taken_over(self, path: str, copy: _SettingsCopy, private: bytes) -> Iterator[Quarantined]:
        judged = changed_part(
            os.fsdecode(copy.base), os.fsdecode(private), partial(leads_astray, config=path, unseen=self._unseen)
        )
        wanted = os.fsencode(judged.text)
        if wanted != copy.base and not _replaced(path, copy, wanted):
            yield keep_copy(path, private, "settings that could not be written: somebody else changed the file")
        elif judged.refused:
            names = ", ".join(dict.fromkeys(judged.refused[:5]))
            yield keep_copy(path, private, f"settings that may run programs: {names}")

    def _private(self, copy: _SettingsCopy) -> bytes | None:
        try:
            return _not_large(read_regular(copy.name, _LARGEST + 1, dir_fd=self._folder))
        except OSError:
            return None

    def _write(self, copy: _SettingsCopy) -> None:
        """By a rename: whatever a command put there is not followed."""
        new = f"{copy.name}.new"
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new, dir_fd=self._folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(new, flags, 0o600, dir_fd=self._folder), "wb") as file:
                file.write(copy.base)
            os.rename(new, copy.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def make_whole(self, config: str) -> None:
        """Makes the configuration of a repository that a command copied a file: what it copied is our link."""
        target = os.readlink(config) if os.path.islink(config) else ""
        copy = next((copy for copy in self._copies.values() if target == f"{_INSIDE}/{copy.name}"), None)
        if copy is not None:
            with contextlib.suppress(OSError), through_parent(config) as place:
                os.unlink(place)
                with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644), "wb") as file:
                    file.write(copy.base)

    def close(self) -> None:
        for path in list(self._copies):
            self._forget(path)
        os.close(self._folder)


def _replaced(path: str, copy: _SettingsCopy, wanted: bytes) -> bool:
    """Writes the file in place, since a new file in its place would lack the mounts that keep running commands away.
    False if it is not what it was, or can't be written."""
    try:
        with through_parent(path) as place, _locked(f"{place}.lock"):
            fd = os.open(place, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(fd, "r+b", buffering=0) as file:
                found = os.fstat(fd)
                if (found.st_dev, found.st_ino) != copy.identity or _read(fd) != copy.base:
                    return False
                os.pwrite(fd, wanted, 0)
                file.truncate(len(wanted))
                return True
    except OSError as fault:
        if is_shortage(fault):
            raise
        return False


@contextlib.contextmanager
def _locked(lock: str) -> Generator[None]:
    """Git's own lock; one that stays for a second was left behind by somebody."""
    until, made = time.monotonic() + _LOCK_SECONDS, False
    while not made and time.monotonic() < until:
        try:
            os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            made = True
        except FileExistsError:
            time.sleep(0.02)
    try:
        yield
    finally:
        if made:
            with contextlib.suppress(OSError):
                os.unlink(lock)


def _content(path: str) -> bytes | None:
    try:
        with through_parent(path) as place:
            return _not_large(read_regular(place, _LARGEST + 1))
    except OSError as fault:
        if is_shortage(fault):
            raise
        return None


def _read(fd: int) -> bytes | None:
    """What an open regular file holds; None for anything else, and for one too large to be a configuration."""
    return _not_large(os.pread(fd, _LARGEST + 1, 0)) if stat.S_ISREG(os.fstat(fd).st_mode) else None


def _not_large(data: bytes) -> bytes | None:
    return data if len(data) <= _LARGEST else None
