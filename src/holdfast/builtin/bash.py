"""Bash: runs a command in the session's shell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from anyio import to_thread
from pydantic import Field

from holdfast.builtin.endings import changed_files, ending, put_together
from holdfast.builtin.keys import CACHE, FS, READS, SHELL
from holdfast.call.cache import OutputCache
from holdfast.errors import SandboxViolation
from holdfast.host.changes import changes_since, look
from holdfast.host.fs import ScopedFs
from holdfast.host.guard import ReadLog
from holdfast.host.process import Ended, Shells
from holdfast.host.terminal import plain
from holdfast.messages import TextResult
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends


@tool(
    name="Bash",
    title="Run a command",
    effect="run",
    subject="command",
    output="head-tail",
    destructive=True,
    open_world=True,
)
async def bash(
    command: Annotated[str, Field(description="The shell command, or several lines of them.")],
    description: Annotated[str | None, Field(description="What it does, in a few words.")] = None,
    timeout: Annotated[int, Field(description="Milliseconds.", ge=1, le=600_000)] = 120_000,
    run_in_background: Annotated[
        bool, Field(description="Return an id at once; see BashOutput and KillBash.")
    ] = False,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    cache: Annotated[OutputCache, Depends(CACHE)],
    shells: Annotated[Shells, Depends(SHELL)],
) -> TextResult | str:
    """Runs a command in bash. The working directory persists between calls; variables don't. There is no input and no
    terminal. The answer has stdout and stderr as printed, the exit code unless 0, and the files that changed."""
    if not fs.scope.write and shells.sandbox.level == "none":
        raise SandboxViolation(
            "this scope is read-only, and there is no sandbox here that could hold a command to it"
        )
    if run_in_background:
        shell = await shells.start(command)
        return f'[{shell.name} started; BashOutput(bash_id="{shell.name}") shows what it prints]'
    return await _run(command, timeout, fs, reads, cache, shells)


async def _run(
    command: str, timeout: int, fs: ScopedFs, reads: ReadLog, cache: OutputCache, shells: Shells
) -> TextResult:
    roots = [directory.real for directory in fs.scope.write]
    before = await to_thread.run_sync(look, roots, reads)
    directory = shells.directory
    sink = cache.sink()
    try:
        ended = await shells.run(command, sink.feed, timeout_ms=timeout)
        streamed = await sink.finish()
    finally:
        sink.abandon()
    changes = await to_thread.run_sync(changes_since, before, roots, reads)
    text = plain(streamed.text)
    notes = [*ending(ended, timeout), *_directory(ended, directory, fs), *changed_files(changes, fs)]
    return TextResult(put_together(text, [*notes, *_why_refused(text, ended, shells)]), streamed.ref)


def _directory(ended: Ended, before: str, fs: ScopedFs) -> Iterator[str]:
    if ended.directory and ended.directory != before:
        yield f"[working directory: {fs.show_real(ended.directory)}]"


def _why_refused(text: str, ended: Ended, shells: Shells) -> Iterator[str]:
    """A program only says that it could not write; who reads that should know what held it."""
    if ended.exit_code and shells.sandbox.level == "bwrap" and "Read-only file system" in text:
        yield f"[{shells.sandbox.words}; the user can lift protection of a name with `protect` in the configuration]"
