"""tool_output_cache: numbered lines of an output that was too large for its message."""

from __future__ import annotations

from typing import Annotated

from gripfast.builtin.keys import CACHE
from gripfast.builtin.numbered import cut_note, numbered_piece
from gripfast.call.cache import OutputCache, OutputWindow
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.messages import Part, TextPart
from gripfast.text.terminal import plain

LIMIT = 2000


@tool(
    later=True,
    name="tool_output_cache",
    title="Read a cached output",
    effect="read",
    output="bounded",
    idempotent=True,
    session_only=True,
    hides_minima=True,
    profiles=("agent", "read-only", "codex", "lisp"),
    reads_outputs='continue with tool_output_cache(ref_id="{ref}", {place})',
)
async def tool_output_cache(
    ref_id: Annotated[str, Field(description="The ref in that output.")],
    offset: Annotated[int, Field(description="Lines to skip; negative: from the end.")] = 0,
    limit: Annotated[int, Field(description="Lines to return, 64 KiB at most.", ge=1)] = LIMIT,
    line_offset: Annotated[int, Field(description="Bytes to skip in the first line.", ge=0)] = 0,
    *,
    cache: Annotated[OutputCache, Depends(CACHE)],
) -> str | list[Part]:
    """Reads a tool's output that was cut or trimmed, with numbered lines."""
    window = await cache.window(ref_id, offset, limit, line_offset=line_offset)
    text = "\n".join([*_numbered(window), *_footer(ref_id, window, limit)])
    return [TextPart(text), *window.parts] if window.parts else text


def _numbered(window: OutputWindow) -> list[str]:
    """Stored bytes are as the tool returned them; escape sequences and control characters are not shown."""
    return [numbered_piece(line.number, plain(line.text), line.start, line.cut) for line in window.lines]


def _footer(ref_id: str, window: OutputWindow, limit: int) -> list[str]:
    """What is not shown, with the call that shows it."""
    last = window.first + len(window.lines)
    cuts = [(line.number, line.end) for line in window.lines if line.cut]
    notes = cut_note(cuts, lambda at: f'tool_output_cache(ref_id="{ref_id}", {at})')
    if not window.lines:
        return [f"[the output has {window.total} lines; offset {window.first} is past the end]"]
    if last == window.total:
        return notes
    lines = f"lines {window.first + 1}-{last} of {window.total}"
    size = f", limit={limit}" if limit != LIMIT else ""
    return [*notes, f'[{lines}; continue with tool_output_cache(ref_id="{ref_id}", offset={last}{size})]']
