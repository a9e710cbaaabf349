"""Git directories: which names in them run code or lead elsewhere, and which directory a `.git` file means."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from gripfast.host.files.sealed import entries_of
from gripfast.host.kernel.regular import beginning_of
from gripfast.text.fold import folded

REMOTES = ("branches", "remotes")
"""Directories with a file for each remote, as git kept them before it had settings for that. It still reads them."""
# What git reads as instructions. Everything else in a git directory is data, which commands may write.
INSTRUCTIONS = ("config", "config.worktree", "hooks", "info/attributes", "commondir", *REMOTES)
# What git takes for a repository: all of one of these. https://git-scm.com/docs/gitrepository-layout
_REPOSITORIES = (frozenset({"HEAD", "objects", "refs"}), frozenset({"HEAD", "commondir"}))
# What git makes in a repository.
_OF_GIT = frozenset(
    "objects refs config config.worktree description hooks info branches remotes logs index packed-refs shallow "
    "modules worktrees commondir gitdir reftable rr-cache lfs gc.log gc.pid sequencer rebase-merge "
    "rebase-apply".split()
)
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


def instructions_in(directory: str) -> Iterator[str]:
    """The names in one git directory that git follows. Empty directories of remotes come with every repository."""
    for name in INSTRUCTIONS:
        place = f"{directory}/{name}"
        if os.path.lexists(place) and not (name in REMOTES and _is_empty(place)):
            yield name


def _is_empty(directory: str) -> bool:
    try:
        return not os.path.islink(directory) and not os.listdir(directory)
    except OSError:
        return False


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


def worktree_directories(owner: str) -> Iterator[str]:
    """The directories whose git directory this is, as far as it says so itself."""
    if os.path.basename(os.path.dirname(owner)) == "worktrees":
        yield os.path.dirname((_text(f"{owner}/gitdir") or "").strip())
    if setting := _WORKTREE_LINE.search(_text(f"{owner}/config") or ""):
        yield os.path.join(owner, setting[1].strip('"'))
    for worktree in worktrees(owner):
        yield os.path.dirname((_text(f"{worktree}/gitdir") or "").strip())


def is_repository(names: set[str]) -> bool:
    """Whether git takes a directory with these names in it for a repository."""
    return any(names >= marks for marks in _REPOSITORIES)


def has_more_than_git(names: set[str]) -> bool:
    """Whether there are names that git doesn't make in a repository."""
    return any(name not in _OF_GIT and not name.endswith(("HEAD", "_EDITMSG", ".lock")) for name in names)


def is_inside_repository(real: str) -> bool:
    """Whether a real path is in a git directory, where no further ones are looked for. The git directory itself does
    not."""
    above = os.path.dirname(real)
    if ".git" in map(folded, above.split("/")):
        return True
    while above != "/":
        if os.path.lexists(f"{above}/HEAD") and os.path.lexists(f"{above}/objects"):
            return True
        above = os.path.dirname(above)
    return False


def git_file_text(path: str) -> str:
    """What a file of any name says that leads git elsewhere, as a `.git` file does, when a URL leads to it."""
    text = os.fsdecode(beginning_of(path, _LARGEST) or b"")
    return text if text.startswith("gitdir:") else ""


def _text(path: str) -> str | None:
    data = beginning_of(path, _LARGEST)
    return None if data is None or b"\0" in data else os.fsdecode(data)
