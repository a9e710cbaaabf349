"""What a sandbox must hold for a Scope: one list of mounts, each with what must be there."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from gripfast.host.files.closed import ClosedName
from gripfast.host.files.gitdirs import common_directory, instructions
from gripfast.host.files.scope import Scope
from gripfast.host.program.own import own_places
from gripfast.host.shell.caches import NO_CACHES, Caches, caches_for
from gripfast.host.shell.sockets import foreign_sockets, is_socket
from gripfast.records import dataclass
from gripfast.text.below import is_below

MountKind: TypeAlias = Literal["write", "read", "hide"]
_STRICTNESS: tuple[MountKind, ...] = ("write", "read", "hide")
Identity: TypeAlias = tuple[int, int, int, int]
SETTINGS = ".git-settings"
"""The directory in the session's /tmp with the copies of git configurations that commands work on."""
HOOKS = ".git-hooks"
"""The same for directories of hooks; nothing in it is shown to commands but what is mounted elsewhere."""


@dataclass(frozen=True, slots=True)
class CopyOver:
    """A directory of ours, with this device and inode, that is mounted over one of the user's."""

    folder: str
    identity: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Mount:
    """A real path and what commands may do there. `identity` is what must be there: device, inode, mode, ctime.
    `copy` is what is mounted there, if it isn't the place itself."""

    path: str
    kind: MountKind
    identity: Identity
    copy: CopyOver | None = None


@dataclass(frozen=True, slots=True)
class ConfigLink:
    """A link to `target` is mounted over a git configuration: the file with this device and inode."""

    path: str
    target: str
    identity: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Walls:
    """What a sandbox is built around: mounts for bubblewrap, places that Landlock allows to be written. `links` are
    protected names that are links, with their targets: they can't be mounted over. `judged` are protected names where
    nothing is mounted: what commands change there is judged afterwards. `git_alone`: something on this machine runs
    some of these, so only git may run here."""

    mounts: tuple[Mount, ...]
    allowed: tuple[str, ...] = ()
    temporary: str = ""
    links: tuple[tuple[str, str], ...] = ()
    everywhere: bool = False
    caches: Caches = NO_CACHES
    settings: bool = False
    configs: tuple[ConfigLink, ...] = ()
    judged: tuple[str, ...] = ()
    git_alone: bool = False

    @property
    def hidden(self) -> tuple[str, ...]:
        """What Landlock can keep from being read: places of ours that lie in no directory commands may write."""
        secret = (own.path for own in own_places() if own.secret and os.path.lexists(own.path))
        return tuple(path for path in secret if not is_below(path, *self.allowed))


def walls_of(
    scope: Scope,
    closed: Sequence[ClosedName],
    temporary: str,
    level: str,
    sockets: Sequence[str],
    loose: Collection[str] = (),
) -> Walls:
    """The walls as things are now. Two looks that give the same walls saw the same places.

    `sockets` are those that commands may reach, `loose` protected places that they may remove and move.
    """
    write = outermost(directory.real for directory in scope.write)
    kinds: dict[str, MountKind] = {}
    for path, kind in (*_wanted(scope, closed, write, loose), *_sockets(write, sockets)):
        if kind != "write" or path not in kinds:
            kinds[path] = _stricter(kind, kinds.get(path, "write"))
    for path in [path for path, kind in kinds.items() if kind != "write"]:
        for above in _between(path, write):
            kinds.setdefault(above, "write")
    mounts = tuple(mount for one in _settled(kinds, write).items() if (mount := _mount(*one)) is not None)
    allowed = tuple(_allowed(mounts, write)) if level == "landlock" else ()
    return Walls(mounts, allowed, temporary, tuple(_links(closed)), "/" in write, caches_for(level, write))


def with_private_settings(walls: Walls, links: Callable[[Sequence[str]], tuple[ConfigLink, ...]]) -> Walls:
    """The same walls with links over the git configurations that commands could only read."""
    kinds = {mount.path: mount.kind for mount in walls.mounts}
    found = (mount.path for mount in walls.mounts if mount.kind == "read" and _is_config(mount))
    configs = links([path for path in found if kinds.get(os.path.dirname(path)) == "write"])
    linked = {link.path for link in configs}
    mounts = tuple(mount for mount in walls.mounts if mount.path not in linked)
    return replace(walls, mounts=mounts, settings=True, configs=configs)


def with_private_hooks(walls: Walls, over: Callable[[Sequence[str]], Mapping[str, CopyOver]]) -> Walls:
    """The same walls with copies over the directories of hooks that commands could only read."""
    kinds = {mount.path: mount.kind for mount in walls.mounts}
    hidden = [path for path, kind in kinds.items() if kind == "hide"]
    found = (mount.path for mount in walls.mounts if mount.kind == "read" and _has_hooks(mount))
    private = [path for path in found if kinds.get(os.path.dirname(path)) == "write"]
    copies = over([path for path in private if not any(is_below(place, path) for place in hidden)])
    mounts = (one for mount in walls.mounts for one in _with_copy(mount, copies))
    return replace(walls, mounts=tuple(mounts))


def _with_copy(mount: Mount, copies: Mapping[str, CopyOver]) -> Iterator[Mount]:
    """Of `.husky` only what husky makes is a copy: git tracks the rest, and must not take a copy for it."""
    if mount.path in copies:
        yield replace(mount, kind="write", copy=copies[mount.path])
        if mount.path.endswith(_HUSKY):
            tracked = (name for name in sorted(os.listdir(mount.path)) if name != "_")
            yield from filter(None, (_mount(f"{mount.path}/{name}", "read") for name in tracked))
    elif not is_below(mount.path, *copies):
        yield mount


_HUSKY = "/.husky"


