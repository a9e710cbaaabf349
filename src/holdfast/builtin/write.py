"""Write: creates a file, or replaces one that was read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.builtin.keys import FS, READS
from holdfast.host.diff import counted
from holdfast.host.fs import ScopedFs
from holdfast.host.guard import ReadLog
from holdfast.host.paths import WorkPath
from holdfast.tool.context import ToolContext
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends


@tool(name="Write", title="Write a file", effect="write", subject="file_path", destructive=True, idempotent=True)
def write(
    file_path: Annotated[WorkPath, Field(description="Absolute, or relative to the workspace.")],
    content: Annotated[str, Field(description="The whole new content.")],
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    ctx: ToolContext,
) -> str:
    """Creates a file, with its directories, or replaces one that was read in this session. A replaced file keeps
    its encoding, line ends and final newline."""
    change = fs.write(file_path, content, reads=reads, last_word=ctx.check_cancelled)
    shown = named(fs, file_path, change.real)
    size = len(change.after)
    if change.before is None:
        return f"created {shown}: {size} bytes, {counted(b'', change.after)[0]} lines"
    if change.before == change.after:
        return f"{shown} has this content already ({size} bytes); nothing was written"
    added, removed = counted(change.before, change.after)
    kept = "" if change.after == content.encode() else "; its encoding, line ends and final newline were kept"
    return f"overwrote {shown}: {size} bytes, {added} lines added, {removed} removed{kept}"


def named(fs: ScopedFs, path: WorkPath, real: str) -> str:
    """A path for an answer; with where it really leads, when that is somewhere else."""
    shown, place = fs.show(path), fs.show_real(real)
    return f"`{shown}`" if shown == place else f"`{shown}` (really `{place}`)"
