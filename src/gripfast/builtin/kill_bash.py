"""KillBash: ends a background shell."""

from __future__ import annotations

from typing import Annotated

from gripfast.builtin.endings import ending, late_notes
from gripfast.builtin.keys import FS, SHELL
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.fs import ScopedFs
from gripfast.host.shell.shells import Shells


@tool(
    later=True,
    name="KillBash",
    title="End a background shell",
    effect="run",
    output="bounded",
    destructive=True,
    session_only=True,
    profiles=("agent", "codex"),
)
async def kill_bash(
    bash_id: Annotated[str, Field(description="The id from Bash.")],
    *,
    shells: Annotated[Shells, Depends(SHELL)],
    fs: Annotated[ScopedFs, Depends(FS)],
) -> str:
    """Ends a background shell and everything it started."""
    ended_before = shells.look(bash_id).ended is not None
    shell = await shells.kill(bash_id)
    notes = [*await late_notes(shell, shells, fs)]
    how = list(ending(shell.ended)) if shell.ended else []
    if ended_before:
        how = how or ["[exit code 0]"]
        return "\n".join([f"[{shell.name} had already ended; what it left running is ended now]", *how, *notes])
    return "\n".join([f"[{shell.name}]", *how, *notes])
