"""The todos of a session: pure state. `write_todos.py` has what a model reads."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass

Status: TypeAlias = Literal["pending", "in_progress", "completed", "cancelled"]

MOST = 100
_SLUG = r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}"


@dataclass(frozen=True, slots=True)
class Todo:
    id: str
    content: str
    status: Status = "pending"
    priority: int = 3


@dataclass(frozen=True, slots=True)
class Change:
    """The changes to one todo; None keeps the current value, or the default for a new todo."""

    id: str | None = None
    content: str | None = None
    status: Status | None = None
    priority: int | None = None


class Todos:
    """The todos of one session, in order. A call changes all of what it asks for, or nothing."""

    def __init__(self, items: Iterable[Todo] = ()) -> None:
        self._items = tuple(items)
        self._lock = threading.Lock()

    @property
    def items(self) -> tuple[Todo, ...]:
        return self._items

    @property
    def unfinished(self) -> tuple[Todo, ...]:
        return tuple(todo for todo in self._items if todo.status in ("pending", "in_progress"))

    def restore(self, items: Iterable[Todo]) -> None:
        """Makes the list what it was elsewhere. Raises InvalidArgument for one that can't have been made here."""
        restored = tuple(items)
        faults = _id_faults([Change(todo.id) for todo in restored], {}, new_ids=True) + _list_faults(restored)
        if faults:
            raise InvalidArgument("; ".join(faults))
        with self._lock:
            self._items = restored

    def merge(self, changes: Sequence[Change]) -> tuple[Todo, ...]:
        """Updates the todos named by id, adds the others, and keeps the rest."""
        with self._lock:
            self._items = _applied({todo.id: todo for todo in self._items}, changes)
            return self._items

    def replace(self, changes: Sequence[Change]) -> tuple[Todo, ...]:
        """Replaces the list; a known id keeps the values that are not given again."""
        with self._lock:
            known = {todo.id: todo for todo in self._items}
            named = {change.id: known[change.id] for change in changes if change.id in known}
            self._items = _in_order(_applied(named, changes, new_ids=True), changes)
            return self._items


def _applied(todos: dict[str, Todo], changes: Sequence[Change], *, new_ids: bool = False) -> tuple[Todo, ...]:
    result = dict(todos)
    faults = _id_faults(changes, result, new_ids=new_ids or not todos)
    for at, change in enumerate(changes):
        if change.id is None or change.id not in result:
            if not (change.content or "").strip():
                if change.id is not None and not new_ids and todos:
                    continue  # said already: no todo has that id
                which = f"`{change.id}`" if change.id else f"todos[{at}], which has no id,"
                faults.append(f"{which} is new, so it needs content")
                continue
            name = change.id or _slug(change.content or "", taken=result.keys() | {c.id for c in changes if c.id})
            result[name] = Todo(name, "")
        else:
            name = change.id
        result[name] = _changed(result[name], change)
    faults += _list_faults(tuple(result.values()))
    if faults:
        raise InvalidArgument("; ".join(faults) + "; nothing was changed")
    return tuple(result.values())


def _changed(todo: Todo, change: Change) -> Todo:
    content = " ".join((change.content or "").split())
    return replace(
        todo,
        content=content or todo.content,
        status=change.status or todo.status,
        priority=change.priority or todo.priority,
    )


def _in_order(todos: tuple[Todo, ...], changes: Sequence[Change]) -> tuple[Todo, ...]:
    """The todos in the order of the changes; known ones were updated in place."""
    by_id = {todo.id: todo for todo in todos}
    new = iter([todo for todo in todos if todo.id not in {change.id for change in changes}])
    return tuple(by_id[change.id] if change.id is not None else next(new) for change in changes)


def _id_faults(changes: Sequence[Change], known: dict[str, Todo], *, new_ids: bool) -> list[str]:
    faults: list[str] = []
    seen: set[str] = set()
    for name in (change.id for change in changes if change.id is not None):
        if not re.fullmatch(_SLUG, name):
            faults.append(f"the id {name[:40]!r} is not a short slug (letters, digits, - and _, at most 32)")
        elif name in seen:
            faults.append(f"the id `{name}` is given twice")
        elif name not in known and not new_ids:
            there = ", ".join(f"`{one}`" for one in known)
            faults.append(f"no todo has the id `{name}`; there are {there}; leave the id out to add a new one")
        seen.add(name)
    return faults


def _list_faults(todos: tuple[Todo, ...]) -> list[str]:
    busy = [f"`{todo.id}`" for todo in todos if todo.status == "in_progress"]
    faults = [f"only one todo may be in_progress, not {', '.join(busy)}"] if len(busy) > 1 else []
    if len(todos) > MOST:
        faults.append(f"{len(todos)} todos are more than {MOST}; remove finished ones with mode replace")
    return faults


def _slug(content: str, taken: Iterable[str]) -> str:
    """A short name made of the first words, and not yet taken."""
    words = re.findall(r"[a-z0-9]+", content.lower())[:4]
    base = "-".join(words)[:24].strip("-") or "todo"
    number, name = 1, base
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name
