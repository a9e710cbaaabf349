"""Hook directories of commands: they work on a throw-away copy, so that `husky` or `pre-commit install` succeed.

Inside bubblewrap the copy is mounted over the directory. What commands change in it goes to quarantine, and the copy
is made the same as the directory again. The directory itself is never in a command's reach.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from gripfast.host.files.sealed import entries_of
from gripfast.host.kernel.regular import beginning_of
from gripfast.host.shell.made import identity_of
from gripfast.host.shell.quarantine import CHANGED, MADE, REMOVED, Quarantined, take_out, through_parent
from gripfast.host.shell.walls import HOOKS, CopyOver
from gripfast.records import dataclass

_MOST_COPIES, _MOST_NAMES, _MOST_BYTES = 32, 300, 2 << 20
_COPIED = (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)


@dataclass(frozen=True, slots=True)
class _HookFile:
    """A name in a hook directory: the kind of file, whether it can be run, its content or where it leads."""

    kind: int
    runs: bool = False
    content: bytes = b""


@dataclass(slots=True)
class _Copy:
    """`entries` is what the directory and the copy held when they were last the same, `stamps` tells whether either
    was touched since."""

    over: CopyOver
    real: tuple[int, int] | None
    entries: Mapping[str, _HookFile]
    stamps: tuple[object, ...] = ()


class HookCopies:
    """The copies of one session, in a directory that commands can't see."""

    def __init__(self, temporary: str) -> None:
        self._folder = f"{temporary}/{HOOKS}"
        os.mkdir(self._folder, 0o700)
        self._copies: dict[str, _Copy] = {}
        self._numbers = 0

    def over(self, paths: Sequence[str]) -> Mapping[str, CopyOver]:
        """What is mounted over these directories. One without a copy can only be read: it is large, or odd."""
        for path, copy in list(self._copies.items()):
            if identity_of(path) != copy.real or identity_of(copy.over.folder) != copy.over.identity:
                del self._copies[path]
        for path in paths:
            if path not in self._copies and len(self._copies) < _MOST_COPIES:
                self._add(path)
        return {path: self._copies[path].over for path in paths if path in self._copies}

    def _add(self, path: str) -> None:
        real, entries = identity_of(path), _entries(path)
        if entries is None or any(entry.kind not in _COPIED for entry in entries.values()):
            return
        self._numbers += 1
        folder = f"{self._folder}/{self._numbers}"
        with suppress(OSError):
            os.mkdir(folder, 0o755)
            found = os.lstat(folder)
            self._copies[path] = _Copy(CopyOver(folder, (found.st_dev, found.st_ino)), real, entries)
            _make_same(folder, {}, entries)

    def settle(self) -> list[Quarantined]:
        """What commands changed in the copies goes to quarantine; what the user changed reaches the next command."""
        return [item for path, copy in list(self._copies.items()) for item in self._settled(path, copy)]

    def _settled(self, path: str, copy: _Copy) -> Iterator[Quarantined]:
        folder = copy.over.folder
        stamps = _stamps(path), _stamps(folder)
        if None not in stamps and stamps == copy.stamps:
            return
        private, real = _entries(folder, ours=True), _entries(path)
        if private is None:
            yield from _taken([(CHANGED, path, folder)])
        if private is None or real is None:
            del self._copies[path]
            return
        changes = _changes(copy.entries, private)
        yield from _taken([(reason, f"{path}/{name}", f"{folder}/{name}") for name, reason in changes])
        _make_same(folder, _entries(folder, ours=True) or {}, real)
        copy.entries, copy.stamps = real, (_stamps(path), _stamps(folder))


def _taken(changes: Sequence[tuple[str, str, str]]) -> Iterator[Quarantined]:
    for reason, path, place in changes:
        item = Quarantined("", path, REMOVED, time.time()) if reason == REMOVED else take_out(path, reason, place)
        if item is not None:
            yield item


def _changes(before: Mapping[str, _HookFile], now: Mapping[str, _HookFile]) -> Iterator[tuple[str, str]]:
    """The outermost names that differ, and how. Git itself puts samples beside hooks."""
    told: set[str] = set()
    for name in sorted({*before, *now}):
        if before.get(name) == now.get(name) or name.endswith(".sample"):
            continue
        told.add(name)
        if os.path.dirname(name) not in told:
            yield name, REMOVED if name not in now else CHANGED if name in before else MADE


def _make_same(folder: str, now: Mapping[str, _HookFile], wanted: Mapping[str, _HookFile]) -> None:
    """Only what differs is touched. A link that a running command swaps in is not followed."""
    for name in sorted(now, reverse=True):
        if now[name] != wanted.get(name):
            with suppress(OSError), through_parent(f"{folder}/{name}") as place:
                (os.rmdir if now[name].kind == stat.S_IFDIR else os.unlink)(place)
    for name in sorted(wanted):
        if now.get(name) != wanted[name]:
            with suppress(OSError), through_parent(f"{folder}/{name}") as place:
                _make(place, wanted[name])


def _make(place: str, entry: _HookFile) -> None:
    if entry.kind == stat.S_IFDIR:
        os.mkdir(place, 0o755)
    elif entry.kind == stat.S_IFLNK:
        os.symlink(entry.content, os.fsencode(place))
    else:
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(entry.content)
            os.fchmod(fd, 0o755 if entry.runs else 0o644)


def _entries(folder: str, *, ours: bool = False) -> dict[str, _HookFile] | None:
    """All that is in a directory, by its path in it; None if that is too much for a directory of hooks. `ours`: what
    a command closed is opened again."""
    found: dict[str, _HookFile] = {}
    room = _MOST_BYTES
    for name, state in _names(folder, unseal=ours):
        found[name] = _entry(f"{folder}/{name}", state, room + 1)
        room -= len(found[name].content)
        if room < 0 or len(found) > _MOST_NAMES:
            return None
    return found


def _entry(path: str, state: os.stat_result, most: int) -> _HookFile:
    kind = stat.S_IFMT(state.st_mode)
    if kind == stat.S_IFREG:
        return _HookFile(kind, bool(state.st_mode & stat.S_IXUSR), beginning_of(path, most) or b"")
    if kind == stat.S_IFLNK:
        with suppress(OSError):
            return _HookFile(kind, content=os.fsencode(os.readlink(path)))
    return _HookFile(kind)


def _stamps(folder: str) -> tuple[object, ...] | None:
    """Changes whenever something in a directory does; None if there is too much in it."""
    rows: list[object] = []
    for name, state in _names(folder):
        rows.append((name, state.st_ino, state.st_mode, state.st_size, state.st_mtime_ns, state.st_ctime_ns))
        if len(rows) > _MOST_NAMES:
            return None
    return tuple(rows)


def _names(folder: str, above: str = "", *, unseal: bool = False) -> Iterator[tuple[str, os.stat_result]]:
    for entry in sorted(entries_of(f"{folder}/{above}", unseal=unseal) or (), key=lambda entry: entry.name):
        with suppress(FileNotFoundError):
            state = entry.stat(follow_symlinks=False)
            yield f"{above}{entry.name}", state
            if stat.S_ISDIR(state.st_mode):
                yield from _names(folder, f"{above}{entry.name}/", unseal=unseal)
