"""Whether what a command removes could be brought back by the record."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Callable, Sequence
from typing import TypeAlias

from gripfast.host.files.moving import with_all_below
from gripfast.host.files.watch import Watch
from gripfast.host.record.git_blobs import ignored_below
from gripfast.host.record.record import Record
from gripfast.host.record.shelf import RecordOptions
from gripfast.text.below import is_below

_MOST_ENTRIES = 5000
# Where git ignores them, these hold what a build or an installation makes again.
_MADE_AGAIN = frozenset(
    """node_modules dist build out target coverage htmlcov __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox
    .next .nuxt .turbo .parcel-cache .eggs""".split()
)
# These are made again whether git ignores them or not: caches, and what a lock file beside them names.
_CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})
_LOCKS = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb")
_NAME_PACKAGES = ("pyproject.toml", "requirements.txt", "uv.lock", "poetry.lock", "Pipfile", "setup.py")
_UNRECORDED = frozenset({".git", "node_modules", ".venv"})

Loss: TypeAlias = Callable[[str, os.stat_result], str | None]
"""Why a file or link could not be put back as it is now."""


def removal_problem(record: Record, watch: Watch, pattern: str) -> str | None:
    """Why what a path or a shell's pattern names could not be put back by this session's record; None if it could.
    Does not wait: `Record.be_ready` does."""
    record.watch_with(watch)
    if record.fault is not None or not record.cover.wait(0):
        return "what is removed is not recorded yet, so it could not be brought back"
    record.cover.refresh(watch)
    return _problem(pattern, record.cover.loss, record.cover.is_ignored, record.fs.roots)


def removal_forecast(options: RecordOptions, roots: Sequence[str]) -> Callable[[str], str | None]:
    """The same for a session that is not open: what no record of these roots would hold."""
    is_ignored = ignored_below(roots)

    def loss(path: str, found: os.stat_result) -> str | None:
        if found.st_size > options.largest_file or is_ignored(path):
            return "it is too large, or ignored by git"
        return None if _UNRECORDED.isdisjoint(path.split("/")) else "what is inside is not recorded"

    return lambda pattern: _problem(pattern, loss, is_ignored, roots)


def _problem(pattern: str, loss: Loss, is_ignored: Callable[[str], bool], roots: Sequence[str]) -> str | None:
    count = 0
    for path in [pattern] if os.path.lexists(pattern) else glob.iglob(pattern):
        path = os.path.normpath(path)
        if path in roots or not is_below(path, *roots):
            return f"{path} is not recorded"
        if _is_made_again(path, is_ignored):
            continue
        for entry in with_all_below(path):
            count += 1
            if count > _MOST_ENTRIES:
                return f"more than {_MOST_ENTRIES} files, too many to look through"
            if (reason := _lost(entry, loss)) is not None:
                return f"{entry} could not be brought back: {reason}{_hint(path)}"
    return None


def _is_made_again(path: str, is_ignored: Callable[[str], bool]) -> bool:
    """Whether a directory holds only what a build, an installation or a program makes again."""
    folder, name = os.path.split(path)
    if os.path.islink(path):
        return False
    if os.path.isfile(os.path.join(path, "pyvenv.cfg")):
        return is_ignored(path) or any(os.path.isfile(os.path.join(folder, file)) for file in _NAME_PACKAGES)
    if name not in _MADE_AGAIN:
        return False
    locked = name == "node_modules" and any(os.path.isfile(os.path.join(folder, lock)) for lock in _LOCKS)
    return name in _CACHES or locked or is_ignored(path)


def _hint(path: str) -> str:
    name = os.path.basename(path)
    return f" (if {name} can be made again, name it in .gitignore)" if name in _MADE_AGAIN else ""


def _lost(path: str, loss: Loss) -> str | None:
    try:
        found = os.lstat(path)
    except OSError as error:
        return error.strerror
    return None if stat.S_ISDIR(found.st_mode) else loss(path, found)
