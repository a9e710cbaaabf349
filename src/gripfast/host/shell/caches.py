"""Caches for the package managers and compilers that commands run: directories of ours, kept between sessions.

Each workspace has its own: what is in a cache gets run (`npmrc`, built packages, `init.d`), and the commands of one
workspace must not run in another.

Under bubblewrap they lie over the user's own, of which everything else stays readable; so no command can change
what the user's own programs find there. Where the user has no such directory, and under Landlock, environment
variables lead to ours.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from gripfast.host.kernel.folders import folders
from gripfast.host.program.places import cache_directory, private_directory
from gripfast.records import dataclass
from gripfast.text.below import is_below

LIMIT_BYTES = 10 * 1024**3
_TRIM_EVERY_SECONDS = 24 * 3600
_MASKED = ("/tmp", "/run")  # replaced as a whole: the user has nothing of their own there
_MOST_SHOWN = 200  # of the user's own entries in one cache directory


@dataclass(frozen=True, slots=True)
class ToolCache:
    """Where a tool keeps its cache. `ours` are the names in it that are private to commands; if empty, all are.
    `variable` is the tool's own setting for it, and the folder of ours to set it to."""

    home: str
    ours: frozenset[str] = frozenset()
    variable: str = ""
    folder: str = ""


def _tool(home: str, ours: str = "", variable: str = "", folder: str = "") -> ToolCache:
    return ToolCache(home, frozenset(ours.split()), variable, folder)


_XDG = (
    "pip uv pypoetry pdm hatch virtualenv pre-commit mypy ruff go-build golangci-lint golangci yarn pnpm node "
    "node-gyp npm bun deno typescript electron cargo sccache ccache bazel zig nix gradle"
)
TOOLS: tuple[ToolCache, ...] = (
    _tool(".cache", _XDG, "XDG_CACHE_HOME"),
    _tool(".npm", "", "npm_config_cache"),
    _tool(".local/share/pnpm", "store", "PNPM_HOME"),
    _tool(".yarn", "berry cache", "YARN_GLOBAL_FOLDER", "berry"),
    _tool(".bun", "install", "BUN_INSTALL_CACHE_DIR", "install/cache"),
    _tool(".cargo", "registry git .package-cache .package-cache-mutate .global-cache", "CARGO_HOME"),
    _tool(".rustup", "downloads tmp update-hashes"),
    _tool("go", "pkg", "GOPATH"),
    _tool(".m2", "repository wrapper"),
    _tool(".gradle", "caches daemon native wrapper workers notifications jdks kotlin .tmp", "GRADLE_USER_HOME"),
    _tool(".nuget", "packages", "NUGET_PACKAGES", "packages"),
    _tool(".gem", "specs", "GEM_SPEC_CACHE", "specs"),
    _tool(".ivy2"),
    _tool(".config", "configstore nextjs-nodejs turborepo"),
)
# Under Landlock nothing can lie over a directory, so each tool is told by itself: what it takes, and where in ours.
_VARIABLES: Mapping[str, str] = {
    "npm_config_cache": ".npm",
    "PNPM_HOME": ".local/share/pnpm",
    "COREPACK_HOME": ".cache/node/corepack",
    "YARN_GLOBAL_FOLDER": ".yarn/berry",
    "YARN_CACHE_FOLDER": ".cache/yarn",
    "BUN_INSTALL_CACHE_DIR": ".bun/install/cache",
    "PIP_CACHE_DIR": ".cache/pip",
    "UV_CACHE_DIR": ".cache/uv",
    "PRE_COMMIT_HOME": ".cache/pre-commit",
    "CARGO_HOME": ".cargo",
    "GOMODCACHE": "go/pkg/mod",
    "GOCACHE": ".cache/go-build",
    "GRADLE_USER_HOME": ".gradle",
    "NUGET_PACKAGES": ".nuget/packages",
    "GEM_SPEC_CACHE": ".gem/specs",
}


# Where tools install programs for all projects. Not on PATH: rules judge programs by their names, and whoever writes
# there chooses what a name means.
_INSTALLED: Mapping[str, str] = {
    "UV_TOOL_DIR": "tools/uv",
    "UV_TOOL_BIN_DIR": "tools/bin",
    "PIPX_HOME": "tools/pipx",
    "PIPX_BIN_DIR": "tools/bin",
    "npm_config_prefix": "tools/npm",
}


