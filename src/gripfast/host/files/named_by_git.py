"""What in the workspace git would run or obey because the user's own settings name it.

`core.hooksPath = .githooks`, `include.path = ../.gitconfig` or `core.fsmonitor = tools/watch` make ordinary files of
a project into instructions for the user's git. https://git-scm.com/docs/git-config
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from gripfast.host.files.gitconfig import settings_in
from gripfast.host.files.gitdirs import named_directory
from gripfast.host.kernel.regular import beginning_of
from gripfast.text.below import is_below

# https://git-scm.com/docs/githooks
_HOOKS = (
    "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg "
    "post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive "
    "post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate "
    "fsmonitor-watchman p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change"
).split()
_INCLUDES = r"include(?:if\.\*)?\.path\Z"
# Settings whose value is a command.
_COMMANDS = (
    r"(?:core\.(?:fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|sequence\.editor"
    r"|gpg(?:\.\*)?\.program|gpg\.\*\.defaultkeycommand|filter\.\*\.(?:clean|smudge|process)"
    r"|diff\.(?:external|\*\.command|\*\.textconv)|interactive\.difffilter|merge\.\*\.driver"
    r"|(?:diff|merge)tool\.\*\.(?:cmd|path)|credential(?:\.\*)?\.helper|alias\..*|pager\..*|browser\.\*\.(?:cmd|path)"
    r"|remote\.\*\.(?:uploadpack|receivepack|vcs)|uploadpack\.packobjectshook|tar\.\*\.command"
    r"|trailer\.\*\.(?:command|cmd)|sendemail(?:\.\*)?\.(?:smtpserver|sendmailcmd|tocmd|cccmd|headercmd))\Z"
)
_BETWEEN_WORDS = r"""[\s'"`;|&()<>=!]+"""
_HERE, _HOME = r"\$(?:PWD\b|\{PWD\})", r"\$(?:HOME\b|\{HOME\})"
_GOES_TO = r"""\bcd\s+(?:--\s+)?["']?([^\s"';|&]+)"""
_MODULE = r"\s-m\s*([\w.]+)"
_LARGEST, _DEEPEST, _MOST = 1 << 20, 10, 500

_Stamp = tuple[int, int, int, int]


class NamedByGit:
    """Answers for the repositories below some roots, and for those that contain the roots."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self._read: dict[str, tuple[_Stamp, tuple[tuple[str, str], ...]]] = {}

    def near(self, path: str) -> frozenset[str]:
        """What is named by the repositories that contain a real path."""
        return self.of(f"{above}/.git" for above in _above(path))

    def around(self) -> Iterator[str]:
        """The `.git` of the repositories that contain the roots."""
        yield from (f"{above}/.git" for root in self._roots for above in _above(root))

    def of(self, dot_gits: Iterable[str]) -> frozenset[str]:
        """What these repositories name, as every path below the roots that leads to it. It need not exist."""
        found: set[str] = set()
        for dot_git in dot_gits:
            directory = dot_git if os.path.isdir(dot_git) else named_directory(dot_git)
            if directory is not None:
                found.update(self._named(os.path.dirname(dot_git), directory))
        real = {os.path.realpath(path) for path in found}
        return frozenset(path for path in found | real if is_below(path, *self._roots) and path not in self._roots)

    def _named(self, top: str, directory: str) -> Iterator[str]:
        """`top`: where git runs hooks and commands."""
        own = [f"{place}/{name}" for place in _homes(directory) for name in ("config", "config.worktree")]
        for file in (*own, *_of_the_user()):
            yield from self._in_file(file, top, _DEEPEST)
        for place in _homes(directory):
            yield from _links(f"{place}/hooks")

    def _in_file(self, file: str, top: str, deep: int) -> Iterator[str]:
        for shape, value in self._settings(file) if deep else ():
            if re.match(_INCLUDES, shape):
                included = _path(value, os.path.dirname(file))
                yield included
                yield from self._in_file(included, top, deep - 1)
            elif shape == "core.hookspath":
                yield from (f"{_path(value, top)}/{name}" for name in _HOOKS)
            elif re.match(_COMMANDS, shape):
                yield from (place for place in _in_command(value, top) if not os.path.isdir(place))
            elif shape == "init.templatedir":
                yield _path(value, top)

    def _settings(self, file: str) -> tuple[tuple[str, str], ...]:
        try:
            found = os.stat(file)
        except (OSError, ValueError):
            return ()
        stamp = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        known = self._read.get(file)
        if known is None or known[0] != stamp:
            text = os.fsdecode(beginning_of(file, _LARGEST, follow=True) or b"")
            settings = (one for one in settings_in(text) if _matters(one[0]))
            known = self._read[file] = (stamp, tuple(settings)[:_MOST])
        return known[1]


def _matters(shape: str) -> bool:
    return shape in ("core.hookspath", "init.templatedir") or bool(
        re.match(_INCLUDES, shape) or re.match(_COMMANDS, shape)
    )


def _in_command(value: str, top: str) -> Iterator[str]:
    """The files that a command line may mean, in the directory where git runs it and in those that it enters."""
    line = re.sub(_HOME, "~", re.sub(_HERE, ".", value))
    words = [word for word in re.split(_BETWEEN_WORDS, line) if "/" in word]
    modules = [module.replace(".", "/") for module in re.findall(_MODULE, line)]
    words += [f"{module}{end}" for module in modules for end in (".py", "/__main__.py", "/__init__.py")]
    for base in (top, *(_path(place, top) for place in re.findall(_GOES_TO, line))):
        yield from (_path(word, base) for word in words)


def _homes(directory: str) -> tuple[str, ...]:
    """A git directory, and for that of a worktree the one of its repository."""
    above = os.path.dirname(directory)
    return (directory, os.path.dirname(above)) if os.path.basename(above) == "worktrees" else (directory,)


def _of_the_user() -> tuple[str, ...]:
    home = os.path.expanduser("~")
    return (
        f"{home}/.gitconfig",
        f"{os.environ.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git/config",
        "/etc/gitconfig",
    )


def _path(value: str, base: str) -> str:
    return os.path.normpath(os.path.join(base, os.path.expanduser(value)))


def _links(hooks: str) -> Iterator[str]:
    try:
        with os.scandir(hooks) as entries:
            yield from (os.path.realpath(entry.path) for entry in entries if entry.is_symlink())
    except OSError:
        return


def _above(path: str) -> Iterator[str]:
    """A path and the directories above it."""
    while True:
        yield path
        if path == "/":
            return
        path = os.path.dirname(path)
