"""write_todos: the model's plan, stored in the session so that it survives when the context is trimmed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gripfast.builtin.keys import TODOS
from gripfast.builtin.todos import MOST, Change, Status, Todo, Todos
from gripfast.framework.definition import tool
from gripfast.framework.depends import Depends
from gripfast.records import dataclass


class TodoInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: Annotated[str | None, Field(description="As returned; omit for a new todo.")] = None
    content: Annotated[str | None, Field(description="Required for a new todo.", max_length=400)] = None
    status: Annotated[Status | None, Field(description="Default pending; at most one in_progress.")] = None
    priority: Annotated[int | None, Field(description="1 is first; default 3.", ge=1, le=5)] = None


@dataclass(frozen=True, slots=True)
class TodoList:
    todos: tuple[Todo, ...]
    summary: str


@tool(
    name="write_todos",
    title="Write the plan",
    effect="read",
    output="bounded",
    output_schema=True,
    session_only=True,
    profiles=("agent",),
)
def write_todos(
    todos: Annotated[list[TodoInput], Field(description="Todos to add or update.", max_length=MOST)],
    mode: Annotated[
        Literal["merge", "replace"],
        Field(description="merge keeps the others; replace starts over."),
    ] = "merge",
    *,
    plan: Annotated[Todos, Depends(TODOS)],
) -> TodoList:
    """Keeps a plan: add steps, set their status as you go. Returns the list."""
    changes = [Change(todo.id, todo.content, todo.status, todo.priority) for todo in todos]
    items = plan.merge(changes) if mode == "merge" else plan.replace(changes)
    return TodoList(items, _summary(items))


def _summary(todos: tuple[Todo, ...]) -> str:
    words = {"in_progress": "in progress", "pending": "pending", "completed": "completed", "cancelled": "cancelled"}
    counts = {word: sum(todo.status == status for todo in todos) for status, word in words.items()}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "no todos"
