"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import isnan
from typing import Any, TypeVar

import click

from gripfast.builtin.rulesets import RULE_SETS
from gripfast.edges.profiles import FULL, PROFILES
from gripfast.edges.settings import SessionSettings, read_settings
from gripfast.errors import ToolError

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--root",
        "roots",
        multiple=True,
        metavar="DIR",
        help="A directory the tools may use; relative paths start in the first. Default: the current one.",
    ),
    click.option(
        "--writable", multiple=True, metavar="DIR", help="One more directory that tools and commands may write."
    ),
    click.option(
        "--readable", multiple=True, metavar="DIR", help="One more directory that tools and commands may read."
    ),
    click.option(
        "--network",
        metavar="on|off|NAME,...",
        help="What commands may reach: all (the default), nothing, or only these names (*.example.org).",
    ),
    click.option(
        "--profile",
        type=click.Choice(PROFILES),
        help=f"Which tools to offer, by default {FULL}; `gripfast tools --cost` shows what each costs.",
    ),
    click.option("--tools", "names", metavar="NAME,...", help="Offer exactly these tools."),
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
        help="Your configuration, by default ~/.config/gripfast/gripfast.toml. "
        "A root's .gripfast.toml can only narrow it.",
    ),
    click.option(
        "--rules",
        metavar="NAME|none",
        help=f"Which rules hold: {', '.join(RULE_SETS)}. Default: your configuration's, else trusted in a sandbox.",
    ),
    click.option(
        "--remember",
        is_flag=True,
        help="Offer with each question to add a rule to your configuration, so that it is not asked again.",
    ),
)


def answer_within_option(help: str) -> Callable[[F], F]:
    """Adds --answer-within; the command gets it as seconds, or None."""
    return click.option("--answer-within", type=_Seconds(0, 86_400), metavar="SECONDS", help=help)


class _Seconds(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """`nan` is in every range, since it is neither more nor less than anything."""
        seconds = super().convert(value, param, ctx)
        return self.fail(f"{value!r} is not a number of seconds", param, ctx) if isnan(seconds) else seconds


def session_options(function: F) -> F:
    """Adds the options of a session; the command gets them as one `settings` argument."""

    def gathered(
        *args: Any,
        roots: tuple[str, ...],
        profile: str | None,
        names: str | None,
        extra: tuple[str, ...],
        config_file: str | None,
        rules: str | None,
        remember: bool,
        writable: tuple[str, ...],
        readable: tuple[str, ...],
        network: str | None,
        **kwargs: Any,
    ) -> Any:
        named = [name.strip() for name in (names or "").split(",") if name.strip()]
        with as_usage_errors():
            reach = (writable, readable, network)
            settings = read_settings(roots, extra, profile, named, config_file, rules, remember, *reach)
        return function(*args, settings=settings, **kwargs)

    gathered.__name__, gathered.__doc__ = function.__name__, function.__doc__
    gathered.__click_params__ = getattr(function, "__click_params__", [])  # pyright: ignore[reportFunctionMemberAccess] - click keeps options there
    for option in reversed(_OPTIONS):
        option(gathered)
    return gathered  # pyright: ignore[reportReturnType] - a decorator that changes keywords


@contextmanager
def as_usage_errors() -> Generator[None]:
    """Reports a bad setting as a usage error: one line, exit code 2."""
    try:
        yield
    except ToolError as fault:
        raise click.UsageError(fault.message) from None
    except ValueError as fault:
        raise click.UsageError(str(fault)) from None


__all__ = ["SessionSettings", "answer_within_option", "as_usage_errors", "session_options"]
