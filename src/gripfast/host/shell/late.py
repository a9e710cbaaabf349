"""Names that appeared while a command ran: what other programs would run is taken out and reported."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from gripfast.host.files.closed import ClosedName
from gripfast.host.files.gitconfig import harmless_part, without_worktree_outside
from gripfast.host.files.gitdirs import (
    REMOTES,
    common_directory,
    git_file_text,
    instructions_in,
    named_directory,
    submodules,
    worktrees,
)
from gripfast.host.files.gitremotes import leads_astray, places_here
from gripfast.host.files.sealed import entries_of
from gripfast.host.kernel.regular import beginning_of
from gripfast.host.kernel.shortage import is_shortage
from gripfast.host.shell.held_roots import Place, keys_at
from gripfast.host.shell.made import Made, identity_of
from gripfast.host.shell.quarantine import Quarantined, keep_copy, take_out, through_parent, was_released
from gripfast.records import dataclass
from gripfast.text.below import is_below

_LARGEST_CONFIG = 1024 * 1024
LIST = "/.gitmodules"
_LOOKS = 3  # while a command in the background makes more
# What git keeps of a rebase or a cherry-pick in progress, and which lines of that name programs.
_IN_PROGRESS = {
    "rebase-merge/git-rebase-todo": re.compile(rb"[ \t]*(?:exec|x)[ \t]"),
    "rebase-merge/strategy": re.compile(rb"."),
    "rebase-apply/strategy": re.compile(rb"."),
    "sequencer/opts": re.compile(rb".*strategy", re.IGNORECASE),
}
_UNREADABLE = b"\0"
# Strategies of git itself. Another one is the program `git-merge-NAME`, which may be a path.
_STRATEGY = re.compile(
    rb"[ \t]*(?:strategy(?:-option)?[ \t]*=)?[ \t]*(?:ort|recursive|resolve|octopus|ours|theirs|subtree)[ \t]*"
)


@dataclass(frozen=True, slots=True)
class Protected:
    """The protected names of one look: each with what it is, and the instructions of each git directory. `made` are
    git directories that commands made: as long as one may run, they are examined at each look. `steps` are the
    programs that a rebase in progress would run. `worktrees` are the directories that git keeps for them. `loose`
    is what commands made, in this session or an earlier one: nothing is mounted there. `unseen` are the directories
    that commands write and nobody looks through. `astray` is what leads there, or leads git
    elsewhere: paths, each with what it says, and the reason to take it out."""

    names: dict[str, ClosedName]
    links: dict[str, str]
    instructions: dict[str, frozenset[str]]
    made: frozenset[str] = frozenset()
    steps: dict[str, frozenset[bytes]] = field(default_factory=dict[str, frozenset[bytes]])
    worktrees: frozenset[str] = frozenset()
    loose: Made = field(default_factory=dict[str, tuple[int, int]])
    unseen: tuple[str, ...] = ()
    astray: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def relocated(self, place: Place) -> Protected:
        """The same after roots were moved. What links say does not change with that."""
        names = keys_at(place, self.names)
        astray = ((place(path), text, reason) for (path, text), reason in self.astray.items())
        return replace(
            self,
            names={path: replace(name, path=path) for path, name in names.items()},
            links=keys_at(place, self.links),
            instructions=keys_at(place, self.instructions),
            made=frozenset(keys_at(place, dict.fromkeys(self.made))),
            steps=keys_at(place, self.steps),
            worktrees=frozenset(keys_at(place, dict.fromkeys(self.worktrees))),
            loose=keys_at(place, self.loose),
            astray={(path, text): reason for path, text, reason in astray if path is not None},
        )


def protected_now(closed: Sequence[ClosedName], loose: Made | None = None, unseen: tuple[str, ...] = ()) -> Protected:
    """What is protected at the moment of a look. A loose path that was replaced since is no longer loose."""
    names = {name.path: _plain(name) for name in closed if name.kind not in ("denied", "astray")}
    for place in _kept_for_worktrees(names):
        names.pop(place, None)
    links = {path: os.readlink(path) for path, name in names.items() if name.is_link and os.path.islink(path)}
    owners = dict.fromkeys(owner for name in names.values() for owner in _git_directories(name))
    return Protected(
        names,
        links,
        {owner: frozenset(_existing(owner)) for owner in owners},
        steps={todo: frozenset(_steps(todo)) for owner in owners for todo in _rebases(owner)},
        worktrees=frozenset(place for owner in owners for place in worktrees(owner)),
        loose={path: seen for path, seen in (loose or {}).items() if identity_of(path) == seen} | _judged(names),
        unseen=unseen,
        astray=dict([*_leading_astray(closed), *(file for owner in owners for file in _git_files(owner))]),
    )


def _plain(name: ClosedName) -> ClosedName:
    return replace(name, kind="repository") if name.kind == "turned" else name


def _leading_astray(closed: Sequence[ClosedName]) -> Iterator[tuple[tuple[str, str], str]]:
    astray = (name for name in closed if name.kind == "astray")
    return (((name.path, _target(name.path) or ""), name.reason) for name in astray)


def _git_files(owner: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Files that git would follow to a repository, since a remote leads to them, whatever their names are."""
    for place in places_here(f"{owner}/config"):
        real = os.path.realpath(place)
        if os.path.basename(real) != ".git" and (text := git_file_text(real)):
            yield (real, text), f"a remote of {owner} points to it, and it points git elsewhere"


