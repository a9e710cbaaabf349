"""write_todos: the model's plan, kept by the session so that it outlives the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.builtin.keys import TODOS
from holdfast.builtin.todos import MOST, Change, Status, Todo, Todos
from holdfast.tool.definition import tool
from holdfast.tool.depends import Depends


class TodoInput(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: Annotated[str | None, Field(description="Of a known todo, to update it; none to add a new one.")] = None
    content: Annotated[str | None, Field(description="What to do; a new todo needs it.", max_length=400)] = None
    status: Annotated[Status | None, Field(description="Pending unless given. One at most is in_progress.")] = None
    priority: Annotated[int | None, Field(description="1 (first) to 5; 3 unless given.", ge=1, le=5)] = None


@dataclass(frozen=True, slots=True)
class TodoList:
    todos: tuple[Todo, ...]
    summary: str


@tool(name="write_todos", title="Write the plan", effect="read", output="bounded", output_schema=True)
def write_todos(
    todos: Annotated[list[TodoInput], Field(description="The todos to add or update.", max_length=MOST)],
    mode: Annotated[
        Literal["merge", "replace"],
        Field(description="merge updates by id, adds the rest and keeps what is not named; replace starts anew."),
    ] = "merge",
    *,
    plan: Annotated[Todos, Depends(TODOS)],
) -> TodoList:
    """Keeps a plan of the task: add steps, set their status as you go. Answers with the whole list."""
    changes = [Change(todo.id, todo.content, todo.status, todo.priority) for todo in todos]
    items = plan.merge(changes) if mode == "merge" else plan.replace(changes)
    return TodoList(items, _summary(items))


def _summary(todos: tuple[Todo, ...]) -> str:
    words = {"in_progress": "in progress", "pending": "pending", "completed": "completed", "cancelled": "cancelled"}
    counts = {word: sum(todo.status == status for todo in todos) for status, word in words.items()}
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "no todos"
