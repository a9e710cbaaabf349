"""What rules need to know about the machine, passed in by `builtin`. By default nothing is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gripfast.records import dataclass

Problem: TypeAlias = str | None


def _nowhere() -> str:
    return ""


def _not_found(name: str) -> str | None:
    return None


def _not_listed(directory: str, name: str) -> bool:
    return False


def _not_refused(path: str) -> Problem:
    return None


def _is_not_there(path: str) -> bool:
    return False


def _has_dashes(directory: str) -> bool:
    return True


def _not_recorded(path: str) -> Problem:
    return "nothing is recorded, so what is removed could not be brought back"


def _nothing_runs(directory: str, looks: bool) -> Problem:
    return None


def nothing_lost(path: str) -> Problem:
    """What is removed comes back."""
    return None


@dataclass(frozen=True, slots=True)
class Facts:
    """The machine as commands will find it.

    `sandboxed`: writes of commands are held to the scope. `is_bash`: commands are read by bash and no other shell.
    `directory` is where the shell is, as a real path. `scratch` are directories that are the session's alone.
    `file_of` gives the real file that a program's name leads to by PATH. `writes_to` says why a real path can't be
    written, None if it can; without it, names that start with a dot are asked about. `is_locked` says whether a lock
    file at or above a directory names a package's program. `git_runs` says what of a repository's own configuration
    would be run by git in a directory, by a command that only looks or by one that changes something. `writer` is the
    tool whose rules also hold for the files that a command writes. `moving_refusal` says why what a path or pattern
    names may not be put elsewhere as it is. `exists` says whether there is something at a path. `has_dashes` says
    whether some name in a directory starts with a dash, so that a pattern may become an option. `removal_problem`
    says why what a path or pattern names could not be brought back once it is removed. `home` is what `~` is for
    commands, if that is known.
    """

    sandboxed: bool = False
    is_bash: bool = True
    directory: Callable[[], str] = _nowhere
    scratch: tuple[str, ...] = ()
    file_of: Callable[[str], str | None] = _not_found
    writes_to: Callable[[str], Problem] | None = None
    is_locked: Callable[[str, str], bool] = _not_listed
    git_runs: Callable[[str, bool], Problem] = _nothing_runs
    writer: str = ""
    moving_refusal: Callable[[str], Problem] = _not_refused
    exists: Callable[[str], bool] = _is_not_there
    has_dashes: Callable[[str], bool] = _has_dashes
    removal_problem: Callable[[str], Problem] = _not_recorded
    home: str = ""


NOTHING_KNOWN = Facts()
