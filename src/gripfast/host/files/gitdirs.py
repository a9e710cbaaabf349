"""Git directories: which names in them run code or lead elsewhere, and which directory a `.git` file means."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from gripfast.host.files.sealed import entries_of

# What git reads as instructions. Everything else in a git directory is data, which commands may write.
INSTRUCTIONS = ("config", "config.worktree", "hooks", "info/attributes", "commondir")
_LARGEST = 4096
_MODULES_DEEP = 6
_WORKTREE_LINE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


def instructions(directory: str) -> Iterator[str]:
    """The names in a git directory, and in those of its submodules and worktrees, that may not be changed."""
    for owner in (directory, *submodules(directory)):
        yield from (place for name in INSTRUCTIONS if os.path.lexists(place := f"{owner}/{name}"))
        for worktree in worktrees(owner):
            names = ("commondir", "gitdir", "config.worktree")
            yield from (place for name in names if os.path.lexists(place := f"{worktree}/{name}"))


def worktrees(directory: str) -> list[str]:
    """The directories in which a repository keeps what belongs to one worktree each."""
    return _children(f"{directory}/worktrees")


def submodules(directory: str, deep: int = _MODULES_DEEP) -> Iterator[str]:
    """The git directories of submodules, theirs included; a submodule's name may have slashes."""
    yield from _below_modules(f"{directory}/modules", deep)


def _below_modules(folder: str, deep: int) -> Iterator[str]:
    for place in _children(folder) if deep else ():
        if os.path.lexists(f"{place}/HEAD"):
            yield place
            yield from submodules(place, deep - 1)
        else:
            yield from _below_modules(place, deep - 1)


def _children(folder: str) -> list[str]:
    """Git makes no links here, and one may lead to all of the disk."""
    found = [] if os.path.islink(folder) else entries_of(folder, unseal=True) or []
    return sorted(entry.path for entry in found if entry.is_dir(follow_symlinks=False))


def named_directory(dot_git: str) -> str | None:
    """The git directory that a `.git` file names, by its real path; None if it names none."""
    text = _text(dot_git)
    if text is None or not text.startswith("gitdir:"):
        return None
    place = os.path.realpath(os.path.join(os.path.dirname(dot_git), text.removeprefix("gitdir:").strip()))
    return place if os.path.isdir(place) else None


def common_directory(dot_git: str) -> str | None:
    """The repository that a `.git` file belongs to, if the repository itself confirms that: anybody can write a
    `.git` file, but the file that points back is inside the repository, where only git writes."""
    named = named_directory(dot_git)
    if named is None:
        return None
    owner = os.path.dirname(os.path.dirname(named))
    if os.path.basename(os.path.dirname(named)) == "worktrees":
        back = _text(f"{named}/gitdir")
        return owner if back is not None and os.path.realpath(back.strip()) == os.path.realpath(dot_git) else None
    back = _WORKTREE_LINE.search(_text(f"{named}/config") or "")
    here = os.path.realpath(os.path.dirname(dot_git))
    return named if back and os.path.realpath(os.path.join(named, back[1].strip('"'))) == here else None


def _text(path: str) -> str | None:
    """The beginning of a small file. Never blocks on a FIFO, follows no link."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        text = os.fsdecode(os.read(fd, _LARGEST))
    except OSError:
        return None
    finally:
        os.close(fd)
    return None if "\0" in text else text
