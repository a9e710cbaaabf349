"""The annotations of a function, evaluated, also where it was defined inside another one."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, get_type_hints


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Evaluated annotations with their extras. Raises NameError or TypeError where one can't be evaluated."""
    target = function.__init__ if inspect.isclass(function) else inspect.unwrap(function)
    if not hasattr(target, "__annotations__") and hasattr(target, "__call__"):  # noqa: B004 - a callable object
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError:
        return get_type_hints(target, localns=_names_in_reach(target), include_extras=True)


def _names_in_reach(function: Any) -> dict[str, Any]:
    """Names of the functions that are running now: where a nested function's annotations were written."""
    names: dict[str, Any] = {}
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage] - the documented way to the caller's names
    wanted = getattr(function, "__module__", None)
    while frame is not None:
        if frame.f_globals.get("__name__") == wanted:
            for name, value in frame.f_locals.items():
                names.setdefault(name, value)
        frame = frame.f_back
    return names
