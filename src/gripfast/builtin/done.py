"""done: the model reports that the task is complete."""

from __future__ import annotations

from typing import Annotated

from gripfast.builtin.keys import TODOS
from gripfast.builtin.todos import Todos
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.framework.fields import Field


@tool(
    later=True,
    name="done",
    title="Finish the task",
    effect="read",
    ends=True,
    idempotent=True,
    session_only=True,
    profiles=("agent",),
)
def done(
    message: Annotated[str, Field(description="What was done, for the user.")] = "",
    *,
    plan: Annotated[Todos, Depends(TODOS)],
) -> str:
    """Ends the task; call it when nothing is left to do."""
    answer = f"Done: {message}" if message else "Done."
    if open_ := plan.unfinished:
        names = ", ".join(f"{todo.id} ({todo.status})" for todo in open_)
        answer += f"\nUnfinished todos: {names}"
    return answer
