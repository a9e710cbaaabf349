"""done: the model says that the task is complete."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holdfast.builtin.keys import TODOS
from holdfast.builtin.todos import Todos
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends


@tool(name="done", title="Finish the task", effect="read", ends=True, idempotent=True)
def done(
    message: Annotated[str, Field(description="What was done, for the user.")] = "",
    *,
    plan: Annotated[Todos, Depends(TODOS)],
) -> str:
    """Marks the task as complete. Call it once, when nothing is left to do."""
    answer = f"Done: {message}" if message else "Done."
    if open_ := plan.unfinished:
        names = ", ".join(f"{todo.id} ({todo.status})" for todo in open_)
        answer += f"\nUnfinished todos: {names}"
    return answer
