"""Quarantine: what commands made and other programs would run, kept until a person releases it."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from gripfast.errors import Conflict, NotFound
from gripfast.host.files.sealed import entries_of
from gripfast.host.kernel.regular import beginning_of
from gripfast.host.kernel.sparse import copy_file
from gripfast.host.program.places import private_directory, state_directory
from gripfast.records import dataclass

_FACTS, _CONTENT, _TAKEN, _COPY = "facts.json", "content", "taken", "copy"
_SHOWN_BYTES = 100_000
_COPIED_BYTES, _ENTRY_BYTES = 64 << 20, 4096
CHANGED = "a protected file that a command changed"
REMOVED = "a protected file that a command removed"
MADE = "made in a protected directory by a command"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Something that was taken out: where it was, why it was taken, and when."""

    id: str
    path: str
    reason: str
    time: float

    @property
    def content(self) -> Path:
        """Where it is kept now: the copy, or what was taken out while there is no copy yet."""
        place = self._folder / _CONTENT
        is_copied = os.path.lexists(place) or not os.path.lexists(self._folder / _TAKEN)
        return place if is_copied else self._folder / _TAKEN

    @property
    def was_replaced(self) -> bool:
        """Whether the file is there again as it was before the command."""
        return self.reason.startswith(CHANGED)

    @property
    def _folder(self) -> Path:
        return _folder() / self.id

    def detach(self, most: int | None = None) -> None:
        """Replaces what was taken by a copy. A command may have other names for it, or hold it open, and could
        change it after a person has looked. Raises OSError where that is not possible."""
        taken, copy, content = (str(self._folder / name) for name in (_TAKEN, _COPY, _CONTENT))
        if os.path.lexists(content) or not os.path.lexists(taken):
            return
        try:
            _copy(taken, copy, most)
        except OSError:
            _remove(copy)
            raise
        is_special = not os.path.lexists(copy)  # a pipe, socket or device holds nothing
        os.rename(taken if is_special else copy, content)
        _remove(taken)


def take_out(path: str, reason: str, lies_at: str = "") -> Quarantined | None:
    """Moves a file, link or directory into quarantine. None: it is gone already. If the quarantine can't be written,
    or is on another disk and it is large, it stays under a name that nobody runs. `lies_at`: where it is, if a copy
    of its directory was mounted over `path`."""
    try:
        item = _new(path, reason)
    except (OSError, RuntimeError):
        return _set_aside(path, reason, lies_at or path)
    taken = item.content.with_name(_TAKEN)
    try:
        with through_parent(lies_at or path) as place:
            _move(place, str(taken), _COPIED_BYTES)
    except OSError as fault:
        shutil.rmtree(taken.parent, ignore_errors=True)
        return None if isinstance(fault, FileNotFoundError) else _set_aside(path, reason, lies_at or path)
    with suppress(OSError):  # too large, or no room: it is copied when it is released
        item.detach(_COPIED_BYTES)
    return item


def _set_aside(path: str, reason: str, lies_at: str) -> Quarantined | None:
    """Renames something in its own directory, which needs no room on a disk that is full."""
    name = f"{os.path.basename(path)[:200]}.taken-out-{secrets.token_hex(4)}"
    try:
        with through_parent(lies_at) as place:
            os.rename(place, os.path.join(os.path.dirname(place), name))
    except FileNotFoundError:
        return None
    return Quarantined("", path, f"{reason}; the quarantine has no room for it, so it is now {name}", time.time())


@contextmanager
def through_parent(path: str) -> Generator[str]:
    """A spelling of a path that leads through its held directory: a link swapped in above it can't turn it elsewhere.
    FileNotFoundError: that already happened."""
    folder, name = os.path.split(path)
    if sys.platform != "linux":
        if os.path.realpath(folder) != folder:
            raise FileNotFoundError(path)
        yield path
        return
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if os.readlink(f"/proc/self/fd/{fd}") != folder:
            raise FileNotFoundError(path)
        yield f"/proc/self/fd/{fd}/{name}"
    finally:
        os.close(fd)


def restore(path: str, content: bytes, mode: int, reason: str) -> Quarantined | None:
    """Makes a path the file it was; what is there now goes to quarantine. On a full disk the file is missing until
    the next look."""
    item = take_out(path, reason) if os.path.lexists(path) else None
    with suppress(OSError):
        make_directory(os.path.dirname(path))
        with through_parent(path) as place:
            fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            try:
                with open(fd, "wb") as file:
                    file.write(content)
                    os.fchmod(fd, mode)
            except OSError:
                os.unlink(place)
    return item


def restore_mode(path: str, mode: int) -> None:
    with suppress(OSError), through_parent(path) as place:
        os.chmod(place, mode)


def keep_copy(path: str, content: bytes, reason: str) -> Quarantined:
    """Keeps the old content of a file that is about to be cleaned in place."""
    item = _new(path, reason)
    item.content.write_bytes(content)
    return item


