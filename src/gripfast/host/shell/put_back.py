"""Restores protected files after a command, where the sandbox can't prevent writing them: from copies made before."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gripfast.host.files.gitconfig import changed_part
from gripfast.host.kernel.shortage import is_shortage
from gripfast.host.shell.late import Protected
from gripfast.host.shell.quarantine import (
    CHANGED,
    Quarantined,
    make_directory,
    take_out,
    through_parent,
    was_released,
)
from gripfast.text.below import is_below

_MOST_FILES = 2000
_LARGEST, _MOST_BYTES = 1 << 20, 32 << 20


@dataclass(frozen=True, slots=True)
class _Copy:
    stamp: tuple[int, ...]
    content: bytes


class ProtectedCopies:
    """The content of protected files when a command began. Large files are skipped, and all beyond 2,000."""

    def __init__(self, roots: Sequence[str], unseen: Callable[[], Sequence[str]] = tuple) -> None:
        """`unseen`: directories that commands write and nobody looks through, so that no remote may be there."""
        self._roots = roots
        self._find_unseen = unseen
        self._copies: dict[str, _Copy] = {}
        self._names: dict[str, int] = {}
        self._configs: frozenset[str] = frozenset()
        self._protected: Protected | None = None
        self._files: frozenset[str] = frozenset()

    def take(self, protected: Protected) -> None:
        """Before a command. A file that has not changed is not read again."""
        copies: dict[str, _Copy] = {}
        room = _MOST_BYTES
        for path in _files(protected):
            if len(copies) >= _MOST_FILES:
                break
            copy = self._copy(path)
            if copy is not None and len(copy.content) <= room:
                copies[path] = copy
                room -= len(copy.content)
        self._copies = copies
        self._configs = frozenset(f"{owner}/config" for owner in protected.instructions)
        self._protected, self._files = protected, frozenset(_files(protected))
        self._names = {path: _kind(path) for path, name in protected.names.items() if not name.is_link}

    def _copy(self, path: str) -> _Copy | None:
        known = self._copies.get(path)
        if known is not None and known.stamp == _stamp(path):
            return known
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as fault:
            if is_shortage(fault):
                raise
            return None
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            content = file.read(_LARGEST + 1)
            return _Copy(_stamp(path), content) if len(content) <= _LARGEST else None

    def put_back(self, *, settings_only: bool = False) -> list[Quarantined]:
        """After a command: what it changed goes to quarantine, and the file is as it was. Settings of git that run
        nothing stay. `settings_only`: while one runs in the background, so that what the user writes stays."""
        names = () if settings_only else self._names.items()
        replaced = [path for path, kind in names if _kind(path) not in (kind, 0)]
        taken = [item for path in replaced if (item := take_out(path, CHANGED)) is not None]
        for path, copy in self._copies.items():
            if _stamp(path) != copy.stamp and (path in self._configs or not settings_only):
                link = self._link_above(path)
                taken += filter(None, [take_out(link, CHANGED) if link else None])
                taken += self._restored(path, copy)
        return taken

    def _restored(self, path: str, copy: _Copy) -> Iterator[Quarantined]:
        now = _content(path)
        if path not in self._configs or now is None or now == copy.content:
            yield from _restored(path, copy, copy.content, CHANGED)
            return
        where = os.path.dirname(os.path.dirname(path))
        judged = changed_part(os.fsdecode(copy.content), os.fsdecode(now), where, self._find_unseen())
        wanted = os.fsencode(judged.text)
        if wanted != now:
            names = ", ".join(dict.fromkeys(judged.refused[:5]))
            yield from _restored(path, copy, wanted, f"settings that may run programs: {names}")

    def take_new(self) -> list[Quarantined]:
        """What was made in a protected directory since, such as a hook beside the others."""
        found = _files(self._protected) if self._protected else ()
        new = [path for path in found if path not in self._files and not path.endswith(".sample")]
        taken = (
            take_out(path, "made in a protected directory by a command") for path in new if not was_released(path)
        )
        return [item for item in taken if item is not None]

    def _link_above(self, path: str) -> str | None:
        """A link that took the place of a directory above a file, if a command could have put it there."""
        above = os.path.dirname(path)
        links: list[str] = []
        while is_below(above, *self._roots) and above not in self._roots:
            links += [above] if os.path.islink(above) else []
            above = os.path.dirname(above)
        return links[-1] if links else None


def _files(protected: Protected) -> Iterator[str]:
    """Files whose content counts: protected ones, those in protected directories, and what git follows."""
    for path, name in protected.names.items():
        if name.kind == "protected" and not name.is_link:
            yield from _below(path)
    for owner, names in protected.instructions.items():
        for name in sorted(names):
            yield from _below(f"{owner}/{name}")


def _below(path: str) -> Iterator[str]:
    if not os.path.isdir(path) or os.path.islink(path):
        yield path
        return
    for folder, folders, files in os.walk(path):
        yield from (os.path.join(folder, name) for name in files)
        yield from (link for name in folders if os.path.islink(link := os.path.join(folder, name)))


def _kind(path: str) -> int:
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode


def _restored(path: str, copy: _Copy, wanted: bytes, reason: str) -> Iterator[Quarantined]:
    mode = stat.S_IMODE(copy.stamp[4])
    if _content(path) == copy.content:  # the mode alone, or a time
        with contextlib.suppress(OSError), through_parent(path) as place:
            os.chmod(place, mode)
        return
    item = take_out(path, reason) if os.path.lexists(path) else None
    with contextlib.suppress(OSError):
        make_directory(os.path.dirname(path))
        with through_parent(path) as place:
            fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            with open(fd, "wb") as file:
                file.write(wanted)
                os.fchmod(fd, mode)
    if item is not None:
        yield item


def _content(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        return file.read(_LARGEST + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else None
