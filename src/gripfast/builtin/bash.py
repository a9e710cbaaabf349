"""Bash: runs a command in the session's shell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import inf
from typing import Annotated, Any

from anyio import to_thread
from pydantic import AfterValidator

from gripfast.builtin.bash_output import state_of, stored
from gripfast.builtin.endings import (
    changed_files,
    ending,
    left_out,
    moved_roots,
    printed,
    taken_out,
    with_notes,
    would_change,
)
from gripfast.builtin.explained import not_found, refused_writes, stuck_files, unreached_names
from gripfast.builtin.keys import ANSWER_BY, CACHE, FS, JOINED, READS, SHELL, WATCH
from gripfast.call.cache import OutputCache
from gripfast.call.shell.git_alone import runs_git_alone
from gripfast.clock import monotonic
from gripfast.errors import InvalidArgument, SandboxViolation
from gripfast.framework.definition import Joined, tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.changes import changes_since, follow, look, prepare
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.watch import Watch
from gripfast.host.shell.background import Background
from gripfast.host.shell.ended import Ended
from gripfast.host.shell.job import Stdin
from gripfast.host.shell.shells import Shells
from gripfast.messages import TextResult
from gripfast.records import dataclass


async def _joins(
    call: Any,
    *,
    shells: Annotated[Shells, Depends(SHELL)],
    answer_by: Annotated[float | None, Depends(ANSWER_BY)],
) -> Joined | None:
    """The same command again, soon after an answer said that it goes on, runs nothing."""
    is_plain = not (call.run_in_background or call.dry_run or call.tty) and call.outside_sandbox is None
    known = shells.handed_over(call.command) if is_plain and answer_by is not None else None
    if known is None:
        return None
    return Joined(f"it waits for {known.name}, which the same command started before", {JOINED.id: known})


async def _refuses(call: Any) -> None:
    _check_together(
        background=call.run_in_background,
        dry_run=call.dry_run,
        outside=call.outside_sandbox is not None,
        stdin=call.stdin,
        tty=call.tty,
    )


def _check_together(*, background: bool, dry_run: bool, outside: bool, stdin: bool, tty: bool) -> None:
    """Refuses arguments that don't go together."""
    if dry_run:
        given = {"run_in_background": background, "outside_sandbox": outside, "tty": tty}
        if refused := [name for name, is_given in given.items() if is_given]:
            raise InvalidArgument(f"a dry run does not take {' and '.join(refused)}; leave out one or the other")
    if background and outside:
        raise InvalidArgument("`outside_sandbox` does not go with run_in_background; leave out one or the other")
    if stdin and not background and not dry_run:
        raise InvalidArgument(
            "`stdin` is only for run_in_background, where BashInput sends to it; else use a here-document or a pipe"
        )


def _not_blank(command: str) -> str:
    if not command.strip():
        raise ValueError("is blank; give a command")
    return command


@tool(
    later=True,
    name="Bash",
    title="Run a command",
    effect="run",
    subject="command",
    output="head-tail",
    destructive=True,
    open_world=True,
    hides_minima=True,
    profiles=("agent", "codex"),
    names_sandbox=True,
    rehearses="dry_run",
    needs_person="outside_sandbox",
    seldom=("outside_sandbox", "max_output", "stdin", "tty"),
    joins=_joins,
    refuses=_refuses,
)
async def bash(
    command: Annotated[str, AfterValidator(_not_blank)],
    description: Annotated[str | None, Field(description="What it does, in a few words.")] = None,
    timeout: Annotated[int, Field(description="Milliseconds; none in the background.", ge=1, le=600_000)] = 120_000,
    run_in_background: Annotated[
        bool, Field(description="Return only an id, at once; see BashOutput and KillBash.")
    ] = False,
    dry_run: Annotated[bool, Field(description="Show what it would change; keep nothing.")] = False,
    outside_sandbox: Annotated[
        str | None, Field(description="Why this must run without the sandbox; the user is asked.", min_length=1)
    ] = None,
    max_output: Annotated[
        int | None, Field(description="Characters to show, 1,000 to 60,000; the rest is stored.", ge=1000, le=60_000)
    ] = None,
    stdin: Annotated[bool, Field(description="In the background: keep stdin open for BashInput.")] = False,
    tty: Annotated[bool, Field(description="Run on a terminal; in the background BashInput types into it.")] = False,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    cache: Annotated[OutputCache, Depends(CACHE)],
    shells: Annotated[Shells, Depends(SHELL)],
    watch: Annotated[Watch, Depends(WATCH)],
    answer_by: Annotated[float | None, Depends(ANSWER_BY)],
    joined: Annotated[Background | None, Depends(JOINED)],
) -> TextResult | str:
    """Runs a command in bash. The working directory persists between calls; variables don't. No stdin or terminal by
    default. Returns stdout and stderr as printed, the exit code unless 0, and the files that changed."""
    if not fs.scope.write and not shells.sandbox.confines:
        raise SandboxViolation(
            "this scope is read-only, and no sandbox works here that could keep a command from writing"
        )
    outside = outside_sandbox is not None
    _check_together(background=run_in_background, dry_run=dry_run, outside=outside, stdin=stdin, tty=tty)
    if dry_run:
        return await _rehearsed(command, timeout, fs, cache, shells)
    source: Stdin = "tty" if tty else "pipe" if stdin else "nothing"
    if run_in_background:
        started: list[Background] = []
        await to_thread.run_sync(prepare, watch, abandon_on_cancel=True)
        await to_thread.run_sync(follow, watch, lambda: not started or shells.is_running(started[0]))
        shell = await shells.start(command, stdin=source)
        started.append(shell)
        return f'[{shell.name} started; BashOutput(bash_id="{shell.name}") shows what it prints]'
    until = inf if answer_by is None or outside else answer_by
    known = None if answer_by is None or outside or tty else joined or shells.handed_over(command)
    if known is not None:
        return await _attached(known, until - monotonic(), cache, shells)
    how = Running(timeout, until, outside=outside, room=max_output, stdin=source)
    return await _run(command, how, fs, reads, cache, shells, watch)


