"""tool_output_cache: a numbered window of an output that was too large for its message."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.builtin.keys import CACHE
from holdfast.call.cache import OutputCache, Window
from holdfast.host.terminal import plain
from holdfast.messages import Part, TextPart
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends


@tool(name="tool_output_cache", title="Read a cached output", effect="read", output="bounded", idempotent=True)
async def tool_output_cache(
    ref_id: Annotated[str, Field(description="The ref that the cut or trimmed output names.")],
    offset: Annotated[int, Field(description="Lines to skip; negative counts from the end.")] = 0,
    limit: Annotated[int, Field(description="Lines to return.", ge=1)] = 2000,
    *,
    cache: Annotated[OutputCache, Depends(CACHE)],
) -> str | list[Part]:
    """Reads lines of a tool's output that was cut or trimmed. Lines are numbered from 1, as in Read."""
    window = await cache.window(ref_id, offset, limit)
    text = "\n".join([*_numbered(window), *_last_word(ref_id, window)])
    return [TextPart(text), *window.parts] if window.parts else text


def _numbered(window: Window) -> list[str]:
    """Stored bytes are as the tool gave them; escapes and controls are taken out of what is shown."""
    return [
        f"{line.number:6d}\t{plain(line.text)}" + (f" [... {line.cut} more bytes]" if line.cut else "")
        for line in window.lines
    ]


def _last_word(ref_id: str, window: Window) -> list[str]:
    """What is missing after the window, with the call that shows it."""
    last = window.first + len(window.lines)
    if not window.lines:
        return [f"[nothing after line {window.first}: the output has {window.total} lines]"]
    if last == window.total:
        return []
    lines = f"lines {window.first + 1}-{last} of {window.total}"
    return [f'[{lines}; read on with tool_output_cache(ref_id="{ref_id}", offset={last})]']
