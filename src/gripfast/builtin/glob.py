"""Glob: finds files by a pattern on their path, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from gripfast.builtin.keys import FS
from gripfast.builtin.other_roots import other_roots
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.fs import HERE, ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.search.search_types import GlobResult
from gripfast.host.search.stop import stoppable
from gripfast.text.escape import escaped

MOST = 1000


@tool(
    later=True,
    name="Glob",
    title="Find files",
    effect="read",
    subject="path",
    idempotent=True,
    profiles=("agent", "read-only", "codex", "lisp"),
)
async def glob(
    pattern: Annotated[str, Field(description="Such as `src/**/*.{ts,tsx}`.")],
    path: Annotated[WorkPath | None, Field(description="Directory; default: workspace.")] = None,
    include_ignored: Annotated[bool, Field(description="Find ignored files too.")] = False,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
) -> str:
    """Finds files by glob, newest first, at most 1,000. Includes dot files; skips .git and what
    .gitignore excludes unless named."""
    base = path or HERE
    pattern = f"{pattern}**" if pattern.endswith("/") else pattern
    found = await stoppable(
        lambda stop: fs.glob(pattern, base, include_ignored=include_ignored, limit=MOST, stop=stop)
    )
    if not found.paths:
        return "; ".join([_no_match(found, pattern, fs.show(base), include_ignored), *other_roots(fs, base)])
    return "\n".join([*map(escaped, found.paths), *_footer([*_left_out(found), *other_roots(fs, base)])])


def _no_match(found: GlobResult, pattern: str, base: str, include_ignored: bool) -> str:
    hints = [] if "**" in pattern or "/" in pattern else [f"`**/{escaped(pattern)}` looks in subdirectories too"]
    hints += [] if include_ignored else ["include_ignored=true also finds what .gitignore excludes"]
    words = [f"No file matches `{escaped(pattern)}` in `{base}`", *hints, *_warnings(found)]
    return "; ".join(words)


def _footer(notes: Sequence[str]) -> list[str]:
    return [f"[{'; '.join(notes)}]"] if notes else []


def _left_out(found: GlobResult) -> list[str]:
    """What the list leaves out."""
    words: list[str] = []
    if found.total > len(found.paths):
        words.append(f"truncated: the newest {len(found.paths)} of {found.total} files; narrow the pattern")
    return [*words, *_warnings(found)]


def _warnings(found: GlobResult) -> list[str]:
    words = [f"{found.unreadable} paths could not be read"] if found.unreadable else []
    return [*words, "partial: timed out, there may be more"] if found.partial else words