@dataclass(frozen=True, slots=True)
class Running:
    """How a command is run: its time limit in milliseconds, when its call must answer, and other arguments."""

    timeout: int
    until: float
    outside: bool
    room: int | None
    stdin: Stdin


async def _attached(shell: Background, seconds: float, cache: OutputCache, shells: Shells) -> TextResult:
    """The same command again, soon after an answer said that it goes on: it is waited for, and not run again."""
    await shells.wait_for_end(shell, seconds)
    streamed = await stored(shell.news(), cache, shells)
    notes = [f"[this is {shell.name}, which the same command started before; it was not run again]", *state_of(shell)]
    code = None if shell.ended is None else shell.ended.shell_code
    return TextResult(with_notes(printed(streamed.text), notes), streamed.ref, code)


async def _run(
    command: str, how: Running, fs: ScopedFs, reads: ReadLog, cache: OutputCache, shells: Shells, watch: Watch
) -> TextResult:
    await to_thread.run_sync(prepare, watch, abandon_on_cancel=True)
    before = await to_thread.run_sync(look, watch, reads)
    directory = shells.directory
    sink = cache.sink(room=how.room or shells.max_output)
    seconds = how.until - monotonic()  # the record may have waited
    try:
        ended = await shells.run_or_stay(
            command,
            sink.feed,
            timeout_ms=how.timeout,
            seconds=seconds,
            outside=how.outside,
            git_alone=runs_git_alone(command) and how.stdin == "nothing",
            stdin=how.stdin,
            take_back=sink.take_back,
        )
        streamed = await sink.finish()
    finally:
        sink.abandon()
    goes_on = isinstance(ended, Background)
    changes = await to_thread.run_sync(partial(changes_since, before, watch, reads, goes_on=goes_on))
    text = printed(streamed.text)
    if isinstance(ended, Background):
        await to_thread.run_sync(follow, watch, lambda: shells.is_running(ended))
        notes = [_goes_on(ended), *changed_files(changes, fs)]
        return TextResult(with_notes(text, notes), streamed.ref)
    replaced = {item.path for item in ended.quarantined if item.was_replaced}
    changes = replace(changes, changed=tuple(path for path in changes.changed if path not in replaced))
    notes = [
        *left_out(streamed.text),
        *ending(ended, how.timeout),
        *_directory_note(ended, directory, fs),
        *changed_files(changes, fs),
    ]
    notes += [*taken_out(ended.quarantined, fs), *moved_roots(ended.moved), *_refused(ended, fs, shells)]
    notes += [*not_found(text, ended, fs), *unreached_names(text, ended, shells.network)]
    return TextResult(with_notes(text, notes), streamed.ref, ended.shell_code)


async def _rehearsed(command: str, timeout: int, fs: ScopedFs, cache: OutputCache, shells: Shells) -> TextResult:
    sink = cache.sink()
    try:
        ended, found = await shells.rehearse(
            command, sink.feed, fs=fs, timeout_ms=timeout, git_alone=runs_git_alone(command)
        )
        await sink.feed("".join(f"\n{row}" for row in found.rows).encode(errors="replace"))
        streamed = await sink.finish()
    finally:
        sink.abandon()
    notes = [*ending(ended, timeout), *would_change(found, fs)]
    return TextResult(with_notes(printed(streamed.text).removeprefix("\n"), notes), streamed.ref, ended.shell_code)


def _goes_on(shell: Background) -> str:
    return (
        f"[still running, so it goes on in the background as {shell.name}, until its timeout; "
        f'BashOutput(bash_id="{shell.name}") shows what it prints from now on and how it ends. '
        "The same command within a minute waits for it and does not run again]"
    )


def _directory_note(ended: Ended, before: str, fs: ScopedFs) -> Iterator[str]:
    if ended.directory and ended.directory != before:
        yield f"[working directory: {fs.show_real(ended.directory)}]"


def _refused(ended: Ended, fs: ScopedFs, shells: Shells) -> Iterator[str]:
    yield from stuck_files(ended.stuck, ended.refused, fs, may_leave=shells.may_leave)
    others = [one for one in ended.refused if not one.by_git]
    yield from refused_writes(others, fs, shells.sandbox.description, may_leave=shells.may_leave)
