"""Contents: files by the hash of what is in them, each kept once, in a private directory."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import Generator
from pathlib import Path

from gripfast.host.program.places import private_directory

_FICLONE = 0x40049409  # ioctl_ficlone(2): share the blocks, where the file system can
_CHUNK = 1 << 20
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Contents:
    """A store of at most `room` bytes. OSError says why something could not be kept."""

    def __init__(self, directory: Path, room: int) -> None:
        self.directory = directory
        self._text = str(directory)
        self._room = room
        self._made: set[str] = set()
        self.size = 0

    def place(self, digest: str) -> str:
        return f"{self._text}/{digest[:2]}/{digest}"

    def has(self, digest: str | None) -> bool:
        return digest is not None and os.path.exists(self.place(digest))

    def put(self, data: bytes) -> str:
        """Keeps some bytes. Returns their SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        if not self.has(digest):
            self._check_room(len(data))
            temporary, fd = self._fresh()
            with _removed_on_failure(temporary):
                try:
                    _write_all(fd, data)
                finally:
                    os.close(fd)
                self._publish(temporary, digest, len(data))
        return digest

    def put_file(self, source: int) -> str:
        """Keeps what an open file holds, sharing its blocks where the file system can. What is added to it meanwhile
        is left out."""
        most = os.fstat(source).st_size
        self._check_room(most)
        temporary, fd = self._fresh()
        with _removed_on_failure(temporary):
            try:
                with contextlib.suppress(OSError):
                    fcntl.ioctl(fd, _FICLONE, source)
                if os.fstat(fd).st_size > most:
                    os.ftruncate(fd, most)
                digest, size = _copied(source, fd, most) if os.fstat(fd).st_size == 0 else _hashed(fd)
            finally:
                os.close(fd)
            if self.has(digest):
                os.unlink(temporary)
            else:
                self._publish(temporary, digest, size)
            return digest

    def get(self, digest: str | None) -> bytes | None:
        """The bytes with this SHA-256; None if they are not here, or are not what they were."""
        if digest is None:
            return None
        try:
            with open(self.place(digest), "rb") as file:
                data = file.read()
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    def drop(self, digest: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.place(digest))

    @property
    def room(self) -> int:
        """How many bytes more can be kept."""
        return self._room - self.size

    def _check_room(self, size: int) -> None:
        if size > self.room:
            raise OSError(122, "the record's quota is used up")

    def _fresh(self) -> tuple[str, int]:
        if "" not in self._made:
            private_directory(self.directory)
            self._made.add("")
        temporary = f"{self._text}/tmp-{secrets.token_hex(8)}"
        return temporary, os.open(temporary, _NEW, 0o600)

    def _publish(self, temporary: str, digest: str, size: int) -> None:
        place = self.place(digest)
        if digest[:2] not in self._made:
            Path(place).parent.mkdir(mode=0o700, exist_ok=True)
            self._made.add(digest[:2])
        os.rename(temporary, place)
        self.size += size


@contextlib.contextmanager
def _removed_on_failure(path: str) -> Generator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise


def _write_all(fd: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def _copied(source: int, target: int, most: int) -> tuple[str, int]:
    digest, at = hashlib.sha256(), 0
    while chunk := os.pread(source, min(_CHUNK, most - at), at):
        digest.update(chunk)
        os.pwrite(target, chunk, at)
        at += len(chunk)
    return digest.hexdigest(), at


def _hashed(fd: int) -> tuple[str, int]:
    digest, at = hashlib.sha256(), 0
    while chunk := os.pread(fd, _CHUNK, at):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest(), at
