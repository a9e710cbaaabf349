"""apply_patch: changes several files by one patch, all of them or none."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Any

from gripfast.builtin.diffs import diff_below
from gripfast.builtin.keys import CACHE, FS, READS
from gripfast.builtin.patching import PatchResult, PatchText, apply_patch_text
from gripfast.call.cache import OutputCache
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.messages import TextResult

_FORM = """*** Begin Patch
*** Update File: path
*** Move to: path (optional)
@@ def function():
 context
-old line
+new line
*** Add File: path (may replace one)
+line
*** Delete File: path
*** End Patch
Context must fit one place in the file; an @@ line above it narrows."""


def _preview(call: Any, *, fs: Annotated[ScopedFs, Depends(FS)]) -> str:
    """The diff of all files, for whoever approves the call."""
    result = apply_patch_text(fs, call.patch, reads=ReadLog(required=False), dry_run=True)
    return "\n".join([*map(str, result.files), *(row for file in result.files for row in file.rows)])


@tool(
    later=True,
    name="apply_patch",
    title="Apply a patch",
    effect="write",
    subject="patch",
    stands_for=("Write", "Edit"),
    destructive=True,
    profiles=("codex",),
    preview=_preview,
)
def apply_patch(
    patch: Annotated[PatchText, Field(description=_FORM)],
    dry_run: Annotated[bool, Field(description="Show the diff, write nothing.")] = False,
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    cache: Annotated[OutputCache, Depends(CACHE)],
    ctx: ToolContext,
) -> str | Awaitable[TextResult]:
    """Adds, updates, moves and deletes files by one patch: all of it or, if any part fails, nothing. Files that exist
    must have been read in this session."""
    result = apply_patch_text(fs, patch, reads=reads, dry_run=dry_run, last_word=ctx.check_cancelled)
    rows = [row for file in result.files for row in file.rows]
    return diff_below(_summary(result, dry_run), rows, cache)


def _summary(result: PatchResult, dry_run: bool) -> str:
    files = [str(file) for file in result.files] or ["no file changes"]
    notes = [f"[forgiven: {', '.join(result.tolerated)}]"] if result.tolerated else []
    return "\n".join([*(["dry run, nothing was written:"] if dry_run else []), *files, *notes])
