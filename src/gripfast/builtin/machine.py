"""What the machine knows, as rules ask for it: where the shell is, which file a program is, what git would run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from gripfast.builtin.write import write
from gripfast.call.shell.facts import Facts
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.moving import is_there, moving_refusal
from gripfast.host.program.lockfiles import is_locked
from gripfast.host.program.repository import git_runs
from gripfast.host.shell.environment import command_environment, program_file
from gripfast.host.shell.sandbox import Mode, choose
from gripfast.host.shell.script import find_shell
from gripfast.host.shell.shells import Shells


class ShellPlace:
    """Where a session's shell is: where it last was, or where it will start."""

    def __init__(self, start: str | None = None) -> None:
        self.start = start
        self.shells: Shells | None = None

    def directory(self) -> str:
        return self.shells.directory if self.shells is not None else self.start or ""


def facts_of(fs: ScopedFs, place: ShellPlace, sandbox: Mode = "auto", env: Iterable[str] = ()) -> Facts:
    """The facts for one session. The sandbox is tried out if it was not before."""
    level = choose(sandbox).level
    allowed = tuple(env)
    private = ("/tmp",) if level == "bwrap" else ()

    @cache
    def path() -> str:
        return command_environment(temporary="/tmp", allow=allowed, roots=fs.roots)["PATH"]

    return Facts(
        sandboxed=level != "none",
        is_bash=find_shell(fs.roots).endswith("bash"),
        directory=lambda: place.directory() or fs.roots[0],
        scratch=private,
        file_of=lambda name: program_file(name, path()),
        writes_to=fs.write_refusal,
        is_locked=lambda directory, name: is_locked(directory or fs.roots[0], name, fs.roots),
        git_runs=lambda directory, looks: git_runs(directory or fs.roots[0], looks, level != "none"),
        writer=write.name,
        moving_refusal=lambda path: moving_refusal(path, fs.write_refusal),
        exists=is_there,
    )
