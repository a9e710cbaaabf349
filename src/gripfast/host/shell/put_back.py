"""Restores protected files after a command, where the sandbox can't prevent writing them: from copies made before."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from gripfast.host.files.gitconfig import changed_part
from gripfast.host.files.gitremotes import leads_astray
from gripfast.host.files.sealed import entries_of
from gripfast.host.kernel.regular import beginning_of
from gripfast.host.shell.held_roots import Place, keys_at
from gripfast.host.shell.late import LIST, Protected, leads_home
from gripfast.host.shell.quarantine import (
    CHANGED,
    MADE,
    Quarantined,
    restore,
    restore_mode,
    take_out,
    was_released,
)
from gripfast.records import dataclass
from gripfast.text.below import is_below

_MOST_FILES = 2000
_LARGEST, _MOST_BYTES = 1 << 20, 32 << 20


@dataclass(frozen=True, slots=True)
class _ProtectedCopy:
    """A file's content. `within` is a directory that may be removed as a whole: then the file is not restored."""

    stamp: tuple[int, ...]
    content: bytes
    within: str


class ProtectedCopies:
    """The content of protected files when a command began. Large files are skipped, and all beyond 2,000."""

    def __init__(self, roots: Sequence[str], unseen: Callable[[], Sequence[str]] = tuple) -> None:
        """`unseen`: directories that commands write and nobody looks through, so that no remote may be there."""
        self._roots = roots
        self._find_unseen = unseen
        self._copies: dict[str, _ProtectedCopy] = {}
        self._names: dict[str, int] = {}
        self._configs: frozenset[str] = frozenset()
        self._protected: Protected | None = None
        self._files: frozenset[str] = frozenset()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_find_unseen": tuple(self._find_unseen())}

    def __setstate__(self, state: dict[str, object]) -> None:
        unseen = cast("tuple[str, ...]", state["_find_unseen"])
        self.__dict__.update({**state, "_find_unseen": lambda: unseen})

    def relocated(self, place: Place) -> ProtectedCopies:
        """The same after roots were moved."""
        moved = ProtectedCopies([*keys_at(place, dict.fromkeys(self._roots))], self._find_unseen)
        copies = keys_at(place, self._copies).items()
        moved._copies = {path: replace(copy, within=place(copy.within) or "") for path, copy in copies}
        moved._names = keys_at(place, self._names)
        moved._configs = frozenset(keys_at(place, dict.fromkeys(self._configs)))
        moved._files = frozenset(keys_at(place, dict.fromkeys(self._files)))
        moved._protected = self._protected.relocated(place) if self._protected else None
        return moved

    @property
    def unseen(self) -> tuple[str, ...]:
        """The directories that commands write and nobody looks through."""
        return tuple(self._find_unseen())

    @property
    def contents(self) -> dict[str, _ProtectedCopy]:
        """What was copied; another object after each `take`."""
        return self._copies

    def take(self, protected: Protected, *, suspect: bool = False) -> None:
        """Before a command. A file that has not changed is not read again. `suspect`: one may be running, so what
        was copied before it stays the copy."""
        copies = dict(self._copies) if suspect else {}
        found = dict(_files(protected))
        room = _MOST_BYTES - sum(len(copy.content) for copy in copies.values())
        for path, within in found.items():
            if len(copies) >= _MOST_FILES:
                break
            copy = copies.get(path) or self._copy(path, within)
            if copy is not None and len(copy.content) <= room:
                copies[path] = copy
                room -= len(copy.content)
        self._copies = copies
        lists = (path for path in protected.names if path.endswith(LIST))
        self._configs = frozenset((*(f"{owner}/config" for owner in protected.instructions), *lists))
        self._files = self._known(found) if suspect else frozenset(found)
        self._protected = protected
        self._names = {path: _kind(path) for path, name in protected.names.items() if not name.is_link}

    def _known(self, found: Iterable[str]) -> frozenset[str]:
        """The files that are not new: those that were, and those in places that are new as a whole."""
        old = (*self._protected.names, *self._protected.instructions) if self._protected else ()
        return self._files.union(path for path in found if not is_below(path, *old))

    def _copy(self, path: str, within: str) -> _ProtectedCopy | None:
        known = self._copies.get(path)
        if known is not None and known.stamp == _stamp(path):
            return known
        stamp, content = _stamp(path), _content(path)
        return _ProtectedCopy(stamp, content, within) if content is not None and len(content) <= _LARGEST else None

    def put_back(self) -> list[Quarantined]:
        """After a command: what it changed goes to quarantine, and the file is as it was. Settings of git that run
        nothing stay, and so does what the user released."""
        replaced = [path for path, kind in self._names.items() if _kind(path) not in (kind, 0)]
        taken = [take_out(path, CHANGED) for path in replaced]
        for path, copy in list(self._copies.items()):
            if _stamp(path) == copy.stamp:
                continue
            if link := self._link_above(path):
                taken.append(take_out(link, CHANGED))
            if path not in replaced and self._may_stay(path, copy):
                del self._copies[path]
            else:
                taken.append(self._restored(path, copy))
        return [item for item in taken if item is not None]

    def _may_stay(self, path: str, copy: _ProtectedCopy) -> bool:
        """Whether a change is harmless: removed with all that is around it, released, or a `.git` file that leads to
        a repository that is guarded itself."""
        if copy.within and not os.path.lexists(copy.within):
            return True
        owners = self._protected.instructions if self._protected else {}
        return was_released(path) or (copy.within == path and leads_home(path, owners))

    def _restored(self, path: str, copy: _ProtectedCopy) -> Quarantined | None:
        now, mode = _content(path), stat.S_IMODE(copy.stamp[4])
        if now == copy.content:  # only the mode or a time was changed
            restore_mode(path, mode)
            return None
        if path not in self._configs or now is None:
            return restore(path, copy.content, mode, CHANGED)
        astray = partial(leads_astray, config=path, unseen=self.unseen)
        judged = changed_part(os.fsdecode(copy.content), os.fsdecode(now), astray)
        wanted = os.fsencode(judged.text)
        if wanted == now:
            return None
        names = ", ".join(dict.fromkeys(judged.refused[:5]))
        return restore(path, wanted, mode, f"settings that may run programs: {names}")

    def take_new(self) -> list[Quarantined]:
        """What was made in a protected directory since, such as a hook beside the others."""
        found = _files(self._protected) if self._protected else ()
        files = (path for path, _ in found if path not in self._files and not path.endswith(".sample"))
        new = dict.fromkeys(self._new_as_a_whole(path) for path in files)
        taken = (take_out(path, MADE) for path in new if not was_released(path))
        return [item for item in taken if item is not None]

    def _new_as_a_whole(self, path: str) -> str:
        """The outermost directory around a new file in which no file was before, or the file itself."""
        above = os.path.dirname(path)
        while self._is_within_protected(above) and not any(is_below(file, above) for file in self._files):
            path, above = above, os.path.dirname(above)
        return path

    def _is_within_protected(self, directory: str) -> bool:
        """Whether a directory lies in a protected one, and is not that one itself."""
        assert self._protected is not None, "there are files"
        owners = (f"{owner}/{name}" for owner, names in self._protected.instructions.items() for name in names)
        places = {*self._protected.names, *owners}
        return directory not in places and is_below(directory, *places)

    def _link_above(self, path: str) -> str | None:
        """A link that took the place of a directory above a file, if a command could have put it there."""
        above = os.path.dirname(path)
        links: list[str] = []
        owners = self._protected.instructions if self._protected else ()
        while is_below(above, *self._roots, *owners) and above not in self._roots:
            links += [above] if os.path.islink(above) else []
            above = os.path.dirname(above)
        return links[-1] if links else None


def _files(protected: Protected) -> Iterator[tuple[str, str]]:
    """Files whose content counts: protected ones, those in protected directories, and what git follows; each with
    what may be removed as a whole."""
    for path, name in protected.names.items():
        is_list = path.endswith(LIST)
        if name.is_link or (name.kind == "protected" and path in protected.loose and not is_list):
            continue
        if name.kind == "protected" and not is_list:
            yield from ((file, "") for file in _below(path))
        elif not os.path.isdir(path):
            yield path, path
    for owner, names in protected.instructions.items():
        for name in sorted(names):
            yield from ((file, owner) for file in _below(f"{owner}/{name}"))
    yield from ((f"{place}/commondir", place) for place in protected.worktrees)


def _below(path: str) -> Iterator[str]:
    if not os.path.isdir(path) or os.path.islink(path):
        yield path
        return
    for entry in sorted(entries_of(path, unseal=True) or (), key=lambda entry: entry.name):
        yield from _below(entry.path)


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


def _content(path: str) -> bytes | None:
    return beginning_of(path, _LARGEST + 1)
