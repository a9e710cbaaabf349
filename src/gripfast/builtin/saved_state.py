"""The form in which the state of a session is saved. Loaded when there is something to save: it brings pydantic."""

from __future__ import annotations

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from gripfast.builtin.todos import Todo
from gripfast.host.files.guard import Seen


class Saved(TypedDict):
    version: int
    directory: str | None
    todos: list[Todo]
    reads: list[Seen]


_ADAPTER = TypeAdapter(Saved)


def read_saved(text: str) -> Saved:
    """Raises ValueError for a text that was not saved in this form."""
    return _ADAPTER.validate_json(text)


def saved_text(saved: Saved) -> str:
    return _ADAPTER.dump_json(saved).decode()
