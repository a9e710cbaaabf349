"""The annotations of a function, evaluated one by one, also where it was defined inside another one."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from functools import wraps
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar, get_type_hints
from weakref import WeakKeyDictionary


@dataclass(frozen=True, slots=True)
class Hints:
    """What each annotation stands for; and why, where one can't be evaluated."""

    types: dict[str, Any] = field(default_factory=dict[str, Any])
    faults: dict[str, str] = field(default_factory=dict[str, str])


R = TypeVar("R", bound="Readable")


class Readable(Protocol):
    """What is read of a function, and what can't be."""

    @property
    def faults(self) -> Sized: ...


def remembered(read: Callable[[Callable[..., Any]], R]) -> Callable[[Callable[..., Any]], R]:
    """Reads a function once, where that succeeds without faults; one that is gone is forgotten."""
    known: WeakKeyDictionary[Callable[..., Any], R] = WeakKeyDictionary()

    @wraps(read)
    def recall(function: Callable[..., Any]) -> R:
        try:
            found = known.get(function)
        except TypeError:  # can't be hashed or weakly held: read each time
            return read(function)
        if found is None:
            found = read(function)
            if not found.faults:
                known[function] = found
        return found

    return recall


@remembered
def hints_of(function: Callable[..., Any]) -> Hints:
    target = _written(function)
    names = {**getattr(target, "__globals__", {}), **_names_around(target)}
    hints = Hints()
    for name, annotation in getattr(target, "__annotations__", {}).items():
        holder = SimpleNamespace(__annotations__={name: annotation})
        try:
            found = get_type_hints(holder, names, names, include_extras=True)
        except (NameError, TypeError, AttributeError, SyntaxError) as fault:
            hints.faults[name] = str(fault)
        else:
            hints.types[name] = found[name]
    return hints


def _written(function: Any) -> Any:
    """Where the annotations stand: the innermost function, the function of a partial, `__init__`, `__call__`."""
    if inspect.isclass(function):
        return function.__init__
    function = inspect.unwrap(function)
    function = getattr(function, "func", function)
    return function if hasattr(function, "__annotations__") else type(function).__call__


def _names_around(function: Any) -> dict[str, Any]:
    """Local names of the functions that enclose this one and are still running: its annotations may use them."""
    enclosing = _enclosing(getattr(function, "__qualname__", ""))
    names: dict[str, Any] = {}
    frame = sys._getframe(1) if enclosing else None  # pyright: ignore[reportPrivateUsage] - as inspect does
    while frame is not None:
        if frame.f_code.co_qualname in enclosing and frame.f_globals is function.__globals__:
            names = {**frame.f_locals, **names}
        frame = frame.f_back
    return names


def _enclosing(qualname: str) -> set[str]:
    """`a.<locals>.b.<locals>.c` stands inside `a.<locals>.b` and `a`."""
    parts = qualname.split(".<locals>.")
    return {".<locals>.".join(parts[:end]) for end in range(1, len(parts))}
