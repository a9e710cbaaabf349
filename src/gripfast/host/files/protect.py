"""Names that turn into code when another program looks at them: where a write would put such a thing."""

from __future__ import annotations

import os
from collections.abc import Iterator

from gripfast.host.files.beneath import ResolvedPath
from gripfast.host.files.closed_places import ClosedPlaces
from gripfast.host.files.patterns import Patterns
from gripfast.host.kernel.regular import beginning_of
from gripfast.text.below import is_below
from gripfast.text.fold import folded

_GITDIR_FILE_BYTES = 4096


def protected_by(place: ResolvedPath, places: ClosedPlaces, protect: Patterns, *, lifted: bool = False) -> str | None:
    """Why a place may not be written, in a few words; None when it may. `lifted`: after a person's yes."""
    reason = places.protected(place.absolute, lifted=lifted)
    if reason is not None:
        return reason
    if ".git" not in protect.texts:
        return None
    for directory, below in _ancestors(place):
        if _is_repository(place.root.fd, directory, below):
            return "the inside of a git repository (HEAD, objects, refs)"
        if _is_below_gitdir(place, directory):
            return "the git directory that a `.git` file names"
    return None


def _ancestors(place: ResolvedPath) -> Iterator[tuple[str, str]]:
    """Every directory from the root down to the place's own, with the next name below it."""
    names = place.relative.split("/")
    for depth, below in enumerate(names):
        yield "/".join(names[:depth]) or ".", below


def _is_repository(root_fd: int, directory: str, below: str) -> bool:
    """Whether a directory has, or with this name below it would have, what git takes for a repository."""
    new = folded(below)

    def has(name: str) -> bool:
        return new == folded(name) or _exists(root_fd, f"{directory}/{name}")

    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def _exists(root_fd: int, path: str) -> bool:
    try:
        os.stat(path, dir_fd=root_fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _is_below_gitdir(place: ResolvedPath, directory: str) -> bool:
    named = _gitdir(place.root.fd, f"{directory}/.git")
    if named is None:
        return False
    here = os.path.normpath(os.path.join(place.root.real, directory))
    gitdir = os.path.realpath(os.path.join(here, named))
    return is_below(folded(place.absolute), folded(gitdir))


def _gitdir(root_fd: int, path: str) -> str | None:
    """What a `.git` file says, if there is one."""
    text = os.fsdecode(beginning_of(path, _GITDIR_FILE_BYTES, dir_fd=root_fd) or b"")
    return text.removeprefix("gitdir:").strip() if text.startswith("gitdir:") and "\0" not in text else None
