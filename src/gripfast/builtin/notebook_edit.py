"""NotebookEdit: replaces, inserts or deletes one cell of a Jupyter notebook, and shows the diff."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated

from gripfast.builtin.edit import Plan, with_diff
from gripfast.builtin.keys import CACHE, FS, READS
from gripfast.builtin.notebook_cells import CellEdit, CellType, EditMode, edited_span
from gripfast.builtin.write import display_path
from gripfast.call.cache import OutputCache
from gripfast.errors import InvalidArgument
from gripfast.framework.context import ToolContext
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.encodings import text_of
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.messages import TextResult
from gripfast.text.match import Splice


@tool(
    later=True,
    name="NotebookEdit",
    title="Edit a notebook",
    effect="write",
    subject="notebook_path",
    destructive=True,
    hides_minima=True,
)
def notebook_edit(
    notebook_path: Annotated[WorkPath, Field(description="A .ipynb file that was read.")],
    cell: Annotated[int, Field(description="Its number in Read; insert: after this one, 0: at the top.", ge=0)],
    new_source: Annotated[str | None, Field(description="Default: as before; empty in a new cell.")] = None,
    cell_type: Annotated[CellType | None, Field(description="Default: as before; code for a new cell.")] = None,
    edit_mode: Annotated[EditMode, Field(description="What to do with the cell.")] = "replace",
    *,
    fs: Annotated[ScopedFs, Depends(FS)],
    reads: Annotated[ReadLog, Depends(READS)],
    cache: Annotated[OutputCache, Depends(CACHE)],
    ctx: ToolContext,
) -> str | Awaitable[TextResult]:
    """Replaces, inserts or deletes one cell of a Jupyter notebook, and shows the diff. Outputs stay
    until it is run again."""
    shown = fs.show(notebook_path)
    if edit_mode == "delete" and (new_source or cell_type):
        raise InvalidArgument("delete takes neither new_source nor cell_type; leave them out")
    if not shown.endswith(".ipynb"):
        raise InvalidArgument(f"`{shown}` is not a notebook (.ipynb); use Edit")
    plan: Plan | None = None

    def compute(before: bytes | None) -> bytes:
        nonlocal plan
        if before is None:
            raise fs.not_found(notebook_path)
        text = text_of(before, fs.encoding, shown)
        body = text.body.decode()
        start, end, new = edited_span(body, CellEdit(edit_mode, cell, new_source, cell_type), shown)
        at = len(body[:start].encode())
        splice = Splice(at, at + len(body[start:end].encode()), new.encode())
        plan = Plan(text, [splice], "exact")
        return plan.bytes_of(shown)

    change = fs.change(notebook_path, compute, reads=reads, last_word=ctx.check_cancelled)
    assert plan is not None, "change calls compute"
    done = {
        "replace": f"replaced cell {cell}",
        "insert": f"inserted cell {cell + 1}",
        "delete": f"deleted cell {cell}",
    }
    summary = f"{done[edit_mode]} of {display_path(fs, notebook_path, change.real)}"
    return with_diff(summary, plan, shown, cache)
