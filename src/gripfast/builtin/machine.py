"""What the machine knows, as rules ask for it: where the shell is, which file a program is, what git would run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from gripfast.call.shell.facts import Facts
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.moving import has_dashes, is_there, moving_refusal
from gripfast.host.program.lockfiles import is_locked
from gripfast.host.program.userfile import user_path
from gripfast.host.shell.environment import command_path, program_file
from gripfast.host.shell.sandbox import SandboxMode, choose
from gripfast.host.shell.script import find_shell

if TYPE_CHECKING:
    from gripfast.host.shell.shells import Shells

_WRITER = "Write"  # the name of the tool in write.py, which is not loaded for every call


class ShellPlace:
    """Where a session's shell is: where it last was, or where it will start."""

    def __init__(self, start: str | None = None) -> None:
        self.start = start
        self.shells: Shells | None = None
        self.elsewhere: dict[str, str] = {}
        """Background shells on other servers, and why each can't be reached."""

    def directory(self) -> str:
        return self.shells.directory if self.shells is not None else self.start or ""

    def go(self, directory: str) -> None:
        """The next command starts there."""
        self.start = directory
        if self.shells is not None:
            self.shells.directory = directory


def _git_runs(directory: str, looks: bool, sandboxed: bool) -> str | None:
    from gripfast.host.program.repository import git_runs  # noqa: PLC0415 - loaded with the first git command

    return git_runs(directory, looks, sandboxed)


def facts_of(
    fs: ScopedFs,
    place: ShellPlace,
    sandbox: SandboxMode = "auto",
    removal_problem: Callable[[str], str | None] | None = None,
) -> Facts:
    """The facts for one session. The sandbox is tried out if it was not before. `removal_problem` is for a session
    with a record: why what a path names could not be put back."""
    chosen = choose(sandbox)
    private = ("/tmp",) if chosen.has_private_tmp else ()

    def file_of(name: str) -> str | None:
        return program_file(name, command_path(fs.roots, sandboxed=chosen.confines), fs.roots)

    facts = Facts(
        sandboxed=chosen.confines,
        is_bash=find_shell(fs.roots).endswith("bash"),
        directory=lambda: place.directory() or fs.roots[0],
        scratch=private,
        file_of=file_of,
        writes_to=fs.write_refusal,
        is_locked=lambda directory, name: is_locked(directory or fs.roots[0], name, fs.roots),
        git_runs=lambda directory, looks: _git_runs(directory or fs.roots[0], looks, chosen.confines),
        writer=_WRITER,
        moving_refusal=lambda path: moving_refusal(path, fs.write_refusal),
        exists=is_there,
        has_dashes=has_dashes,
        home=user_path("~"),
    )
    return facts if removal_problem is None else replace(facts, removal_problem=removal_problem)