def _judged(names: Mapping[str, ClosedName]) -> Made:
    """Lists of submodules: git replaces them by a rename, and what they say can be judged after a command."""
    plain = (path for path, name in names.items() if path.endswith(LIST) and not name.is_link)
    return {path: seen for path in plain if (seen := identity_of(path)) is not None}


def _kept_for_worktrees(names: Mapping[str, ClosedName]) -> list[str]:
    """What bare repositories keep for worktrees looks like repositories of its own, and is examined with theirs."""
    bare = (path for path, name in names.items() if name.kind == "repository")
    return [place for path in bare if not os.path.lexists(f"{path}/commondir") for place in worktrees(path)]


def loose_part(protected: Protected) -> Protected:
    """The part of what is protected over which nothing is mounted."""
    loose = tuple(protected.loose)
    return replace(
        protected,
        names={path: name for path, name in protected.names.items() if path in protected.loose},
        instructions={path: found for path, found in protected.instructions.items() if is_below(path, *loose)},
        worktrees=frozenset(path for path in protected.worktrees if is_below(path, *loose)),
    )


def without_names(protected: Protected, names: Collection[str]) -> Protected:
    """What is protected, without names that are judged in another way."""
    return replace(protected, names={path: name for path, name in protected.names.items() if path not in names})


def _git_directories(name: ClosedName) -> Iterator[str]:
    """The repositories that a name means. The one of a worktree may lie outside the roots."""
    if name.kind not in ("git", "repository") or name.is_link:
        return
    owner = name.path if os.path.isdir(name.path) else common_directory(name.path)
    if owner is not None:
        yield owner
        yield from submodules(owner)


def _existing(owner: str) -> Iterator[str]:
    yield from instructions_in(owner)
    configs = (f"{worktree}/config.worktree" for worktree in worktrees(owner))
    yield from (path.removeprefix(f"{owner}/") for path in configs if os.path.lexists(path))


def _rebases(owner: str) -> Iterator[str]:
    states = (f"{place}/{name}" for place in (owner, *worktrees(owner)) for name in _IN_PROGRESS)
    return (state for state in states if os.path.lexists(state))


