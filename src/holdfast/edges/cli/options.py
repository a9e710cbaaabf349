"""Options that several commands share, and the session they describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from holdfast.builtin.session import open_session
from holdfast.call.run import Session
from holdfast.errors import ToolError
from holdfast.host.load import load_module
from holdfast.host.scope import Scope
from holdfast.tool.definition import Tool

F = TypeVar("F", bound=Callable[..., Any])


def root_option(function: F) -> F:
    return click.option(
        "--root",
        "roots",
        multiple=True,
        metavar="DIR",
        help="A directory the tools may use; the first is where relative paths start. Default: the current one.",
    )(function)


def with_option(function: F) -> F:
    return click.option(
        "--with",
        "extra",
        multiple=True,
        metavar="MODULE",
        help="Add the tools defined in a module (my_pkg.tools) or file (tools.py). Its code runs.",
    )(function)


def session_of(roots: tuple[str, ...], extra: tuple[str, ...]) -> Session:
    try:
        scope = Scope.workspace(*(roots or (".",)))
        return open_session(scope, tools=[tool for spec in extra for tool in tools_in(spec)])
    except (ToolError, ValueError) as fault:
        raise click.UsageError(getattr(fault, "message", str(fault))) from None


def tools_in(spec: str) -> list[Tool]:
    """Every Tool that a module or file defines at its top level."""
    found = [value for value in vars(load_module(spec)).values() if isinstance(value, Tool)]
    if not found:
        raise click.UsageError(f"{spec} defines no tools; decorate a function with @tool")
    return found
