"""Evaluates a function's annotations one by one, including those of a function nested in another."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sized
from dataclasses import field
from functools import wraps
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar, get_type_hints
from weakref import WeakKeyDictionary

from gripfast.records import dataclass


@dataclass(frozen=True, slots=True)
class Hints:
    """The type of each annotation, or the reason why it can't be evaluated."""

    types: dict[str, Any] = field(default_factory=dict[str, Any])
    faults: dict[str, str] = field(default_factory=dict[str, str])


R = TypeVar("R", bound="HasFaults")


class HasFaults(Protocol):
    """Anything learned about a function that may come with faults."""

    @property
    def faults(self) -> Sized: ...


def cached_per_function(inspect_function: Callable[[Callable[..., Any]], R]) -> Callable[[Callable[..., Any]], R]:
    """Caches a result without faults for as long as the function it is about exists."""
    cache: WeakKeyDictionary[Callable[..., Any], R] = WeakKeyDictionary()

    @wraps(inspect_function)
    def cached(function: Callable[..., Any]) -> R:
        try:
            found = cache.get(function)
        except TypeError:  # not hashable, or no weak reference possible: inspect it each time
            return inspect_function(function)
        if found is None:
            found = inspect_function(function)
            if not found.faults:
                cache[function] = found
        return found

    return cached


@cached_per_function
def hints_of(function: Callable[..., Any]) -> Hints:
    target = _annotated_function(function)
    names = {**getattr(target, "__globals__", {}), **_enclosing_locals(target)}
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


def _annotated_function(function: Any) -> Any:
    """The function that carries the annotations: the wrapped one, that of a partial, `__init__` or `__call__`."""
    if inspect.isclass(function):
        return function.__init__
    function = inspect.unwrap(function)
    function = getattr(function, "func", function)
    return function if hasattr(function, "__annotations__") else type(function).__call__


def _enclosing_locals(function: Any) -> dict[str, Any]:
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
    """The qualified names of the enclosing functions: `a.<locals>.b.<locals>.c` is in `a.<locals>.b` and `a`."""
    parts = qualname.split(".<locals>.")
    return {".<locals>.".join(parts[:end]) for end in range(1, len(parts))}
