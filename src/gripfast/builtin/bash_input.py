"""BashInput: types into a background shell."""

from __future__ import annotations

from typing import Annotated, Any

from gripfast.builtin.bash_output import state_of, stored
from gripfast.builtin.endings import late_notes, printed, with_notes
from gripfast.builtin.keys import CACHE, FS, SHELL
from gripfast.call.cache import OutputCache
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field
from gripfast.host.files.fs import ScopedFs
from gripfast.host.shell.shells import Shells
from gripfast.messages import TextResult


async def _refuses(call: Any, *, shells: Annotated[Shells, Depends(SHELL)]) -> None:
    shells.require_input(shells.look(call.bash_id))


@tool(
    later=True,
    name="BashInput",
    title="Type into a background shell",
    effect="run",
    output="head-tail",
    destructive=True,
    open_world=True,
    feeds="bash_id",
    stands_for=("Bash",),
    refuses=_refuses,
)
async def bash_input(
    bash_id: Annotated[str, Field(description="The id from Bash, started with tty or stdin.")],
    text: Annotated[
        str, Field(description="As typed: lines end with \\n, \\u0003 is Ctrl-C, \\u0004 Ctrl-D.", min_length=1)
    ],
    wait_ms: Annotated[int, Field(description="How long to wait for an answer.", ge=0, le=600_000)] = 1000,
    *,
    shells: Annotated[Shells, Depends(SHELL)],
    fs: Annotated[ScopedFs, Depends(FS)],
    cache: Annotated[OutputCache, Depends(CACHE)],
) -> TextResult:
    """Sends text to a background shell, and shows what it printed since the last look. The user may be asked
    first."""
    shell = shells.look(bash_id)
    left = await shells.type_in(shell, text)
    await shells.settled(shell, wait_ms, text)
    streamed = await stored(shell.news(), cache, shells)
    notes = [_unread(left)] if left else []
    notes += [*state_of(shell), *await late_notes(shell, shells, fs)]
    return TextResult(with_notes(printed(streamed.text), notes), streamed.ref)


def _unread(left: int) -> str:
    return f"[the last {left} bytes of the text were not sent: the command doesn't read them]"
