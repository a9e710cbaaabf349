"""TreeIndex: what every name below some directories was when it was last looked at."""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Iterator

from gripfast.records import dataclass

_FORM = struct.Struct("<QQqqqII")  # 48 bytes an entry instead of eight objects: trees have 80,000 of them
_CTIME = struct.Struct("<32xq")


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """What one name was: a file, a directory, a link or something else, by its mode. `names`: its hard links."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    mode: int
    names: int = 1

    @classmethod
    def of(cls, found: os.stat_result) -> IndexEntry:
        times = found.st_mtime_ns, found.st_ctime_ns
        return cls(found.st_dev, found.st_ino, found.st_size, *times, found.st_mode, found.st_nlink)

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    def same_content(self, other: IndexEntry) -> bool:
        """Whether no time says that the content changed. A new link or a chmod moves the ctime alone."""
        mine = (self.inode, self.size, self.mtime_ns, stat.S_IFMT(self.mode))
        return mine == (other.inode, other.size, other.mtime_ns, stat.S_IFMT(other.mode))

    def touched_only(self, other: IndexEntry) -> bool:
        """Whether no more than the ctime differs: then somebody may have put the time of the last write back."""
        return self.same_content(other) and (self.mode, self.names) == (other.mode, other.names)

    def same(self, other: IndexEntry) -> bool:
        """Whether nothing changed. What happens in a directory moves its times, but is not a change of it."""
        if self.is_directory and other.is_directory:
            return (self.device, self.inode, self.mode) == (other.device, other.inode, other.mode)
        return self == other


def entry_of(path: str) -> IndexEntry | None:
    """What a path is now, the path itself and not where a link leads; None for nothing."""
    try:
        return IndexEntry.of(os.lstat(path))
    except OSError:
        return None


def is_gone(path: str) -> bool:
    """Whether there is nothing at a path. False where that can't be known, below a directory that is closed to us."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


class TreeIndex:
    """Entries by directory and name. Paths are absolute, without a final slash."""

    def __init__(self) -> None:
        self._directories: dict[str, dict[str, bytes]] = {}
        self.linked: set[str] = set()
        """Files with several names. A write by another name causes no event in their directory."""

    def __len__(self) -> int:
        return sum(map(len, self._directories.values()))

    def __iter__(self) -> Iterator[tuple[str, IndexEntry]]:
        for directory, names in list(self._directories.items()):
            for name, packed in list(names.items()):
                yield f"{directory}/{name}", IndexEntry(*_FORM.unpack(packed))

    def get(self, path: str) -> IndexEntry | None:
        directory, _, name = path.rpartition("/")
        packed = self._directories.get(directory, {}).get(name)
        return None if packed is None else IndexEntry(*_FORM.unpack(packed))

    def directories(self) -> list[str]:
        return list(self._directories)

    def moved(self, directory: str) -> list[str]:
        """The files and links in a directory whose ctime is not what it was. What is gone is not among them."""
        names = self._directories.get(directory)
        if not names:
            return []
        try:
            fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return []
        found: list[str] = []
        try:
            for name, packed in names.items():
                with contextlib.suppress(OSError):
                    now = os.stat(name, dir_fd=fd, follow_symlinks=False)
                    if now.st_ctime_ns != _CTIME.unpack_from(packed)[0] and not stat.S_ISDIR(now.st_mode):
                        found.append(f"{directory}/{name}")
        finally:
            os.close(fd)
        return found

    def names(self, directory: str) -> list[str]:
        return list(self._directories.get(directory, ()))

    def put(self, path: str, entry: IndexEntry) -> None:
        directory, _, name = path.rpartition("/")
        times = entry.mtime_ns, entry.ctime_ns
        packed = _FORM.pack(entry.device, entry.inode, entry.size, *times, entry.mode, entry.names)
        self._directories.setdefault(directory, {})[name] = packed
        if entry.names > 1 and not entry.is_directory:
            self.linked.add(path)
        else:
            self.linked.discard(path)

    def fill(self, directory: str) -> list[str]:
        """Adds the content of a directory of which nothing is known yet. Returns the directories in it."""
        names = self._directories[directory] = {}
        below: list[str] = []
        with contextlib.suppress(OSError), os.scandir(directory) as found:
            for entry in found:
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    names[entry.name] = _packed(status)
                    if entry.is_dir(follow_symlinks=False):
                        below.append(entry.path)
                    elif status.st_nlink > 1:
                        self.linked.add(entry.path)
        return below

    def remove(self, path: str) -> list[tuple[str, IndexEntry]]:
        """Removes a path and all below it. Returns what was there, the deepest first."""
        gone = [found for name in self.names(path) for found in self.remove(f"{path}/{name}")]
        self._directories.pop(path, None)
        entry = self.get(path)
        if entry is not None:
            directory, _, name = path.rpartition("/")
            del self._directories[directory][name]
            self.linked.discard(path)
            gone.append((path, entry))
        return gone


def _packed(found: os.stat_result) -> bytes:
    times = found.st_mtime_ns, found.st_ctime_ns
    return _FORM.pack(found.st_dev, found.st_ino, found.st_size, *times, found.st_mode, found.st_nlink)
