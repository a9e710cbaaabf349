"""Options that several commands share, and what they describe."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from holdfast.edges.opening import Opening, opening
from holdfast.edges.profiles import DEFAULT, PROFILES
from holdfast.errors import ToolError

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--root",
        "roots",
        multiple=True,
        metavar="DIR",
        help="A directory the tools may use; the first is where relative paths start. Default: the current one.",
    ),
    click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        help=f"Which tools there are, by default {DEFAULT}; `holdfast tools --cost` shows what each costs.",
    ),
    click.option("--tools", "names", metavar="NAME,...", help="These tools and no others."),
    click.option(
        "--with",
        "extra",
        multiple=True,
        metavar="MODULE",
        help="Add the tools defined in a module (my_pkg.tools) or file (tools.py). Its code runs.",
    ),
    click.option(
        "--config",
        "config_file",
        metavar="FILE",
        help="Your configuration, by default ~/.config/holdfast/holdfast.toml; a root's .holdfast.toml only narrows.",
    ),
)


def opening_options(function: F) -> F:
    """Adds the options that say what is opened; the command gets them as one `opened` argument."""

    def gathered(
        *args: Any,
        roots: tuple[str, ...],
        profile: str | None,
        names: str | None,
        extra: tuple[str, ...],
        config_file: str | None,
        **kwargs: Any,
    ) -> Any:
        named = [name.strip() for name in (names or "").split(",") if name.strip()]
        with told_as_usage():
            opened = opening(roots, extra, profile, named, config_file)
        return function(*args, opened=opened, **kwargs)

    gathered.__name__, gathered.__doc__ = function.__name__, function.__doc__
    gathered.__click_params__ = getattr(function, "__click_params__", [])  # pyright: ignore[reportFunctionMemberAccess] - click keeps options there
    for option in reversed(_OPTIONS):
        option(gathered)
    return gathered  # pyright: ignore[reportReturnType] - a decorator that changes keywords


@contextmanager
def told_as_usage() -> Generator[None]:
    """What can't be opened as it was asked for is bad usage: said in one line, exit 2."""
    try:
        yield
    except ToolError as fault:
        raise click.UsageError(fault.message) from None
    except ValueError as fault:
        raise click.UsageError(str(fault)) from None


__all__ = ["Opening", "opening_options", "told_as_usage"]