def _steps(state: str) -> Iterator[bytes]:
    """The lines of a state that name programs. What can't be read names an unknown one."""
    data = _content(state)
    if data is None:
        yield _UNREADABLE
        return
    pattern = next(found for name, found in _IN_PROGRESS.items() if state.endswith(f"/{name}"))
    for line in data.splitlines():
        if pattern.match(line) and not _STRATEGY.fullmatch(line):
            yield line.strip()


def undo_late_names(
    before: Protected,
    look: Callable[[], Sequence[ClosedName]],
    roots: Sequence[str],
    is_judged: Callable[[ClosedName], bool],
) -> tuple[list[Quarantined], Protected]:
    """Takes out what was not there before, and puts back links that were replaced. Also returns what is known now,
    without what a command in the background makes meanwhile: the next look takes that out. `is_judged`: somebody else
    judges a name."""
    taken: list[Quarantined] = []
    first = before
    for _ in range(_LOOKS):
        names = [name for name in look() if name.path in before.names or not is_judged(name)]
        now = _judged_part(_protected_after(names, before, roots), before, roots)
        found = [item for item in _taken(before, now, roots) if item is not None]
        taken += found
        before = _known(before, now, roots)
        if not found:
            break
    return taken, replace(before, loose=_loose(first, before, roots))


def _protected_after(closed: Sequence[ClosedName], before: Protected, roots: Sequence[str]) -> Protected:
    """What is protected after a command. A directory of the user's that it turned into a repository does not count as
    one."""
    turned = [
        name.path
        for name in closed
        if name.path not in before.names
        and (name.kind == "turned" or (name.kind == "repository" and name.path in roots))
    ]
    now = protected_now([name for name in closed if name.path not in turned])
    reason = "it makes a repository of a directory with other things in it"
    return replace(now, astray=now.astray | {(f"{path}/HEAD", ""): reason for path in turned})


def _judged_part(now: Protected, before: Protected, roots: Sequence[str]) -> Protected:
    """Without repositories that a command may have made where nobody looks, such as a cache: what leads there is
    taken out."""
    owners = {owner for owner in now.instructions if owner in before.instructions or is_below(owner, *roots)}
    return replace(
        now,
        instructions={owner: found for owner, found in now.instructions.items() if owner in owners},
        steps={todo: steps for todo, steps in now.steps.items() if is_below(todo, *owners)},
        worktrees=frozenset(place for place in now.worktrees if is_below(place, *owners)),
        unseen=before.unseen,
    )


def _loose(before: Protected, now: Protected, roots: Sequence[str]) -> Made:
    """What commands made, before and now, if it is still there. The repository of a root itself is not loose."""
    names = {path for path in now.names.keys() - before.names.keys() if not was_released(path)}
    new = names | (now.made - before.instructions.keys()) | (now.worktrees - before.worktrees)
    kept = {*before.loose, *new} - {place for root in roots for place in (root, f"{root}/.git")}
    found = ((path, identity_of(path)) for path in sorted(kept))
    return {path: seen for path, seen in found if seen is not None}


def _known(before: Protected, now: Protected, roots: Sequence[str]) -> Protected:
    names = {path: name for path, name in now.names.items() if _is_known(name, before, now)}
    made = (before.made | set(_made_now(before, now, roots))) & now.instructions.keys()
    instructions = {
        owner: found if owner in made else found - frozenset(_new(owner, found, before))
        for owner, found in now.instructions.items()
    }
    steps = {todo: before.steps.get(todo, frozenset()) for todo in now.steps}
    return replace(before, names=names, instructions=instructions, made=made, steps=steps, worktrees=now.worktrees)


def _made_now(before: Protected, now: Protected, roots: Sequence[str]) -> Iterator[str]:
    """Git directories that were not there before."""
    return (owner for owner in now.instructions.keys() - before.instructions.keys() if is_below(owner, *roots))


def _is_known(name: ClosedName, before: Protected, now: Protected) -> bool:
    is_old = name.path in before.names and (name.path not in before.loose or name.path.endswith(LIST))
    return is_old or _is_data(name, before, now) or was_released(name.path)