def _has_hooks(mount: Mount) -> bool:
    of_git = mount.path.endswith("/hooks") and _is_repository(os.path.dirname(mount.path))
    return stat.S_ISDIR(mount.identity[2]) and (of_git or mount.path.endswith(_HUSKY))


def _is_config(mount: Mount) -> bool:
    is_file = stat.S_ISREG(mount.identity[2]) and mount.path.endswith("/config")
    return is_file and _is_repository(os.path.dirname(mount.path))


def _is_repository(owner: str) -> bool:
    return os.path.lexists(f"{owner}/HEAD") and os.path.isdir(f"{owner}/objects")


def _stricter(one: MountKind, other: MountKind) -> MountKind:
    return one if _STRICTNESS.index(one) > _STRICTNESS.index(other) else other


def _settled(kinds: dict[str, MountKind], write: Sequence[str]) -> dict[str, MountKind]:
    """Outer places first. Inside a read-only place only a root can be written, inside a hidden one nothing."""
    settled: dict[str, MountKind] = {}
    for path in sorted(kinds):
        around, kind = _around(settled, path), kinds[path]
        if around != "hide":
            settled[path] = "read" if kind == "write" and around == "read" and path not in write else kind
    return settled


def _around(settled: dict[str, MountKind], path: str) -> MountKind | None:
    above = os.path.dirname(path)
    while above not in settled and above != "/":
        above = os.path.dirname(above)
    return settled.get(above)


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """The directories that are not inside another of them."""
    chosen = tuple(dict.fromkeys(paths))
    return tuple(path for path in chosen if not any(path != other and is_below(path, other) for other in chosen))


def _wanted(
    scope: Scope, closed: Sequence[ClosedName], write: Sequence[str], loose: Collection[str]
) -> Iterator[tuple[str, MountKind]]:
    """Places and what commands may do there; if a place has two kinds, the stricter one counts."""
    for path in write:
        if path != "/":
            yield path, "write"
    for directory in scope.read or ():
        if directory.real != "/" and not is_below(directory.real, *write):
            yield directory.real, "read"
    for name in closed:
        if name.kind == "denied" or (name.kind != "astray" and name.path not in loose):
            yield from _closed(name, write, loose)
    for own in own_places():
        if own.secret:
            yield own.path, "hide"
        elif is_below(own.path, *write):
            yield own.path, "read"


def _sockets(write: Sequence[str], allowed: Sequence[str]) -> Iterator[tuple[str, MountKind]]:
    """Hides sockets that other programs listen on. An allowed socket stays visible where its directory is masked."""
    for path in foreign_sockets(write, allowed):
        yield path, "hide"
    for path in allowed:
        if is_socket(path) and is_below(path, "/run", "/tmp"):
            yield path, "write"


def _closed(name: ClosedName, write: Sequence[str], loose: Collection[str]) -> Iterator[tuple[str, MountKind]]:
    real = os.path.realpath(name.path) if name.is_link else name.path
    if name.kind == "denied":
        yield real, "hide"
    elif name.kind == "protected":
        if is_below(real, *write):
            yield real, "read"
    elif os.path.isdir(real):
        if is_below(real, *write):
            yield from _repository(real, write, loose)
    else:
        if is_below(real, *write):
            yield real, "read"
        common = common_directory(real)
        if common is not None:
            yield from _repository(common, write, loose)


def _repository(directory: str, write: Sequence[str], loose: Collection[str]) -> Iterator[tuple[str, MountKind]]:
    """A git directory: pinned, its instructions read-only, the rest data. It may lie outside the roots, when it is
    the one that a worktree in them belongs to."""
    yield directory, "write"
    for place in instructions(directory):
        real = os.path.realpath(place)
        if is_below(real, directory, *write) and not is_below(place, *loose):
            yield real, "read"
            for above in _between(real, [directory]):
                yield above, "write"


def _between(path: str, roots: Sequence[str]) -> Iterator[str]:
    """Every directory between a root and a place in it: pinned, so that nothing above the place can be moved."""
    root = next((root for root in roots if path != root and is_below(path, root)), None)
    above = os.path.dirname(path)
    while root is not None and above != root and len(above) > len(root):
        yield above
        above = os.path.dirname(above)


def _mount(path: str, kind: MountKind) -> Mount | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return None  # links in a circle lead nowhere, and can't be mounted over
    # A directory's ctime moves with every name made in it; a file's only when it is written or replaced.
    changed = 0 if stat.S_ISDIR(found.st_mode) or kind == "hide" else found.st_ctime_ns
    return Mount(path, kind, (found.st_dev, found.st_ino, found.st_mode, changed))


def _links(closed: Sequence[ClosedName]) -> Iterator[tuple[str, str]]:
    for name in closed:
        if name.is_link and name.kind not in ("denied", "astray"):
            try:
                yield name.path, os.readlink(name.path)
            except OSError:
                continue


def _allowed(mounts: Sequence[Mount], write: Sequence[str]) -> Iterator[str]:
    """What a Landlock ruleset lets commands write: a root with our own code in it is allowed piece by piece, so that
    commands can't make new names beside it."""
    own = [place.path for place in own_places() if is_below(place.path, *write)]
    for root in write:
        yield from _pieces(root, own)
    elsewhere = (mount.path for mount in mounts if mount.kind == "write" and stat.S_ISDIR(mount.identity[2]))
    yield from (path for path in elsewhere if not is_below(path, *write))


def _pieces(place: str, own: Sequence[str]) -> Iterator[str]:
    if is_below(place, *own):
        return
    if not any(is_below(path, place) for path in own):
        yield place
        return
    with os.scandir(place) as entries:
        children = sorted(entry.path for entry in entries if not entry.is_symlink())
    for child in children:
        yield from _pieces(child, own)
