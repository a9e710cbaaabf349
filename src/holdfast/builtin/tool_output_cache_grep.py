"""tool_output_cache_grep: the matching lines of an output that was too large for its message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from holdfast.builtin.keys import CACHE
from holdfast.call.cache import CAP, Found, OutputCache
from holdfast.host.terminal import plain
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends


@tool(name="tool_output_cache_grep", title="Search a cached output", effect="read", output="bounded", idempotent=True)
async def tool_output_cache_grep(
    ref_id: Annotated[str, Field(description="The ref that the cut or trimmed output names.")],
    pattern: Annotated[str, Field(description="What to look for in each line.")],
    regex: Annotated[bool, Field(description="Whether the pattern is a regex, as in Grep; else plain text.")] = False,
    before: Annotated[int, Field(description="Lines of context before each match.", ge=0, le=100)] = 0,
    after: Annotated[int, Field(description="Lines of context after each match.", ge=0, le=100)] = 0,
    max_matches: Annotated[int, Field(description="Matching lines to return.", ge=1, le=1000)] = 50,
    *,
    cache: Annotated[OutputCache, Depends(CACHE)],
) -> str:
    """Searches a tool's output that was cut or trimmed. Gives `line:text` for matches, `line-text` for context."""
    found = await cache.grep(ref_id, pattern, regex=regex, before=before, after=after, max_matches=max_matches)
    rows = list(_within_cap(_rows(found, "--\n" if before or after else "")))
    shown = sum(is_match for is_match, _ in rows)
    return "\n".join([*(text for _, text in rows), *_last_word(found, shown)])


def _rows(found: Found, gap: str) -> Iterator[tuple[bool, str]]:
    """Each row as text, with the gap where lines are left out."""
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


def _last_word(found: Found, shown: int) -> list[str]:
    """The total, and what is missing; nothing where everything is there."""
    if found.timed_out:
        return [f"[partial: the search took too long; {shown} of at least {found.matches} matching lines]"]
    if found.matches == 0:
        return ["No line matches."]
    if shown == found.matches:
        return []
    return [f"[{shown} of {found.matches} matching lines; narrow the pattern or read on from a line number]"]
