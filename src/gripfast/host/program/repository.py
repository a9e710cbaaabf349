"""What a repository makes git run: programs named in its own configuration, and its hooks.

git has no setting that disables the programs in one repository's configuration. So the configuration is read here,
and every key that is not known to be harmless counts as one that runs a program. https://git-scm.com/docs/git-config
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from functools import lru_cache

from gripfast.host.kernel.regular import beginning_of
from gripfast.host.program.programs import find_program

_MOST_SUBMODULES = 50
_LARGEST_CONFIG = 1 << 20
_LARGEST_INDEX = 1 << 30
_SECONDS = 30
_GITLINK = b"\0\0\xe0\0"  # the mode of a submodule in the index

_HARMLESS = re.compile(
    r"""core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol|
      safecrlf|quotepath|abbrev|compression|loosecompression|longpaths|sharedrepository|untrackedcache|preloadindex|
      checkstat|trustctime|whitespace|commentchar|fsmonitor|sparsecheckout|sparsecheckoutcone|multipackindex|commitgraph|
      protecthfs|protectntfs|bigfilethreshold|splitindex|fscache)
    |remote\..+\.(?:url|fetch|pushurl|push|tagopt|prune|prunetags|mirror|gh-resolved)
    |branch\..+\.(?:remote|merge|rebase|pushremote|description|vscode-merge-base|gh-merge-base|github-pr-owner-number)
    |branch\.(?:autosetupmerge|autosetuprebase|sort)|(?:user|author|committer)\.(?:name|email|useconfigonly|signingkey)
    |submodule\.(?:active|recurse|fetchjobs)|submodule\..+\.(?:url|active|branch|fetchrecursesubmodules|ignore|shallow)
    |pull\.(?:rebase|ff)|push\.(?:default|autosetupremote|followtags)|fetch\.(?:prune|prunetags|parallel|writecommitgraph)
    |merge\.(?:conflictstyle|ff|stat|renames|renamelimit)|rebase\.(?:autostash|autosquash|updaterefs|stat)
    |rerere\.(?:enabled|autoupdate)|init\.defaultbranch|extensions\.(?!partialclone)\w+|lfs\.repositoryformatversion|lfs\..+\.access
    |diff\.(?:algorithm|renames|renamelimit|mnemonicprefix|colormoved|colormovedws|context|submodule|ignoresubmodules|
      noprefix|indentheuristic|wserrorhighlight|interhunkcontext)
    |gc\.(?!recentobjectshook)\w+|(?:status|color|column|advice|maintenance|pack|index|feature|gitflow|i18n)\..+|log\.(?:date|abbrevcommit|decorate|
      follow|mailmap)|commit\.(?:verbose|status|cleanup)|tag\.sort|checkout\.(?:defaultremote|guess|workers)|
      worktree\.guessremote|http\.(?:postbuffer|lowspeedlimit|lowspeedtime|version)""",
    re.VERBOSE,
)
# Hooks that belong to commands which change something. In the sandbox they run, like the project's own tests.
_WANTED_BY_CHANGES = re.compile(
    r"filter\..+\.(?:clean|smudge|process|required)|core\.hookspath|merge\..+\.(?:name|driver)"
)
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=|$)")


def git_runs(directory: str, looks: bool, sandboxed: bool) -> str | None:
    """What the repository of a directory would make git run, as text for a person; None if nothing. `looks` means
    that the git command only reads."""
    found = repository_of(directory)
    if found is None:
        return None
    return _problem(*found, looks=looks, sandboxed=sandboxed, depth=0)


def _problem(tree: str, git: str, *, looks: bool, sandboxed: bool, depth: int) -> str | None:
    common = common_of(git)
    for config in (os.path.join(common, "config"), os.path.join(git, "config.worktree")):
        for key in _keys(config):
            if not _HARMLESS.fullmatch(key) and not (sandboxed and not looks and _WANTED_BY_CHANGES.fullmatch(key)):
                return f"git may run what `{key}` in {config} says"
    hooks = _hooks(os.path.join(common, "hooks"))
    unwanted = [hook for hook in hooks if (hook == "post-index-change" if looks else not sandboxed)]
    if unwanted:
        return f"git would run the hook {os.path.join(common, 'hooks', unwanted[0])}"
    return _submodule_problem(tree, git, looks=looks, sandboxed=sandboxed, depth=depth)


def repository_of(directory: str) -> tuple[str, str] | None:
    """The working tree and the git directory that git would find from this directory."""
    place = os.path.realpath(directory or ".")
    while True:
        git = os.path.join(place, ".git")
        if os.path.isdir(git):
            return place, git
        if os.path.isfile(git):
            return place, _pointed(place, git)
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above


def _pointed(place: str, file: str) -> str:
    text = _text(file).strip()
    return os.path.normpath(os.path.join(place, text.removeprefix("gitdir:").strip()))


def common_of(git: str) -> str:
    """The git directory that a worktree's own shares with the others; the same for any other."""
    named = _text(os.path.join(git, "commondir")).strip()
    return os.path.normpath(os.path.join(git, named)) if named else git