def quarantined() -> list[Quarantined]:
    """All there is, the oldest first."""
    return sorted(_items(), key=lambda item: item.time)


def find_quarantined(id: str) -> Quarantined:
    """One item by its id, or by the beginning of it where that is enough."""
    found = [item for item in _items() if id and item.id.startswith(id)]
    if len(found) != 1:
        raise NotFound(f"{len(found) or 'no'} quarantined items begin with {id!r}; `gripfast quarantine` lists them")
    return found[0]


def shown(item: Quarantined) -> str:
    """What an item says, for a person: a file's text, a link's target, the names in a directory."""
    place = item.content
    if place.is_symlink():
        return f"a link to {os.readlink(place)}"
    if place.is_dir():
        return "\n".join(sorted(str(path.relative_to(place)) for path in place.rglob("*")))
    data = beginning_of(str(place), _SHOWN_BYTES)
    return "not a regular file" if data is None else data.decode(errors="replace")


def release(item: Quarantined) -> None:
    """Puts it back where it was. Raises Conflict if something else is there now."""
    if os.path.lexists(item.path) and not item.was_replaced and not item.reason.startswith("settings"):
        raise Conflict(f"{item.path!r} exists; move it away first, or copy what you need from {str(item.content)!r}")
    item.detach()
    try:
        make_directory(os.path.dirname(item.path))
        with through_parent(item.path) as place:
            if os.path.lexists(place):
                os.unlink(place)
            _move(str(item.content), place)
            _note_released(item.path, place)
    except (FileNotFoundError, NotADirectoryError):
        raise Conflict(
            f"the way to {item.path!r} now leads through a link or a file; move that away first, or copy what you "
            f"need from {str(item.content)!r}"
        ) from None
    shutil.rmtree(item.content.parent)


def make_directory(path: str) -> None:
    """Makes a directory and those above it, never through a link."""
    if not os.path.lexists(path):
        make_directory(os.path.dirname(path))
        with through_parent(path) as place:
            os.mkdir(place)


def was_released(path: str) -> bool:
    """Whether what is at a path is what a person released there."""
    try:
        return (_folder() / _released_name(path)).read_text(encoding="utf-8") == _identity(path)
    except OSError:
        return False


def _note_released(path: str, place: str) -> None:
    (_folder() / _released_name(path)).write_text(_identity(place), encoding="utf-8")


def _released_name(path: str) -> str:
    return f"released-{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}"


def _identity(path: str) -> str:
    found = os.lstat(path)
    return f"{found.st_dev} {found.st_ino} {found.st_ctime_ns}"


def discard(item: Quarantined) -> None:
    """Deletes it for good."""
    shutil.rmtree(item.content.parent)


def _folder() -> Path:
    return private_directory(private_directory(state_directory()) / "quarantine")


def _new(path: str, reason: str) -> Quarantined:
    item = Quarantined(secrets.token_hex(4), path, reason, time.time())
    place = private_directory(item.content.parent)
    (place / _FACTS).write_text(json.dumps(asdict(item)), encoding="utf-8")
    return item


def _items() -> Iterator[Quarantined]:
    for place in _folder().iterdir():
        try:
            facts = json.loads((place / _FACTS).read_text(encoding="utf-8"))
            yield Quarantined(place.name, str(facts["path"]), str(facts["reason"]), float(facts["time"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # somebody else's, or one that is being made


def _move(source: str, target: str, most: int | None = None) -> None:
    """By rename where both are on one disk; else copied, at most so many bytes, then removed. Links are moved as
    links."""
    try:
        os.rename(source, target)
        return
    except FileNotFoundError:
        raise
    except OSError:
        pass
    try:
        _copy(source, target, most)
    except OSError:
        _remove(target)
        raise
    _remove(source)


def _copy(source: str, target: str, most: int | None) -> int:
    """Copies a file, link or directory, and returns its size. Pipes, sockets and devices are left out."""
    found = os.lstat(source)
    if most is not None and max(found.st_size, _ENTRY_BYTES) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISREG(found.st_mode):
        _copy_file(source, target, found)
    elif stat.S_ISDIR(found.st_mode):
        return _copy_directory(source, target, most)
    return max(found.st_size, _ENTRY_BYTES)


def _copy_directory(source: str, target: str, most: int | None) -> int:
    os.mkdir(target, 0o700)
    size = _ENTRY_BYTES
    for entry in entries_of(source, unseal=True) or ():
        size += _copy(entry.path, f"{target}/{entry.name}", None if most is None else most - size)
    os.chmod(target, stat.S_IMODE(os.lstat(source).st_mode) | stat.S_IRWXU)
    return size


def _copy_file(source: str, target: str, found: os.stat_result) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if not mode & stat.S_IRUSR:
        os.chmod(source, mode | stat.S_IRUSR)
    copy_file(source, target, mode)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.unlink(path)
