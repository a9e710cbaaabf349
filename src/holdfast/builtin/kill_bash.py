"""KillBash: ends a background shell."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.builtin.endings import ending
from holdfast.builtin.keys import SHELL
from holdfast.host.process import Shells
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends


@tool(name="KillBash", title="End a background shell", effect="run", output="bounded", destructive=True)
async def kill_bash(
    bash_id: Annotated[str, Field(description="The id that Bash gave.")],
    *,
    shells: Annotated[Shells, Depends(SHELL)],
) -> str:
    """Ends a background shell and everything it started: TERM, then KILL after 2 seconds."""
    ended_before = shells.look(bash_id).ended is not None
    shell = await shells.kill(bash_id)
    if ended_before:
        return f"[{shell.name} had already ended; what it left running was ended]"
    notes = list(ending(shell.ended)) if shell.ended else []
    return "\n".join([f"[{shell.name}]", *notes])