@dataclass(frozen=True, slots=True)
class Caches:
    """What a sandbox adds for caches: `folders` are ours (one or none), `over` are pairs of our directory and the
    user's, `shown` is what of the user's stays readable there, `variables` are set for tools that take their cache
    from the environment."""

    folders: tuple[str, ...] = ()
    over: tuple[tuple[str, str], ...] = ()
    shown: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


NO_CACHES = Caches()


def caches_folder() -> Path:
    return cache_directory() / "commands"


def caches_for(level: str, write: Sequence[str]) -> Caches:
    """The caches of commands at a sandbox level: under bubblewrap and Landlock. Makes the folder."""
    if level not in ("bwrap", "landlock"):
        return NO_CACHES
    try:
        private_directory(cache_directory())
        folder = str(private_directory(private_directory(caches_folder()) / _folder_name(write)))
        os.utime(folder)
    except (OSError, RuntimeError):  # no home, or a full or read-only disk: tools then do without
        return NO_CACHES
    installed = tuple((name, f"{folder}/{place}") for name, place in _INSTALLED.items())
    if level == "landlock":
        named = tuple((name, f"{folder}/{place}") for name, place in _VARIABLES.items())
        return Caches((folder,), variables=(*named, *installed))
    over = _laid_over(folder, write)
    return replace(over, variables=(*over.variables, *installed))


def _folder_name(write: Sequence[str]) -> str:
    """One name for each workspace, which is the first root that commands may write."""
    root = os.fsencode(write[0] if write else "")
    return hashlib.sha256(root).hexdigest()[:16]


def _laid_over(folder: str, write: Sequence[str]) -> Caches:
    over: list[tuple[str, str]] = []
    shown: list[str] = []
    variables: list[tuple[str, str]] = []
    for tool in TOOLS:
        place, ours = _place(tool), f"{folder}/{tool.home}"
        if is_below(place, *write):
            continue
        if os.path.isdir(place) and not is_below(place, *_MASKED):
            os.makedirs(ours, mode=0o700, exist_ok=True)
            over.append((ours, place))
            shown += _shown(place, tool)
        elif tool.variable:
            variables.append((tool.variable, os.path.join(ours, tool.folder).rstrip("/")))
    return Caches((folder,), tuple(over), tuple(shown), tuple(variables))


def _place(tool: ToolCache) -> str:
    """Where the user keeps it: where the variable says, if that is set."""
    named = os.environ.get(tool.variable, "") if tool.variable and not tool.folder else ""
    return os.path.realpath(named if os.path.isabs(named) else os.path.expanduser(f"~/{tool.home}"))


def _shown(place: str, tool: ToolCache) -> Iterator[str]:
    """The user's own entries that stay readable: all but those that commands have for themselves."""
    if not tool.ours:
        return
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    own = cache_directory().name
    for name in [name for name in names if name not in tool.ours and name != own][:_MOST_SHOWN]:
        if not os.path.islink(f"{place}/{name}"):
            yield f"{place}/{name}"


def caches_size(place: Path | None = None) -> int:
    """How many bytes the caches of commands take, of all workspaces or one."""
    total = 0
    for folder, _, names in folders(place or caches_folder()):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total


def clear_caches() -> None:
    """Removes all that commands have cached."""
    _remove(caches_folder())


def _remove(place: Path) -> None:
    """Also directories without write permission: that is how go keeps its modules."""
    for folder, _, _ in folders(place):
        with suppress(OSError):
            os.chmod(folder, 0o700)
    shutil.rmtree(place, ignore_errors=True)


def trim_caches() -> None:
    """Once a day: if the caches have grown over the limit, those that were not used for longest are removed."""
    stamp = caches_folder() / ".trimmed"
    try:
        if not caches_folder().is_dir() or time.time() - _age(stamp) < _TRIM_EVERY_SECONDS:
            return
        stamp.touch(mode=0o600)
    except OSError:
        return
    with suppress(OSError):
        places = [place for place in caches_folder().iterdir() if place != stamp]
        room = LIMIT_BYTES
        for place in sorted(places, key=lambda place: place.lstat().st_mtime, reverse=True):
            room -= caches_size(place)
            if room < 0:
                _remove(place)


def _age(stamp: Path) -> float:
    try:
        return stamp.stat().st_mtime
    except FileNotFoundError:
        return 0.0
