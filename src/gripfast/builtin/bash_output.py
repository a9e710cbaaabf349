"""BashOutput: what a background shell has printed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gripfast.builtin.endings import ending, taken_out, with_notes
from gripfast.builtin.keys import CACHE, FS, SHELL
from gripfast.call.cache import OutputCache
from gripfast.errors import InvalidRegex, TimedOut
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.host.files.fs import ScopedFs
from gripfast.host.shell.background import SPOOL_CAP, Background
from gripfast.host.shell.shells import Shells
from gripfast.messages import TextResult
from gripfast.text.terminal import plain

if TYPE_CHECKING:
    import regex

_MATCH_SECONDS = 5.0


@tool(
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
    offset: Annotated[int | None, Field(description="Lines to skip; default: those already shown.")] = None,
    filter: Annotated[str | None, Field(description="Show only lines that match this regex.")] = None,
    wait_ms: Annotated[int, Field(description="How long to wait for new output or the end.", ge=0, le=600_000)] = 0,
    *,
    shells: Annotated[Shells, Depends(SHELL)],
    fs: Annotated[ScopedFs, Depends(FS)],
    cache: Annotated[OutputCache, Depends(CACHE)],
) -> TextResult:
    """Shows what a background shell printed since the last call, and whether it runs or its exit code."""
    pattern = _pattern(filter)
    shell = shells.look(bash_id)
    await shells.news(shell, wait_ms)
    pieces = shell.news(offset)
    sink = cache.sink(room=shells.max_output)
    try:
        for piece in pieces if pattern is None else _matching(pieces, pattern):
            await sink.feed(piece)
        streamed = await sink.finish()
    finally:
        sink.abandon()
    notes = [*state_of(shell), *taken_out(await shells.late_names(shell), fs)]
    return TextResult(with_notes(plain(streamed.text), notes), streamed.ref)


def _pattern(text: str | None) -> regex.Pattern[str] | None:
    if text is None:
        return None
    import regex  # noqa: PLC0415 - slow to load, and filters are rare

    try:
        return regex.compile(text)
    except regex.error as fault:
        raise InvalidRegex(f"`filter` {text!r}: {fault}") from None


def _matching(pieces: Iterator[bytes], pattern: regex.Pattern[str]) -> Iterator[bytes]:
    """The matching lines, piece by piece."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield b"".join(line + b"\n" for line in lines if _matches(line, pattern))
    if rest and _matches(rest, pattern):
        yield rest


def _matches(line: bytes, pattern: regex.Pattern[str]) -> bool:
    try:
        return pattern.search(plain(line.decode(errors="replace")), timeout=_MATCH_SECONDS) is not None
    except TimeoutError:
        raise TimedOut(f"`filter` {pattern.pattern!r} takes too long; use a simpler pattern") from None


def state_of(shell: Background) -> Iterator[str]:
    """Notes on a background shell: whether it runs, or how it ended, which is told then."""
    if shell.full:
        yield f"[only the first {SPOOL_CAP // 1024**2} MiB were stored; the rest was dropped]"
    if shell.ended is None:
        yield f"[{shell.name} is running; wait_ms waits for more]"
        return
    shell.told = True
    yield f"[{shell.name} has ended]" if shell.ended.exit_code != 0 else f"[{shell.name} has ended with exit code 0]"
    if shell.ended_by_user:
        yield "[the user ended it]"
    yield from ending(shell.ended)
