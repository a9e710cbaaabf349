"""Opens a Session over the built-in tools."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from holdfast.builtin.read import read
from holdfast.call.hooks import AskCallback, PostToolCall, PreToolCall
from holdfast.call.run import Session
from holdfast.host.fs import ScopedFs
from holdfast.host.scope import Scope
from holdfast.tool.context import Factory
from holdfast.tool.definition import Tool

TOOLS: tuple[Tool, ...] = (read,)


def workbench(fs: ScopedFs) -> dict[str, Factory]:
    """What the built-in tools of one session share, as factories by dependency id."""
    return {"fs": lambda: fs}


def builtin_tools(fs: ScopedFs) -> list[Tool]:
    """The built-in tools bound to a file system: ready for `execute_raw`, or for a Session of your own."""
    bench = workbench(fs)
    return [tool.bind(bench) for tool in TOOLS]


def open_session(
    scope: Scope | ScopedFs,
    *,
    tools: Iterable[Tool] = (),
    overrides: Mapping[str, Factory] | None = None,
    ask: AskCallback | None = None,
    before: Iterable[PreToolCall] = (),
    after: Iterable[PostToolCall] = (),
    logger: logging.Logger | None = None,
    id: str | None = None,
) -> Session:
    """A session with the built-in tools and yours, held inside `scope`. Use it with `async with`."""
    fs = scope if isinstance(scope, ScopedFs) else ScopedFs(scope)
    return Session(
        [*TOOLS, *tools],
        overrides={**workbench(fs), **(overrides or {})},
        ask=ask,
        before=before,
        after=after,
        logger=logger,
        id=id,
    )
