"""Which store a command looks into besides this machine's files: the one that servers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from gripfast.builtin.config import load_config
from gripfast.edges.cli.options import as_usage_errors
from gripfast.host.stores.redis_link import check_address

F = TypeVar("F", bound=Callable[..., Any])


def store_option(function: F) -> F:
    """Adds --store, to be used beside --config."""
    return click.option(
        "--store",
        metavar="URL",
        help="Look into this Redis, too, which servers share. Default: your configuration's `store`.",
    )(function)


def store_options(function: F) -> F:
    """Adds --config and --store; the command gets the address as its `store` argument, None if there is none."""

    def gathered(*args: Any, config_file: str | None, store: str | None, **rest: Any) -> Any:
        return function(*args, store=chosen_store(config_file, store), **rest)

    gathered.__name__, gathered.__doc__ = function.__name__, function.__doc__
    gathered.__click_params__ = getattr(function, "__click_params__", [])  # pyright: ignore[reportFunctionMemberAccess] - click keeps options there
    store_option(gathered)
    click.option("--config", "config_file", metavar="FILE", help="Your configuration.")(gathered)
    return gathered  # pyright: ignore[reportReturnType] - a decorator that changes keywords


def chosen_store(config_file: str | None, store: str | None) -> str | None:
    """The address of the store that servers share. Raises a usage error for a configuration that can't be read."""
    with as_usage_errors():
        found = store or load_config(config_file).store
        if found is not None:
            check_address(found)
        return found
