"""Glob: files by the shape of their path, newest first."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.builtin.keys import FS
from holdfast.host.fs import HERE, ScopedFs
from holdfast.host.paths import WorkPath, escaped
from holdfast.host.search import GlobResult, stoppable
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends

MOST = 1000


@tool(name="Glob", title="Find files", effect="read", subject="path", idempotent=True)
async def glob(
    pattern: Annotated[str, Field(description="Such as `**/*.py`, `src/**/*.{ts,tsx}`, `docs/[a-c]*.md`.")],
    path: Annotated[WorkPath | None, Field(description="Directory the pattern starts in; the workspace.")] = None,
    include_ignored: Annotated[bool, Field(description="Also find what .gitignore leaves out.")] = False,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
) -> str:
    """Finds files by a glob pattern, newest first, 1,000 at most. `**` goes into subdirectories, `*` does not.
    Dot files are found; what .gitignore names and .git are left out."""
    base = path or HERE
    found = await stoppable(
        lambda stop: fs.glob(pattern, base, include_ignored=include_ignored, limit=MOST, stop=stop)
    )
    if not found.paths:
        return _nothing(found, pattern, fs.show(base), include_ignored)
    return "\n".join([*map(escaped, found.paths), *_last_word(found)])


def _nothing(found: GlobResult, pattern: str, base: str, include_ignored: bool) -> str:
    hints = [] if "**" in pattern or "/" in pattern else [f"`**/{escaped(pattern)}` looks in subdirectories, too"]
    hints += [] if include_ignored else ["include_ignored=true looks at what .gitignore leaves out"]
    words = [f"No file matches `{escaped(pattern)}` in `{base}`", *hints, *_troubles(found)]
    return "; ".join(words)


def _last_word(found: GlobResult) -> list[str]:
    """What the list does not show."""
    words: list[str] = []
    if found.total > len(found.paths):
        words.append(f"truncated: the newest {len(found.paths)} of {found.total} files; narrow the pattern")
    words += _troubles(found)
    return [f"[{'; '.join(words)}]"] if words else []


def _troubles(found: GlobResult) -> list[str]:
    words = [f"{found.unreadable} places could not be read"] if found.unreadable else []
    return [*words, "partial: time ran out, there may be more"] if found.partial else words
