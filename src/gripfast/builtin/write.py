"""Write: creates a file, or replaces one that was read."""

from __future__ import annotations

from typing import Annotated, Any

from gripfast.builtin.keys import FS, READS
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.diff import counted, whole_diff
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.text.plural import plural


def _preview(call: Any, *, fs: Annotated[ScopedFs, Depends(FS)]) -> str:
    change = fs.write(call.file_path, call.content, commit=False)
    return whole_diff(change.before, change.after, fs.show(call.file_path))


@tool(
    later=True,
    name="Write",
    title="Write a file",
    effect="write",
    subject="file_path",
    destructive=True,
    idempotent=True,
    profiles=("agent", "lisp"),
    preview=_preview,
)
def write(
    file_path: Annotated[WorkPath, Field(description="Absolute or workspace-relative.")],
    content: Annotated[str, Field(description="The whole new content.")],
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    ctx: ToolContext,
) -> str:
    """Creates a file and its directories, or replaces a file that was read; its encoding, line endings and final
    newline stay."""
    change = fs.write(file_path, content, reads=reads, last_word=ctx.check_cancelled)
    shown = display_path(fs, file_path, change.real)
    shown += " (/tmp is private to this session: the user can't see it)" if fs.is_private(change.real) else ""
    size = len(change.after)
    if change.before is None:
        note = (
            "" if change.after == content.encode() else f", in {fs.encoding}, the encoding that the user configured"
        )
        return f"created {shown}: {plural(size, 'byte')}, {plural(counted(b'', change.after)[0], 'line')}{note}"
    if change.before == change.after:
        return f"{shown} already has this content ({size} bytes); nothing was written"
    added, removed = counted(change.before, change.after)
    note = "" if change.after == content.encode() else "; its encoding, line endings and final newline were kept"
    return f"overwrote {shown}: {plural(size, 'byte')}, {plural(added, 'line')} added, {removed} removed{note}"


def display_path(fs: ScopedFs, path: WorkPath, real: str) -> str:
    """A path for an answer, with the real path if that is a different one."""
    shown, place = fs.show(path), fs.show_real(real)
    return f"`{shown}`" if shown == place else f"`{shown}` (in fact `{place}`)"