def _new(owner: str, found: frozenset[str], before: Protected) -> Iterator[str]:
    """Instructions that a repository did not have before."""
    old = before.instructions.get(owner, found)
    return (name for name in found - old if not was_released(f"{owner}/{name}"))


def _taken(before: Protected, now: Protected, roots: Sequence[str]) -> Iterator[Quarantined | None]:
    for path, target in before.links.items():
        if _target(path) != target:
            yield take_out(path, "it replaced a protected link")
            with contextlib.suppress(OSError), through_parent(path) as place:
                os.symlink(target, place)
    for path, name in now.names.items():
        if not _is_known(name, before, now):
            yield take_out(path, "a protected name that a command made")
    for owner, names in now.instructions.items():
        if owner in before.made or owner in _made_now(before, now, roots):
            yield from _or_whole(owner, _examined(owner, roots, now.unseen))
        else:
            for name in _new(owner, names, before):
                yield _examined_name(f"{owner}/{name}", roots, now.unseen)
        yield from _astray(owner)
    for todo, steps in now.steps.items():
        if new := steps - before.steps.get(todo, frozenset()):
            yield _without_steps(todo, new)
    for path, text in sorted(now.astray.keys() - before.astray.keys()):
        if is_below(path, *roots, *now.instructions) and not was_released(path):
            yield take_out(path, now.astray[path, text])


def _target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _or_whole(path: str, taken: Iterable[Quarantined | None]) -> Iterator[Quarantined | None]:
    """What is taken out of something that a command made; if that fails, all of it is."""
    try:
        yield from taken
    except (OSError, ValueError) as fault:
        if isinstance(fault, OSError) and is_shortage(fault):
            raise
        yield take_out(path, "it could not be examined")


def _is_data(name: ClosedName, before: Protected, now: Protected) -> bool:
    """A repository, a worktree or a submodule that a command made may stay; it is examined instead. So may a plain
    list of submodules, and what only the far end of a clone runs."""
    if name.kind == "protected":
        if name.path.endswith(LIST) and not name.is_link:
            data = _content(name.path)
            astray = partial(leads_astray, config=name.path, unseen=before.unseen)
            return data is not None and not harmless_part(os.fsdecode(data), astray)[1]
        return (name.is_ci or name.path.endswith(LIST)) and is_below(name.path, *_made(before, now))
    if name.is_link or (name.kind == "git" and os.path.basename(name.path) != ".git"):
        return False  # another spelling of `.git` is an ordinary directory, which git would not make
    return os.path.isdir(name.path) or leads_home(name.path, now.instructions)


def _made(before: Protected, now: Protected) -> Iterator[str]:
    """The directories of repositories and worktrees that a command made."""
    for owner in before.made | (now.instructions.keys() - before.instructions.keys()):
        yield os.path.dirname(owner) if os.path.basename(owner) == ".git" else owner
    for path in (now.names.keys() - before.names.keys()) | (now.names.keys() & before.loose.keys()):
        if now.names[path].kind == "git" and (os.path.isdir(path) or leads_home(path, now.instructions)):
            yield os.path.dirname(path)


def leads_home(dot_git: str, owners: Mapping[str, object]) -> bool:
    """Whether a `.git` file names one of these repositories, or what one of them keeps for a worktree."""
    named = named_directory(dot_git)
    return named is not None and (named in owners or any(named in worktrees(owner) for owner in owners))


def _examined_name(path: str, roots: Sequence[str], unseen: Sequence[str]) -> Quarantined | None:
    """A new instruction of a repository that was there before."""
    if path.endswith("/config.worktree"):
        return _cleaned(path, roots, unseen)
    return take_out(_through_links(path), "git would follow it, and a command made it")


