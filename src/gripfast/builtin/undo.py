"""Undo: takes back what a call changed."""

from __future__ import annotations

from typing import Annotated

from anyio import to_thread

from gripfast.builtin.keys import RECORD
from gripfast.errors import InvalidArgument
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.record.record import Record
from gripfast.host.record.undo import UndoResult
from gripfast.host.record.undo import undo as take_back


@tool(name="Undo", title="Undo a call", effect="write", output="bounded", destructive=True, session_only=True)
async def undo(
    call: Annotated[int | None, Field(description="Its number; default: the last.")] = None,
    dry_run: bool = False,
    *,
    record: Annotated[Record | None, Depends(RECORD)],
) -> str:
    """Takes back the files a call changed, unless changed since."""
    if record is None:
        raise InvalidArgument("this session keeps no record, so nothing can be undone")
    numbers = None if call is None else [call]
    return "\n".join(_rows(await to_thread.run_sync(lambda: take_back(record, numbers, dry_run=dry_run))))


def _rows(result: UndoResult) -> list[str]:
    names = ", ".join(f"{done.path} ({done.what})" for done in result.restored) or "nothing"
    calls = ", ".join(map(str, result.calls))
    done = "would take back" if result.dry_run else "took back"
    return [
        f"{done} call {calls}: {names}",
        *(f"stays: {kept.path}: {kept.reason}" for kept in result.kept),
        *(f"refused: {refused.path}: {refused.reason}" for refused in result.refused),
    ]