def _text(path: str) -> str:
    return os.fsdecode(beginning_of(path, _LARGEST_CONFIG, follow=True) or b"")


def _keys(path: str) -> Iterator[str]:
    """Every key that a configuration may set. A line that can't be parsed is returned as it is, so that it counts."""
    section = ""
    for line in _text(path).splitlines():
        rest = line.strip()
        while (opened := _SECTION.match(rest)) is not None:
            section = opened[1].lower() + (f".{opened[2].lower()}" if opened[2] is not None else "")
            rest = rest[opened.end() :].strip()
        if not rest or rest[0] in "#;":
            continue
        key = _KEY.match(rest)
        yield f"{section}.{key[1].lower()}" if key is not None else rest[:80]


def _hooks(directory: str) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [
        name for name in names if not name.endswith(".sample") and os.access(os.path.join(directory, name), os.X_OK)
    ]


def _submodule_problem(tree: str, git: str, *, looks: bool, sandboxed: bool, depth: int) -> str | None:
    for path in _submodules(tree, git):
        place = os.path.join(tree, path)
        inner = os.path.join(place, ".git")
        if os.path.islink(place) or depth >= 4:
            return f"the submodule {place} can't be looked into"
        found = inner if os.path.isdir(inner) else _pointed(place, inner) if os.path.isfile(inner) else None
        if found is not None:
            problem = _problem(place, found, looks=looks, sandboxed=sandboxed, depth=depth + 1)
            if problem is not None:
                return problem
    return None


def _submodules(tree: str, git: str) -> Sequence[str]:
    index = os.path.join(git, "index")
    try:
        found = os.stat(index)
    except OSError:
        return ()
    return _listed(tree, index, found.st_mtime_ns, found.st_size, found.st_ino)


@lru_cache(maxsize=64)
def _listed(tree: str, index: str, _time: int, _size: int, _inode: int) -> Sequence[str]:
    """The submodules in an index. git is asked only if the index may have one."""
    folder = os.path.dirname(index)
    parts = [index, *(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("sharedindex."))]
    if not any(_GITLINK in (beginning_of(part, _LARGEST_INDEX, follow=True) or b"") for part in parts):
        return ()
    program = find_program("git", on_path=False)
    entries = _ls_files(program, tree).split("\0")
    links = [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]
    return tuple(links[: _MOST_SUBMODULES + 1])


def git_files(directory: str) -> list[str]:
    """What a search reads of the repository that a directory is in: the excluded names, and what leads there."""
    found = repository_of(directory)
    if found is None:
        return []
    git = found[1]
    return [
        os.path.join(git, "commondir"),
        *(os.path.join(place, "info", "exclude") for place in (git, common_of(git))),
    ]


def waits_for_nobody(git: str) -> bool:
    """Whether git can read what it needs of a git directory at once: a FIFO would make it wait for a writer."""
    names = ("HEAD", "index", "config", "config.worktree", "commondir", "packed-refs", "info/exclude")
    places = [os.path.join(place, name) for place in {git, common_of(git)} for name in names]
    return all(os.path.isfile(place) or not os.path.lexists(place) for place in places)


def _ls_files(program: str, directory: str) -> str:
    """What git lists; nothing where that takes too long, or git would wait for somebody to write."""
    found = repository_of(directory)
    if found is None or not waits_for_nobody(found[1]):
        return ""
    quiet = ("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false")
    try:
        listing = subprocess.run(
            [program, *quiet, "ls-files", "-s", "-z"],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={"HOME": "/"},
        )
    except subprocess.TimeoutExpired:
        return ""
    return listing.stdout.decode("utf-8", "surrogateescape")
