"""tool_output_cache_grep: the matching lines of an output that was too large for its message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from gripfast.builtin.keys import CACHE
from gripfast.call.cache import CAP, OutputCache, OutputMatches
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.text.terminal import plain


@tool(
    later=True,
    name="tool_output_cache_grep",
    title="Search a cached output",
    effect="read",
    output="bounded",
    idempotent=True,
    session_only=True,
    hides_minima=True,
    profiles=("agent", "read-only", "codex", "lisp"),
    reads_outputs='search with tool_output_cache_grep(ref_id="{ref}", pattern=...)',
)
async def tool_output_cache_grep(
    ref_id: Annotated[str, Field(description="The ref in that output.")],
    pattern: Annotated[str, Field(description="Text to find.")],
    regex: Annotated[bool, Field(description="Pattern is a regex, as in Grep.")] = False,
    before: Annotated[int, Field(description="Context lines before.", ge=0, le=100)] = 0,
    after: Annotated[int, Field(description="Context lines after.", ge=0, le=100)] = 0,
    max_matches: Annotated[int, Field(description="Matches to return.", ge=1, le=1000)] = 50,
    *,
    cache: Annotated[OutputCache, Depends(CACHE)],
) -> str:
    """Searches a tool's output that was cut or trimmed."""
    found = await cache.grep(ref_id, pattern, regex=regex, before=before, after=after, max_matches=max_matches)
    rows = list(_within_cap(_rows(found, "--\n" if before or after else "")))
    shown = sum(is_match for is_match, _ in rows)
    return "\n".join([*(text for _, text in rows), *_footer(found, shown), *_long_line(found, ref_id)])


def _rows(found: OutputMatches, gap: str) -> Iterator[tuple[bool, str]]:
    """Each row as text, with `gap` before it where lines are left out."""
    expected = 0
    for hit in found.hits:
        before = gap if expected and hit.number > expected else ""
        expected = hit.number + 1
        yield hit.is_match, f"{before}{hit.number}{':' if hit.is_match else '-'}{plain(hit.text)}"


def _within_cap(rows: Iterator[tuple[bool, str]]) -> Iterator[tuple[bool, str]]:
    room = CAP - 512
    for is_match, text in rows:
        room -= len(text.encode()) + 1
        if room < 0:
            return
        yield is_match, text


def _long_line(found: OutputMatches, ref_id: str) -> list[str]:
    """The call that reads on in the first line that is cut."""
    for hit in found.hits:
        if hit.rest_at is not None:
            place = f"offset={hit.number - 1}, line_offset={hit.rest_at}"
            return [f'[the rest of line {hit.number}: tool_output_cache(ref_id="{ref_id}", {place})]']
    return []


def _footer(found: OutputMatches, shown: int) -> list[str]:
    """The total and what is not shown; nothing if every match is shown."""
    if found.timed_out:
        return [f"[partial: the search took too long; {shown} of at least {found.matches} matching lines]"]
    if found.matches == 0:
        return ["No line matches."]
    if shown == found.matches:
        return []
    return [f"[{shown} of {found.matches} matching lines; narrow the pattern, or read from a line number]"]