def _examined(owner: str, roots: Sequence[str], unseen: Sequence[str]) -> Iterator[Quarantined | None]:
    """A git directory that a command made: hooks, and settings that are not known to run nothing, are taken out."""
    hooks = f"{owner}/hooks"
    if os.path.islink(hooks):
        yield take_out(hooks, "hooks that a command made")
    elif os.path.isdir(hooks):
        for name in sorted(entry.name for entry in entries_of(hooks, unseal=True) or ()):
            if not name.endswith(".sample") and not was_released(f"{hooks}/{name}"):
                yield take_out(f"{hooks}/{name}", "a hook that a command made")
    if os.path.lexists(f"{owner}/commondir"):
        yield take_out(f"{owner}/commondir", "it leads git elsewhere")
    for name in _existing(owner):
        if name in REMOTES and not was_released(f"{owner}/{name}"):
            yield take_out(f"{owner}/{name}", "git reads remotes from it")
        if os.path.basename(name) in ("config", "config.worktree"):
            yield _cleaned(f"{owner}/{name}", roots, unseen)


def _cleaned(config: str, roots: Sequence[str], unseen: Sequence[str]) -> Quarantined | None:
    if was_released(config):
        return None
    data = _content(config)
    if data is None:
        return take_out(config, "a configuration that is not a file")
    kept, dropped = harmless_part(os.fsdecode(data), partial(leads_astray, config=config, unseen=unseen))
    kept, led = without_worktree_outside(kept, os.path.dirname(config), roots)
    if not dropped and not led:
        return None
    names = ", ".join((*dropped, *led)[:5])
    return _replaced(config, data, os.fsencode(kept), f"settings that may run programs or lead elsewhere: {names}")


def _replaced(path: str, data: bytes, kept: bytes, reason: str) -> Quarantined | None:
    """Cleans a file; the whole of it is taken out where there is no room for that."""
    try:
        item = keep_copy(path, data, reason)
        with through_parent(path) as place:
            with open(f"{place}.{item.id}", "xb") as file:
                file.write(kept)
            os.replace(f"{place}.{item.id}", place)
    except FileNotFoundError:  # its directory was moved away just now
        return None
    except (OSError, RuntimeError):
        return take_out(path, reason)
    return item


def _without_steps(state: str, new: frozenset[bytes]) -> Quarantined | None:
    data = _content(state)
    if data is None:
        return take_out(_through_links(state), "steps of a rebase that are not a file")
    kept = b"".join(line for line in data.splitlines(keepends=True) if line.strip() not in new)
    reason = "settings of a rebase that run programs, made by a command"
    return _replaced(state, data, kept, reason) if kept.strip() else take_out(state, reason)


def _through_links(path: str) -> str:
    """What must be taken out so that nothing is at a path: a link in the place of its directory, or itself."""
    above = os.path.dirname(path)
    return above if os.path.islink(above) else path


def _content(path: str) -> bytes | None:
    """What a regular file holds; None for anything else, and for one too large to be a configuration."""
    try:
        with through_parent(path) as place:
            data = beginning_of(place, _LARGEST_CONFIG + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return data if data is not None and len(data) <= _LARGEST_CONFIG else None


def _astray(owner: str) -> Iterator[Quarantined | None]:
    """A worktree's `commondir` that doesn't lead back to the repository it is in."""
    for worktree in worktrees(owner):
        path = f"{worktree}/commondir"
        for name in ("config", "hooks"):  # git makes neither here, and follows both where `commondir` is gone
            if os.path.lexists(f"{worktree}/{name}"):
                yield take_out(f"{worktree}/{name}", "git would follow it, and a command made it")
        if os.path.lexists(path) and not _leads_to(owner, path):
            yield take_out(path, "it leads git elsewhere")


def _leads_to(owner: str, commondir: str) -> bool:
    named = os.fsdecode((beginning_of(commondir, 4096) or b"").strip())
    place = os.path.join(os.path.dirname(commondir), named)
    return bool(named) and "\0" not in named and os.path.realpath(place) == os.path.realpath(owner)
