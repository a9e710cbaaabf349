"""Opens a Session over the built-in tools."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncGenerator, Iterable, Mapping

from holdfast.builtin.bash import bash
from holdfast.builtin.bash_output import bash_output
from holdfast.builtin.done import done
from holdfast.builtin.edit import edit
from holdfast.builtin.glob import glob
from holdfast.builtin.grep import grep
from holdfast.builtin.kill_bash import kill_bash
from holdfast.builtin.lisp_read_file import lisp_read_file
from holdfast.builtin.read import read
from holdfast.builtin.read_file import read_file
from holdfast.builtin.tool_output_cache import tool_output_cache
from holdfast.builtin.tool_output_cache_grep import tool_output_cache_grep
from holdfast.builtin.tree import tree
from holdfast.builtin.write import write
from holdfast.builtin.write_todos import write_todos
from holdfast.call.cache import OutputCache, Store
from holdfast.call.hooks import AskCallback, PostToolCall, PreToolCall
from holdfast.call.rules import Permissions, Spell, rules_hook
from holdfast.call.run import Session
from holdfast.host.fs import ScopedFs
from holdfast.host.guard import ReadLog
from holdfast.host.paths import WorkPath
from holdfast.host.process import Shells
from holdfast.host.redis_store import RedisStore
from holdfast.host.sandbox import Mode, choose
from holdfast.host.scope import Scope
from holdfast.host.store import EmbeddedStore
from holdfast.tool.context import Factory
from holdfast.tool.definition import Tool

TOOLS: tuple[Tool, ...] = (
    read,
    write,
    edit,
    glob,
    grep,
    bash,
    bash_output,
    kill_bash,
    read_file,
    tree,
    lisp_read_file,
    tool_output_cache,
    tool_output_cache_grep,
    write_todos,
    done,
)


def workbench(fs: ScopedFs, cache: OutputCache, *, require_read: bool = True) -> dict[str, Factory]:
    """What the built-in tools of one session share, as factories by dependency id."""
    reads = ReadLog(required=require_read)
    return {"fs": lambda: fs, "reads": lambda: reads, "cache": lambda: cache}


def output_cache(cache: OutputCache | Store | str | None, session: str) -> OutputCache:
    """The cache of a session: a Redis by its URL, a store that others share, else the embedded one."""
    match cache:
        case OutputCache():
            return cache
        case None:
            return OutputCache(EmbeddedStore(), session=session, owns_store=True)
        case str():
            return OutputCache(RedisStore(cache), session=session, owns_store=True)
        case _:
            return OutputCache(cache, session=session)


def shells_in(fs: ScopedFs, sandbox: Mode, env: Iterable[str] = ()) -> Factory:
    """Shells that are closed with the session they were made for."""

    async def shells() -> AsyncGenerator[Shells, None]:
        async with Shells(fs.scope, sandbox=sandbox, allow=tuple(env)) as opened:
            yield opened

    return shells


def builtin_tools(fs: ScopedFs) -> list[Tool]:
    """The built-in tools bound to a file system: ready for `execute_raw`, or for a Session of your own.

    They share one shell, whose processes end with the program.
    """
    shells = Shells(fs.scope)
    bench = {**workbench(fs, output_cache(None, uuid.uuid4().hex)), "shell": lambda: shells}
    return [tool.bind(bench) for tool in described(TOOLS, "auto")]


def described(tools: Iterable[Tool], sandbox: Mode) -> list[Tool]:
    """The model is told what holds its commands. That is tried out only where there is a tool to run them."""
    return [tool.describe(f"{tool.description} {choose(sandbox).words}.") if tool is bash else tool for tool in tools]


def open_session(
    scope: Scope | ScopedFs,
    *,
    tools: Iterable[Tool] = (),
    builtin: Iterable[Tool] = TOOLS,
    overrides: Mapping[str, Factory] | None = None,
    permissions: Permissions | None = None,
    ask: AskCallback | None = None,
    before: Iterable[PreToolCall] = (),
    after: Iterable[PostToolCall] = (),
    cache: OutputCache | Store | str | None = None,
    require_read: bool = True,
    sandbox: Mode = "auto",
    env: Iterable[str] = (),
    logger: logging.Logger | None = None,
    id: str | None = None,
) -> Session:
    """A session with the built-in tools and yours, held inside `scope`. Use it with `async with`.

    `builtin` chooses among the built-in tools; the default is all of them.
    Without `permissions` every tool runs; with them, nobody to `ask` means no.
    With `require_read`, a file that exists must be read before it is written or edited.
    `sandbox` holds commands to the scope: "auto" takes the best there is, "require" raises where there is none. `env`
    names more variables that commands may see.
    """
    fs = scope if isinstance(scope, ScopedFs) else ScopedFs(scope)
    id = id or uuid.uuid4().hex
    outputs = output_cache(cache, id)
    bench = {**workbench(fs, outputs, require_read=require_read), "shell": shells_in(fs, sandbox, env)}
    return Session(
        [*described(builtin, sandbox), *tools],
        overrides={**bench, **(overrides or {})},
        cache=outputs,
        ask=ask,
        before=(*_rules(permissions, fs), *before),
        after=after,
        logger=logger,
        id=id,
    )


def _rules(permissions: Permissions | None, fs: ScopedFs) -> tuple[PreToolCall, ...]:
    """The rules come before any other hook, and know where the workspace is."""
    return () if permissions is None else (rules_hook(permissions.within(fs.roots), spelling(fs)),)


def spelling(fs: ScopedFs) -> Spell:
    """How the rules read a path: as requested and as it really is."""

    def spell(subject: object) -> tuple[str, ...]:
        return fs.spellings(subject) if isinstance(subject, WorkPath) else (str(subject),)

    return spell
