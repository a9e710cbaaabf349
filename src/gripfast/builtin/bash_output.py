"""BashOutput: what a background shell has printed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from gripfast.builtin.endings import ending, late_notes, printed, with_notes
from gripfast.builtin.keys import CACHE, FS, OFFERED, SHELL
from gripfast.call.cache import OutputCache, Streamed
from gripfast.clock import monotonic
from gripfast.errors import InvalidRegex, TimedOut
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.fs import ScopedFs
from gripfast.host.shell.background import SPOOL_CAP, Background
from gripfast.host.shell.shells import Shells
from gripfast.messages import TextResult
from gripfast.text.plural import plural
from gripfast.text.terminal import plain

if TYPE_CHECKING:
    import regex

_MATCH_SECONDS = 5.0


@tool(
    later=True,
    name="BashOutput",
    title="Read a background shell",
    effect="read",
    output="head-tail",
    session_only=True,
    profiles=("agent", "codex"),
    seldom=("wait_ms",),
)
async def bash_output(
    bash_id: Annotated[str, Field(description="The id from Bash.")],
    offset: Annotated[
        int | None, Field(description="Lines to skip; negative: from the end; default: those of earlier calls.")
    ] = None,
    filter: Annotated[str | None, Field(description="Show only lines that match this regex.")] = None,
    wait_ms: Annotated[
        int, Field(description="How long to wait for new output (with filter: a match) or the end.", ge=0, le=600_000)
    ] = 0,
    *,
    shells: Annotated[Shells, Depends(SHELL)],
    fs: Annotated[ScopedFs, Depends(FS)],
    cache: Annotated[OutputCache, Depends(CACHE)],
    offered: Annotated[frozenset[str], Depends(OFFERED)],
) -> TextResult:
    """Shows what a background shell printed since the last call, and whether it runs or its exit code."""
    pattern = _pattern(filter)
    shell = shells.look(bash_id)
    if pattern is None:
        await shells.news(shell, wait_ms)
    else:
        await _match(shell, shell.start_of(offset), pattern, wait_ms, shells)
    looked = _Looked(shell, offset, pattern)
    streamed = await stored(looked.pieces(), cache, shells)
    more = "; wait_ms waits for more" if "BashOutput.wait_ms" in offered else ""
    notes = [*state_of(shell, more), *looked.notes(), *await late_notes(shell, shells, fs)]
    return TextResult(with_notes(printed(streamed.text), notes), streamed.ref)


async def stored(pieces: Iterable[bytes], cache: OutputCache, shells: Shells) -> Streamed:
    """What a background shell printed, cut to what an answer may have; the rest is in the cache."""
    sink = cache.sink(room=shells.max_output)
    try:
        for piece in pieces:
            await sink.feed(piece)
        return await sink.finish()
    finally:
        sink.abandon()


async def _match(shell: Background, start: int, pattern: regex.Pattern[str], wait_ms: int, shells: Shells) -> None:
    """Waits until a line after `start` matches, or the shell has ended. An unfinished line is looked at again when
    more of it has come."""
    size, until = start, monotonic() + wait_ms / 1000
    while (left := until - monotonic()) > 0:
        await shells.news(shell, math.ceil(left * 1000), size)
        size = shell.size
        for line in _lines(shell.pieces(start, size)):
            if _matches(line, pattern):
                return
            start += len(line) if line.endswith(b"\n") else 0
        if not shells.is_running(shell):
            return


def _pattern(text: str | None) -> regex.Pattern[str] | None:
    if text is None:
        return None
    import regex  # noqa: PLC0415 - slow to load, and filters are rare

    try:
        return regex.compile(text)
    except regex.error as fault:
        raise InvalidRegex(f"`filter` {text!r}: {fault}") from None


class _Looked:
    """What a look at a shell shows, and the notes on what it does not."""

    def __init__(self, shell: Background, offset: int | None, pattern: regex.Pattern[str] | None) -> None:
        self._shell, self._offset, self._pattern = shell, offset, pattern
        self._start, self._count, self._matched = shell.start_of(offset), 0, 0

    def pieces(self) -> Iterator[bytes]:
        news = self._shell.news(self._offset)
        return news if self._pattern is None else self._matching(news, self._pattern)

    def _matching(self, news: Iterator[bytes], pattern: regex.Pattern[str]) -> Iterator[bytes]:
        for line in _lines(news):
            self._count += 1
            if _matches(line, pattern):
                self._matched += 1
                yield line

    def notes(self) -> Iterator[str]:
        if self._offset and self._offset > (total := self._shell.line_count):
            yield f"[it has printed {plural(total, 'line')}; offset {self._offset} is past the end]"
        if self._matched < self._count:
            call = f'BashOutput(bash_id="{self._shell.name}", offset={self._shell.lines_before(self._start)})'
            yield f"[{self._matched or 'none'} of {plural(self._count, 'line')} shown; without filter: {call}]"


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, each with its newline, and what has come of the last one."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _matches(line: bytes, pattern: regex.Pattern[str]) -> bool:
    text = plain(line.removesuffix(b"\n").decode(errors="replace"))
    try:
        return pattern.search(text, timeout=_MATCH_SECONDS) is not None
    except TimeoutError:
        raise TimedOut(f"`filter` {pattern.pattern!r} takes too long; use a simpler pattern") from None


def state_of(shell: Background, more: str = "") -> Iterator[str]:
    """Notes on a background shell: whether it runs (with how to get `more`), or how it ended, which then counts as
    reported."""
    if shell.full:
        yield f"[only the first {SPOOL_CAP // 1024**2} MiB were stored; the rest was dropped]"
    if shell.ended is None:
        yield f"[{shell.name} is running{more}]"
        return
    shell.end_reported = True
    yield f"[{shell.name} has ended]" if shell.ended.exit_code != 0 else f"[{shell.name} has ended with exit code 0]"
    if shell.ended_by_user:
        yield "[the user ended it]"
    yield from ending(shell.ended)
