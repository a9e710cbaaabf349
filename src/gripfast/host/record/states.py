"""PathState: what was at a path, in the form the record keeps it."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import replace
from typing import Any, Literal

from gripfast.host.kernel.regular import READ_FLAGS
from gripfast.records import dataclass

Kind = Literal["absent", "file", "directory", "link", "other"]
_KINDS = ("absent", "file", "directory", "link", "other")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class PathState:
    """Kind, mode bits, and the content: a file's by SHA-256, a link's by its target. A file whose content was not
    read has no digest; then `stamp` (inode, size, mtime) shows whether it is still the same."""

    kind: Kind
    mode: int = 0
    digest: str | None = None
    size: int = 0
    target: str | None = None
    stamp: tuple[int, int, int] | None = None

    def is_same(self, other: PathState) -> bool:
        """Whether two states are the same, as far as is known. Unknown content proves nothing."""
        if (self.kind, self.target) != (other.kind, other.target):
            return False
        if self.kind in ("absent", "link"):
            return True
        if self.mode != other.mode or self.kind != "file":
            return self.mode == other.mode and self.kind == "directory"
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return self.stamp is not None and self.stamp == other.stamp

    @property
    def largest_equal(self) -> int:
        """How many bytes of a file have to be read at most to compare it with this: a larger one differs, and where
        no digest is known only the stamp counts."""
        return self.size if self.digest is not None else -1

    def to_json(self) -> dict[str, Any]:
        """Only what the kind has."""
        shown: dict[str, Any] = {"kind": self.kind}
        if self.kind in ("file", "directory", "other"):
            shown["mode"] = f"{self.mode:04o}"
        if self.kind == "file":
            shown |= {"sha256": self.digest, "size": self.size}
        if self.stamp is not None and self.digest is None:
            shown["stamp"] = list(self.stamp)
        return shown | ({"target": self.target} if self.target is not None else {})

    @classmethod
    def from_json(cls, value: Any) -> PathState:
        """Raises ValueError, KeyError or TypeError for anything that `to_json` did not write."""
        kind = value["kind"]
        if kind not in _KINDS:
            raise ValueError(f"unknown kind {kind!r}")
        stamp = value.get("stamp")
        digest = value.get("sha256")
        if digest is not None and not (isinstance(digest, str) and len(digest) == 64 and digest.isalnum()):
            raise ValueError("not a SHA-256")
        return cls(
            kind,
            int(value.get("mode", "0"), 8) & 0o7777,
            digest,
            int(value.get("size", 0)),
            value.get("target"),
            None if stamp is None else (int(stamp[0]), int(stamp[1]), int(stamp[2])),
        )


ABSENT = PathState("absent")


def file_state(data: bytes, mode: int) -> PathState:
    return PathState("file", mode, hashlib.sha256(data).hexdigest(), len(data))


def state_of(found: os.stat_result) -> PathState:
    """What `lstat` alone shows: no content, no target."""
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISDIR(found.st_mode):
        return PathState("directory", mode)
    if stat.S_ISLNK(found.st_mode):
        return PathState("link")
    if not stat.S_ISREG(found.st_mode):
        return PathState("other", mode)
    stamp = (found.st_ino, found.st_size, found.st_mtime_ns)
    return PathState("file", mode, size=found.st_size, stamp=stamp)


def state_at(name: str, dir_fd: int | None = None, *, largest: int) -> PathState:
    """What is at a name now, with its content's digest unless it is larger than `largest`. Links are not followed."""
    try:
        found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        state = state_of(found)
        if state.kind == "link":
            return replace(state, target=os.readlink(name, dir_fd=dir_fd))
        if state.kind != "file" or found.st_size > largest:
            return state
        fd = os.open(name, READ_FLAGS, dir_fd=dir_fd)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except PermissionError:
        return state_of(os.stat(name, dir_fd=dir_fd, follow_symlinks=False))
    try:
        return _hashed(fd, largest)
    finally:
        os.close(fd)


def _hashed(fd: int, largest: int) -> PathState:
    found, digest, size = os.fstat(fd), hashlib.sha256(), 0
    if not stat.S_ISREG(found.st_mode):
        return state_of(found)
    while chunk := os.read(fd, _CHUNK):
        digest.update(chunk)
        size += len(chunk)
        if size > largest:  # it grows while it is read
            return state_of(os.fstat(fd))
    return replace(state_of(found), digest=digest.hexdigest(), size=size)
