"""Names that appeared while a command ran: what other programs would run is taken out, and told."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gripfast.host.files.closed import ClosedName
from gripfast.host.files.gitconfig import harmless_part
from gripfast.host.files.gitdirs import INSTRUCTIONS, common_directory, submodules, worktrees
from gripfast.host.shell.quarantine import Quarantined, keep_copy, take_out, through_parent
from gripfast.text.below import is_below

_LARGEST_CONFIG = 1024 * 1024
_RUN_ELSEWHERE = ("/.gitmodules", "/.github/workflows")


@dataclass(frozen=True, slots=True)
class Protected:
    """The protected names of one look: each with what it is, and the instructions of each git directory."""

    names: dict[str, ClosedName]
    links: dict[str, str]
    instructions: dict[str, frozenset[str]]


def protected_now(closed: Sequence[ClosedName]) -> Protected:
    """What is protected at the moment of a look."""
    names = {name.path: name for name in closed if name.kind != "denied"}
    links = {path: os.readlink(path) for path, name in names.items() if name.is_link and os.path.islink(path)}
    owners = [owner for name in names.values() for owner in _git_directories(name)]
    return Protected(names, links, {owner: frozenset(_existing(owner)) for owner in owners})


def _git_directories(name: ClosedName) -> Iterator[str]:
    if name.kind in ("git", "repository") and os.path.isdir(name.path) and not name.is_link:
        yield name.path
        yield from submodules(name.path)


def _existing(owner: str) -> Iterator[str]:
    return (name for name in INSTRUCTIONS if os.path.lexists(f"{owner}/{name}"))


def undo_late_names(before: Protected, closed: Sequence[ClosedName]) -> list[Quarantined]:
    """Takes out what was not there before, and puts back links that were replaced."""
    return [item for item in _taken(before, protected_now(closed)) if item is not None]


def _taken(before: Protected, now: Protected) -> Iterator[Quarantined | None]:
    for path, target in before.links.items():
        if not os.path.islink(path) or os.readlink(path) != target:
            yield take_out(path, "it replaced a protected link")
            with through_parent(path) as place:
                os.symlink(target, place)
    for path, name in now.names.items():
        if path not in before.names and not _is_data(name, before, now):
            yield take_out(path, "a protected name that a command made")
    for owner, names in now.instructions.items():
        if owner in before.instructions:
            for name in names - before.instructions[owner]:
                yield take_out(f"{owner}/{name}", "git would follow it, and a command made it")
        elif os.path.isdir(owner):
            yield from _examined(owner)
        yield from _astray(owner)


def _is_data(name: ClosedName, before: Protected, now: Protected) -> bool:
    """A repository, a worktree or a submodule that a command made may stay; it is examined instead. So may a plain
    list of submodules, and what only the far end of a clone runs."""
    if name.kind == "protected":
        if name.path.endswith("/.gitmodules") and not name.is_link:
            data = _content(name.path)
            return data is not None and not harmless_part(os.fsdecode(data))[1]
        return name.path.endswith(_RUN_ELSEWHERE) and is_below(name.path, *_made(before, now))
    if name.is_link:
        return False
    return os.path.isdir(name.path) or _belongs(name.path, now)


def _made(before: Protected, now: Protected) -> Iterator[str]:
    """The directories of repositories and worktrees that a command made."""
    yield from (os.path.dirname(owner) for owner in now.instructions.keys() - before.instructions.keys())
    for path in now.names.keys() - before.names.keys():
        if now.names[path].kind == "git" and os.path.isfile(path) and _belongs(path, now):
            yield os.path.dirname(path)


def _belongs(dot_git: str, now: Protected) -> bool:
    common = common_directory(dot_git)
    return common is not None and common in now.instructions


def _examined(owner: str) -> Iterator[Quarantined | None]:
    """A git directory that a command made: hooks, and settings that are not known to run nothing, are taken out."""
    hooks = f"{owner}/hooks"
    if os.path.islink(hooks):
        yield take_out(hooks, "hooks that a command made")
    elif os.path.isdir(hooks):
        for name in sorted(os.listdir(hooks)):
            if not name.endswith(".sample"):
                yield take_out(f"{hooks}/{name}", "a hook that a command made")
    if os.path.lexists(f"{owner}/commondir"):
        yield take_out(f"{owner}/commondir", "it leads git elsewhere")
    for name in ("config", "config.worktree"):
        if os.path.lexists(f"{owner}/{name}"):
            yield _cleaned(f"{owner}/{name}")


def _cleaned(config: str) -> Quarantined | None:
    data = _content(config)
    if data is None:
        return take_out(config, "a configuration that is no file")
    kept, dropped = harmless_part(os.fsdecode(data))
    if not dropped:
        return None
    item = keep_copy(config, data, f"settings that may run programs: {', '.join(dropped[:5])}")
    with through_parent(config) as place:
        with open(f"{place}.{item.id}", "xb") as file:
            file.write(os.fsencode(kept))
        os.replace(f"{place}.{item.id}", place)
    return item


def _content(path: str) -> bytes | None:
    """What a regular file holds; None for anything else, and for one too large to be a configuration."""
    try:
        with through_parent(path) as place:
            fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = file.read(_LARGEST_CONFIG + 1)
    return data if len(data) <= _LARGEST_CONFIG else None


def _astray(owner: str) -> Iterator[Quarantined | None]:
    """A worktree's `commondir` that doesn't lead back to the repository it is in."""
    for worktree in worktrees(owner):
        path = f"{worktree}/commondir"
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                target = os.path.realpath(os.path.join(worktree, file.read(4096).strip()))
        except OSError:
            continue
        if target != os.path.realpath(owner):
            yield take_out(path, "it leads git elsewhere")
