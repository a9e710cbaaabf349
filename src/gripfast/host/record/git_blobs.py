"""What git already keeps: contents of files that are as they were when they were added. Read only, never written.

The index is read here (https://git-scm.com/docs/index-format); objects come from `git cat-file --batch`, with nothing
of the repository's configuration that could start a program.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import struct
import subprocess
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from gripfast.host.files.tree_index import IndexEntry
from gripfast.host.kernel.regular import beginning_of
from gripfast.host.program.programs import find_program
from gripfast.host.program.repository import waits_for_nobody
from gripfast.text.below import is_below

_HEAD = struct.Struct(">4sII")
_FIXED = struct.Struct(">10I20sH")
_SAFE = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never"),
    *("-c", "core.untrackedCache=false", "-c", "core.pager=cat", "-c", "core.sshCommand=false"),
)
_LIST_SECONDS = 20.0
_REGULAR = 0o100000
_LARGEST = 1 << 30


class GitBlobs:
    """The repository at the top of a directory, if there is one that can be used."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._git = find_program("git", [root])
        self._batch: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[int, int, int, str]] = {}
        directory = _git_directory(root)
        if self._git and directory is not None and not _may_filter(root, directory):
            with contextlib.suppress(OSError, ValueError, struct.error, IndexError):
                self._entries = dict(_index_entries(directory / "index"))

    def held(self, files: Mapping[str, IndexEntry]) -> dict[str, str]:
        """The object that holds a file's content, by path, for files that are what the index says. Not for those that
        git keeps in another form, such as with other line ends: the size tells, or an attribute."""
        clean = {path: oid for path, entry in files.items() if (oid := self._clean(path, entry)) is not None}
        sizes = self._sizes(frozenset(clean.values()))
        converted = _converted_below(files)
        return {
            path: oid
            for path, oid in clean.items()
            if sizes.get(oid) == files[path].size and not (converted and is_below(path, *converted))
        }

    def _clean(self, path: str, entry: IndexEntry) -> str | None:
        found = self._entries.get(path[len(self._root) + 1 :])
        if found is None or found[:3] != (entry.mtime_ns, entry.size, entry.inode & 0xFFFFFFFF):
            return None
        return found[3]

    def _sizes(self, objects: Collection[str]) -> dict[str, int]:
        """The size of each of these objects that git has. One that was pruned, or never fetched, is not in it; where
        git gives up at a missing one, those after it are not either."""
        directory = _git_directory(self._root)
        if not objects or not self._git or directory is None or not waits_for_nobody(str(directory)):
            return {}
        arguments = ["cat-file", "--buffer", "--batch-check=%(objectname) %(objectsize)"]
        try:
            done = subprocess.run(
                [self._git, *_SAFE, *arguments],
                cwd=self._root,
                env=_environment(),
                input="".join(f"{oid}\n" for oid in objects).encode(),
                capture_output=True,
                timeout=_LIST_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return {}
        rows = (line.decode().split() for line in done.stdout.splitlines())
        return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdecimal()}

    def ignored(self) -> tuple[str, ...]:
        """Absolute paths that git ignores; directories end with a slash."""
        directory = _git_directory(self._root)
        if not self._git or directory is None or not waits_for_nobody(str(directory)):
            return ()
        arguments = ["ls-files", "-o", "-i", "--exclude-standard", "--directory", "-z"]
        try:
            done = subprocess.run(
                [self._git, *_SAFE, *arguments],
                cwd=self._root,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LIST_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return ()
        return tuple(f"{self._root}/{os.fsdecode(name)}" for name in done.stdout.split(b"\0") if name)

    def read(self, oid: str) -> bytes | None:
        """The content of an object, checked against its name."""
        with self._lock:
            try:
                data = self._read(oid)
            except TimeoutError:
                self._end()
                self._git = ""
                return None
            except (OSError, ValueError):
                self._end()
                return None
        named = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        return data if named == oid else None

    def _read(self, oid: str) -> bytes:
        if self._batch is None:
            directory = _git_directory(self._root)
            if not self._git or directory is None or not waits_for_nobody(str(directory)):
                raise ValueError("git can't be asked")
            self._batch = subprocess.Popen(
                [self._git, *_SAFE, "cat-file", "--batch"],
                cwd=self._root,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        assert self._batch.stdin is not None and self._batch.stdout is not None, "both are pipes"
        self._batch.stdin.write(oid.encode() + b"\n")
        self._batch.stdin.flush()
        waiting = select.poll()
        waiting.register(self._batch.stdout, select.POLLIN | select.POLLHUP)
        if not waiting.poll(_LIST_SECONDS * 1000):
            raise TimeoutError("git waits for something, such as a FIFO in the place of an object")
        head = self._batch.stdout.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise ValueError("not a blob")
        data = self._batch.stdout.read(int(head[2]))
        self._batch.stdout.read(1)
        return data

    def _end(self) -> None:
        if self._batch is not None:
            self._batch.kill()
            self._batch.communicate()
            self._batch = None

    def close(self) -> None:
        with self._lock:
            self._end()


def _environment() -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        # The repository is the user's own choice of workspace; nothing of it is run.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


def ignored_below(roots: Sequence[str]) -> Callable[[str], bool]:
    """Whether git ignores a path below these roots. git is asked once, when that is first wanted."""

    @cache
    def names() -> tuple[str, ...]:
        return tuple(name.rstrip("/") for root in roots for name in GitBlobs(root).ignored())

    return lambda path: is_below(path, *names()) if names() else False


def _git_directory(root: str) -> Path | None:
    """The repository's own directory, also of a worktree, whose `.git` is a file."""
    place = Path(root, ".git")
    if place.is_file():
        with contextlib.suppress(OSError, UnicodeDecodeError):
            named = (_content(place) or b"").decode().removeprefix("gitdir:").strip()
            place = Path(root, named)
    return place if (place / "HEAD").is_file() else None


def _content(file: Path) -> bytes | None:
    """What a regular file holds, also through links: an open FIFO would wait for somebody to write."""
    return beginning_of(os.path.realpath(file), _LARGEST)


def _converted_below(paths: Iterable[str]) -> tuple[str, ...]:
    """The directories whose own `.gitattributes` may make files differ from their objects even at the same size."""
    files = (path for path in paths if path.endswith("/.gitattributes"))
    return tuple(os.path.dirname(file) for file in files if _names_conversion(_content(Path(file)) or b""))


def _names_conversion(text: bytes) -> bool:
    return b"filter" in text or b"working-tree-encoding" in text


def _may_filter(root: str, directory: Path) -> bool:
    """Whether files may differ from their objects even at the same size: filters, or another hash."""
    common = directory
    with contextlib.suppress(UnicodeDecodeError):
        common = directory / (_content(directory / "commondir") or b"").decode().strip()
    places = [Path(root, ".gitattributes"), common / "info" / "attributes", common / "config"]
    texts = [_content(place) or b"" for place in places]
    return any(_names_conversion(text) or b"objectformat" in text.lower() for text in texts)


def _index_entries(file: Path) -> Iterator[tuple[str, tuple[int, int, int, str]]]:
    """Path to (mtime, size, inode, object), without entries that were changed when the index was written or later."""
    data, written = _content(file) or b"", file.stat().st_mtime_ns
    magic, version, count = _HEAD.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("not an index that can be read here")
    at, name = _HEAD.size, b""
    for _ in range(count):
        fields = _FIXED.unpack_from(data, at)
        start = at + _FIXED.size + (2 if version >= 3 and fields[11] & 0x4000 else 0)
        name, end = _name(data, start, name, version)
        at = end if version == 4 else at + ((end - at + 8) & ~7)
        mtime = fields[2] * 1_000_000_000 + fields[3]
        if fields[6] & 0o170000 == _REGULAR and not fields[11] & 0x3000 and mtime < written:
            yield os.fsdecode(name), (mtime, fields[9], fields[5], fields[10].hex())


def _name(data: bytes, start: int, before: bytes, version: int) -> tuple[bytes, int]:
    """A path and where it ends. Version 4 says how much of the last one to drop first."""
    if version < 4:
        end = data.index(b"\0", start)
        return data[start:end], end
    drop = data[start] & 0x7F
    while data[start] & 0x80:
        start += 1
        drop = ((drop + 1) << 7) | (data[start] & 0x7F)
    end = data.index(b"\0", start + 1)
    return before[: len(before) - drop] + data[start + 1 : end], end + 1
