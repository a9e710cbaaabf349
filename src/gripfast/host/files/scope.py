"""Scope: which places may be read and written. The paths of its roots are resolved once, when a session starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from gripfast.errors import InvalidArgument, NotDirectory, NotFound, SandboxViolation
from gripfast.host.files.patterns import Patterns
from gripfast.records import dataclass
from gripfast.text.below import is_below
from gripfast.text.escape import escaped

# What nothing on this machine runs: a CI service does, after a push.
RUN_BY_CI: tuple[str, ...] = (
    *("**/.github/workflows", ".gitlab-ci.yml", ".circleci", ".travis.yml", ".buildkite", "azure-pipelines.yml"),
    *".drone.yml .drone.jsonnet .drone.star .woodpecker.yml .woodpecker.yaml .woodpecker".split(),
    *"Jenkinsfile bitbucket-pipelines.yml .cirrus.yml .semaphore".split(),
    *("**/.gitea/workflows", "**/.forgejo/workflows", "appveyor.yml", ".appveyor.yml", ".builds", ".build.yml"),
)
_LEFTHOOK = ("lefthook", ".lefthook", "lefthook-local", ".lefthook-local")
# Files that other programs run or obey when they next read them: never written unless the user lifts the protection.
PROTECTED: tuple[str, ...] = (
    *".git git~1 .gitmodules .mcp.json".split(),
    *".claude .codex .cursor .gemini .opencode opencode.json opencode.jsonc .kiro .roo .windsurf".split(),
    *".continue .amazonq .factory .qwen .junie .trae crush.json .crush.json .aider.conf.yml".split(),
    *".run .externalToolBuilders .overcommit.yml captainhook.json grumphp.yml prek.toml hk.pkl .yarnrc".split(),
    *".vscode .idea .zed .fleet .vs .devcontainer .devcontainer.json .gitpod.yml .husky".split(),
    *".envrc .npmrc .pre-commit-config.yaml mise.toml mise.local.toml .mise.toml .mise.local.toml .mise .mvn".split(),
    *("**/mise/config.toml", "**/mise/config.local.toml", "**/.config/mise.toml", "**/.config/mise"),
    *(f"{name}.{kind}" for name in _LEFTHOOK for kind in ("yml", "yaml", "toml", "json")),
    *".autoenv .autoenv.zsh .autoenv_leave .autoenv_leave.zsh .in.zsh .out.zsh .shadowenv.d".split(),
    *".gdbinit .lldbinit .exrc .nvimrc .nvim.lua .dir-locals.el .dir-locals-2.el".split(),
    *("**/.github/hooks", "**/.clinerules/hooks", ".openhands"),
    *("**/.hg/hgrc", "**/.hg/hgrc-not-shared", "**/.sl/config", "**/.jj/repo/config.toml"),
    *("**/.cargo/config.toml", "**/.cargo/config"),
    *RUN_BY_CI,
    *".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .inputrc".split(),
    *".zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout".split(),
    *("**/.config/fish", "**/.config/gripfast"),
    *"gripfast.toml .gripfast.toml .gripfast".split(),
)

AnyPath = str | os.PathLike[str]


class WideRoot(InvalidArgument):
    """A root that contains the home directory, without the user's confirmation. `how` says how to confirm it."""

    def __init__(self, root: str, how: str) -> None:
        super().__init__(f"the root {root!r} contains your whole home directory; confirm that {how}, or name less")
        self.root = root


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory of a scope in both spellings: as it was given, and as it really is."""

    given: str
    real: str
    device: int
    inode: int

    def require_unmoved(self) -> None:
        """Refuses a directory that is no longer the one the session started with."""
        require_unmoved(self.given, self.real, (self.device, self.inode))


def require_unmoved(given: str, real: str, identity: tuple[int, int]) -> None:
    """Refuses a root whose path no longer leads to the directory it was, by device and inode."""
    try:
        found = os.stat(real)
    except OSError:
        found = None
    if found is None or (found.st_dev, found.st_ino) != identity:
        raise SandboxViolation(
            f"the root `{escaped(given)}` is no longer the directory this session started with: it was moved, "
            "replaced or unmounted; put it back or start a new session"
        )


@dataclass(frozen=True, slots=True, init=False)
class Scope:
    """Where files may be read (`read=None`: anywhere) and written, and what is closed inside that.

    `deny` patterns close places for reading and writing, `protect` patterns for writing (see `Patterns`).
    Relative paths start at the first root: the first of `read`, else of `write`.
    What may be written may be read.
    `/`, the home directory and what contains it are taken only with `wide=True`.
    """

    read: tuple[Directory, ...] | None
    write: tuple[Directory, ...]
    deny: Patterns
    protect: Patterns

    def __init__(
        self,
        read: Sequence[AnyPath] | None = None,
        write: Sequence[AnyPath] = (),
        deny: Iterable[str] = (),
        protect: Iterable[str] = PROTECTED,
        *,
        wide: bool = False,
    ) -> None:
        _no_bare_text(read=read, write=write, deny=deny, protect=protect)
        if not read and not write:
            raise InvalidArgument("a scope needs at least one directory; name one in `read` or `write`")
        found_read = None if read is None else tuple(_directory(place, wide) for place in read)
        object.__setattr__(self, "read", found_read)
        object.__setattr__(self, "write", tuple(_directory(place, wide) for place in write))
        object.__setattr__(self, "deny", Patterns(deny))
        object.__setattr__(self, "protect", Patterns(protect))

    @classmethod
    def workspace(
        cls,
        root: AnyPath,
        *more: AnyPath,
        deny: Iterable[str] = (),
        protect: Iterable[str] = PROTECTED,
        read_only: bool = False,
        wide: bool = False,
    ) -> Scope:
        """Reading and writing (unless `read_only`) inside these directories, and nowhere else."""
        roots = (root, *more)
        return cls(roots, () if read_only else roots, deny, protect, wide=wide)

    @property
    def roots(self) -> tuple[Directory, ...]:
        """Every named directory, each once; the first is where relative paths start."""
        return distinct((*(self.read or ()), *self.write))


def distinct(directories: Iterable[Directory]) -> tuple[Directory, ...]:
    """Each directory once, by its real path."""
    named: dict[str, Directory] = {}
    for directory in directories:
        named.setdefault(directory.real, directory)
    return tuple(named.values())


def _no_bare_text(**lists: object) -> None:
    for name, value in lists.items():
        if isinstance(value, str | bytes | os.PathLike):
            raise InvalidArgument(f"`{name}` is a list; write {name}=[{value!r}]")


def _directory(place: AnyPath, wide: bool) -> Directory:
    text = os.fspath(place)
    if not text or "\0" in text:
        raise InvalidArgument(f"the root {text!r} is not a directory name; give one ('.' is the current directory)")
    path = os.path.join(os.getcwd(), os.path.expanduser(text))
    real = os.path.realpath(path)
    if not os.path.exists(real):
        raise NotFound(f"the root {text!r} does not exist; create it or name another")
    if not os.path.isdir(real):
        raise NotDirectory(f"the root {text!r} is not a directory; name the directory it is in")
    if not wide and _is_wide(real):
        raise WideRoot(text, "(wide=True)")
    given = os.path.normpath(path)
    found = os.stat(real)
    return Directory(given if os.path.realpath(given) == real else real, real, found.st_dev, found.st_ino)


def _is_wide(real: str) -> bool:
    home = os.path.realpath(os.path.expanduser("~"))
    return is_below(home, real)
