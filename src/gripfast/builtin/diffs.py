"""Answers with a diff below them: whole if it is short, else its beginning, and all of it in the output cache."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from gripfast.call.cache import OutputCache
from gripfast.messages import TextResult

DIFF_LINES = 120
DIFF_WIDTH = 500


def diff_below(summary: str, rows: Sequence[str], cache: OutputCache) -> str | Awaitable[TextResult]:
    """A summary and its diff."""
    if len(rows) <= DIFF_LINES and all(len(row) <= DIFF_WIDTH for row in rows):
        return "\n".join([summary, *rows])
    return _cut(summary, rows, cache)


async def _cut(summary: str, rows: Sequence[str], cache: OutputCache) -> TextResult:
    """The beginning of a long diff; all of it is stored in the output cache."""
    sink = cache.sink(room=0)
    await sink.feed("\n".join([*rows, ""]).encode("utf-8", "replace"))
    ref = (await sink.finish()).ref
    whole = f'all of it: tool_output_cache(ref_id="{ref.id}")' if ref else "the rest was not stored"
    shown = [row if len(row) <= DIFF_WIDTH else f"{row[:DIFF_WIDTH]} [...]" for row in rows[: DIFF_LINES - 1]]
    note = f"[diff cut: {len(shown)} of {len(rows)} lines shown; {whole}]"
    return TextResult("\n".join([summary, *shown, note]), ref)
