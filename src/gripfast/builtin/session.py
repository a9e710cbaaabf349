"""Opens a Session over the built-in tools."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from gripfast.builtin import tools as tool_list
from gripfast.builtin.keys import CACHE, FS, OFFERED, READS, RECORD, SHELL, TODOS, WATCH, watch_of
from gripfast.builtin.machine import ShellPlace, facts_of
from gripfast.builtin.rulesets import IN_WORDS
from gripfast.builtin.todos import Todos
from gripfast.call.cache import OutputCache, Store
from gripfast.call.hooks import Allow, Ask, AskCallback, Deny, PostToolCall, PreToolCall, Remember
from gripfast.call.rules import Permissions, RulesHook, Spell, rules_hook
from gripfast.call.run import Session
from gripfast.errors import InvalidArgument
from gripfast.framework.context import Factory
from gripfast.framework.definition import Tool
from gripfast.framework.subjects import Subjects
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.known_secrets import KnownSecrets
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope
from gripfast.host.files.watch import Watch
from gripfast.host.record.record import Record
from gripfast.host.record.shelf import RecordOptions
from gripfast.host.record.together import recover_changes
from gripfast.host.shell.board import Board
from gripfast.host.shell.network import ON, Network, NetworkSetting, parse_network
from gripfast.host.shell.sandbox import SandboxMode, choose
from gripfast.host.shell.shared import MAX_OUTPUT, BegunSecret, no_secret_begun, share_tmp
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import ToolCall
from gripfast.records import dataclass
from gripfast.text.escape import escaped

if TYPE_CHECKING:
    from pydantic import BaseModel

    from gripfast.host.record.undo import UndoResult
    from gripfast.host.shell.shells import Shells


def shared_dependencies(
    fs: ScopedFs, cache: OutputCache, tools: Iterable[Tool], *, require_read: bool = True
) -> dict[str, Factory]:
    """What the built-in tools of one session share, as factories by dependency id."""
    reads, offered = ReadLog(required=require_read), frozenset(name for tool in tools for name in _offered(tool))
    return {FS.id: lambda: fs, READS.id: lambda: reads, CACHE.id: lambda: cache, OFFERED.id: lambda: offered}


def _offered(tool: Tool) -> list[str]:
    return [tool.name, *(f"{tool.name}.{argument}" for argument in tool.traits.seldom if tool.shows(argument))]


def output_cache(cache: OutputCache | Store | str | None, session: str) -> OutputCache:
    """The output cache of a session: in Redis (by URL), in a given store, or in the embedded one."""
    match cache:
        case OutputCache():
            return cache
        case None:
            return OutputCache(EmbeddedStore(), session=session, owns_store=True)
        case str():
            from gripfast.host.stores.redis_store import RedisStore  # noqa: PLC0415 - few sessions share a store

            return OutputCache(RedisStore(cache), session=session, owns_store=True)
        case _:
            return OutputCache(cache, session=session)


def shells_in(
    fs: ScopedFs,
    sandbox: SandboxMode,
    env: Iterable[str],
    place: ShellPlace,
    sockets: Iterable[str] = (),
    *,
    may_leave: bool = False,
    network: Network = ON,
    max_output: int = MAX_OUTPUT,
    board: Board | None = None,
    begun_secret: BegunSecret = no_secret_begun,
) -> Factory:
    """A factory of shells that are closed with their session. `place` tells the rules where they are.
    `may_leave`: the session asks a person before a command runs outside the sandbox."""

    async def shells() -> AsyncGenerator[Shells, None]:
        from gripfast.host.shell.shells import shells_over  # noqa: PLC0415 - loaded with the first command

        async with shells_over(
            fs, sandbox, env, sockets, directory=place.start, network=network, board=board
        ) as opened:
            opened.may_leave, opened.max_output, opened.elsewhere = may_leave, max_output, place.elsewhere
            opened.begun_secret = begun_secret
            place.shells = opened
            yield opened

    return shells


def builtin_tools(fs: ScopedFs) -> list[Tool]:
    """The built-in tools bound to a file system, for `execute_raw` or for your own Session.

    All tools over one `fs`, also those of `read_tool(fs)` and its like, share what was read, the todos, the stored
    outputs, one shell and one watch over the files, which end with the program.
    """
    return [bound_tool(fs, tool) for tool in tool_list.TOOLS]


def bound_tool(fs: ScopedFs, tool: Tool) -> Tool:
    """A tool bound to a file system and to what the tools over it share."""
    (named,) = described([tool], "auto")
    return named.bind(fs.shared(_shared))


def _shared(fs: ScopedFs) -> dict[str, Factory]:
    from gripfast.host.shell.shells import shells_over  # noqa: PLC0415 - loaded with the first command

    shells, todos = shells_over(fs), Todos()
    cache = output_cache(None, uuid.uuid4().hex)
    cache.read_with(tool_list.TOOLS)
    shared = {**shared_dependencies(fs, cache, tool_list.TOOLS), SHELL.id: lambda: shells, TODOS.id: lambda: todos}
    return {**shared, WATCH.id: _LazyWatch(fs).get}


def described(
    tools: Iterable[Tool] | None, sandbox: SandboxMode, rules: str = "", *, asks: bool = False, network: Network = ON
) -> list[Tool]:
    """The tools (None: all) with their descriptions as a session shows them: those that run commands name the sandbox
    and what the rule set `rules` asks about. What needs a person's yes is shown only if somebody can be asked
    (`asks`).

    Which sandbox works here is tried out only if some tool asks for it.
    """
    reach = "" if network.kind == "on" else f"; {network.description}"
    held = f" Rules: {IN_WORDS[rules]}." if rules in IN_WORDS else ""
    taken = tool_list.TOOLS if tools is None else tools
    shown = [
        tool if asks or tool.traits.needs_person is None else tool.without(tool.traits.needs_person) for tool in taken
    ]
    return [
        tool.describe(f"{tool.description} {choose(sandbox).description}{reach}.{held}")
        if tool.traits.names_sandbox
        else tool
        for tool in shown
    ]


class _LazyWatch:
    """The watch over a session's files, made when it is first needed."""

    def __init__(self, fs: ScopedFs) -> None:
        self._fs = fs
        self._made: Watch | None = None

    def get(self) -> Watch:
        if self._made is None:
            self._made = watch_of(self._fs)
        return self._made

    def close(self) -> None:
        if self._made is not None:
            self._made.close()


class WorkspaceSession(Session):
    """A session over files. With a record, its calls can be listed and undone."""

    def __init__(
        self, tools: Iterable[Tool], *, fs: ScopedFs, record: Record | None, watch: _LazyWatch, **options: Any
    ) -> None:
        super().__init__(tools, recorder=record, **options)
        self.fs = fs
        self._record = record
        self._watch = watch

    @property
    def record(self) -> Record:
        """What the calls of this session did. Raises InvalidArgument if the session was opened without it."""
        if self._record is None:
            raise InvalidArgument("this session has no record; open it with record=True")
        return self._record

    def send_record_to(self, line: Callable[[dict[str, Any]], object]) -> None:
        """Passes each line of the record, if there is one, to a function that shares it with other servers."""
        if self._record is not None:
            self._record.on_line = line

    def prepare(self) -> None:
        """Starts in the background what the first command of a recorded session would wait for."""
        if self._record is not None:
            self._record.watch_with(self._watch.get())

    async def undo(
        self, calls: Sequence[int] | None = None, paths: Sequence[str] = (), *, dry_run: bool = False
    ) -> UndoResult:
        """Takes back what calls changed (by default the last that changed something), where nobody else has
        changed it since. `paths` choose among what they changed."""
        from gripfast.host.record.undo import undo  # noqa: PLC0415 - seldom needed

        places = [self.fs.real(WorkPath.parse(path)) for path in paths]
        work = partial(undo, self.record, calls, places, dry_run=dry_run)
        return await to_thread.run_sync(work)

    async def close(self) -> None:
        await super().close()
        if self._record is not None:
            await to_thread.run_sync(self._record.close)
        await to_thread.run_sync(self._watch.close)


def open_session(
    scope: Scope | ScopedFs,
    *,
    tools: Iterable[Tool] = (),
    builtin: Iterable[Tool] | None = None,
    overrides: Mapping[str, Factory] | None = None,
    permissions: Permissions | None = None,
    ask: AskCallback | None = None,
    before: Iterable[PreToolCall] = (),
    after: Iterable[PostToolCall] = (),
    cache: OutputCache | Store | str | None = None,
    require_read: bool = True,
    sandbox: SandboxMode = "auto",
    env: Iterable[str] = (),
    place: ShellPlace | None = None,
    rules: str = "",
    remember: Remember | None = None,
    sockets: Iterable[str] = (),
    network: NetworkSetting = "on",
    max_output: int = MAX_OUTPUT,
    record: bool | RecordOptions = False,
    redact: Callable[[str], str] | None = None,
    hide_secrets: bool = False,
    logger: logging.Logger | None = None,
    id: str | None = None,
) -> WorkspaceSession:
    """A session with the built-in tools and yours, confined to `scope`. Use it with `async with`.

    Tools: `tools` are your own; `builtin`: which of the built-in ones (default: all); `overrides`: other
        dependencies, by id; `require_read`: a file that exists must be read before it is written or edited
    Permission: `permissions` are the rules (default: every call runs); `ask` asks a person (default: such calls are
        refused); `before`, `after`: hooks; `remember` stores the rules that a person wants to keep for later
        sessions; `rules`: the name of the rule set that `permissions` is, for Bash's description
    Commands: `sandbox` "auto" is the best one available, "require" raises if there is none; `env`: further
        environment variables they see; `sockets`: Unix sockets they may reach; `place`: where the shell starts, then
        is; `network`: what they may reach: "on", "off", or a list of names; `max_output`: characters in an answer
    Outputs and records: `cache`: where cut outputs are stored: a store, a Redis URL, or by default a file of this
        user; `record` every call and what it changed, so that it can be undone; `redact` is applied to every text
        before that; `hide_secrets`: answers, outputs and record have the names of known secrets, not their values;
        `logger`: the session's own; `id` names the session in the cache and in the record
    """
    fs = scope if isinstance(scope, ScopedFs) else ScopedFs(scope)
    share_tmp(fs, sandbox)
    id = id or uuid.uuid4().hex
    secrets = KnownSecrets(fs.roots) if hide_secrets else None
    hide = _both(secrets, redact)
    parts = _SessionParts(fs, sandbox, place or ShellPlace(), _record(fs, id, record, hide), _LazyWatch(fs))
    needed, reach = permissions is not None or ask is not None, parse_network(network)
    outputs = output_cache(cache, id)
    shown = described(builtin, sandbox, rules, asks=ask is not None, network=reach)
    limits: dict[str, Any] = {"may_leave": needed, "network": reach, "max_output": max_output}
    limits |= {"begun_secret": secrets.begun_secret} if secrets else {}
    board = Board(id, fs.roots[0], hide) if record else None
    shells = shells_in(fs, sandbox, tuple(env), parts.place, sockets, board=board, **limits)
    shared = shared_dependencies(fs, outputs, [*shown, *tools], require_read=require_read)
    shared |= {SHELL.id: shells, **parts.dependencies(), **(overrides or {})}
    options: dict[str, Any] = {"ask": ask, "after": after, "remember": remember, "logger": logger, "id": id}
    options |= {"before": (*([parts.first_hook(permissions)] if needed else ()), *before), "cache": outputs}
    options |= {"place": partial(_placed, fs), "secrets": secrets and secrets.current, "overrides": shared}
    return WorkspaceSession([*shown, *tools], fs=fs, record=parts.record, watch=parts.watch, **options)


@dataclass(frozen=True)
class _SessionParts:
    """What the parts of one session share: its files, where its commands run, and what is kept of its changes."""

    fs: ScopedFs
    sandbox: SandboxMode
    place: ShellPlace
    record: Record | None
    watch: _LazyWatch

    def dependencies(self) -> dict[str, Factory]:
        recorded = {RECORD.id: lambda: self.record} if self.record else {}
        return {WATCH.id: self.watch.get, **recorded}

    def first_hook(self, permissions: Permissions | None) -> PreToolCall:
        """The rules come before any other hook, and know the workspace and the machine."""
        if permissions is None:
            return _questions(None, self.fs, self.place, None)
        record, watch = self.record, self.watch
        removal = None if record is None else partial(_removal_problem, record, watch)
        ready = None if record is None else lambda: record.be_ready(watch.get())
        facts = facts_of(self.fs, self.place, self.sandbox, removal)
        rules = rules_hook(permissions.within(self.fs.roots, facts), spelling(self.fs))
        return _questions(rules, self.fs, self.place, ready)


def _both(secrets: KnownSecrets | None, redact: Callable[[str], str] | None) -> Callable[[str], str] | None:
    """Known secrets come first: a text that `redact` has changed may no longer contain them whole."""
    if secrets is None or redact is None:
        return secrets or redact
    return lambda text: redact(secrets(text))


def _removal_problem(record: Record, watch: _LazyWatch, path: str) -> str | None:
    from gripfast.host.record.removal import removal_problem  # noqa: PLC0415 - for commands that remove something

    return removal_problem(record, watch.get(), path)


def _record(
    fs: ScopedFs, id: str, record: bool | RecordOptions, redact: Callable[[str], str] | None
) -> Record | None:
    if not record:
        recover_changes(fs)
        return None
    options = record if isinstance(record, RecordOptions) else None
    return Record(fs, id, options, redact) if redact else Record(fs, id, options)


def _questions(
    rules: RulesHook | None, fs: ScopedFs, place: ShellPlace, be_ready: Callable[[], object] | None
) -> PreToolCall:
    """What the rules say before a call, and what only a person can allow: that is one question, not two. A command is
    also judged by what could be undone, which is waited for in a thread."""

    def judged(call: ToolCall, tool: Tool, arguments: BaseModel) -> Deny | Ask | Allow | None:
        verdict = rules(call, tool, arguments) if rules is not None else None
        person = _needs_a_person(fs, place, tool, arguments)
        stays = isinstance(verdict, Deny) and not verdict.by_sandbox
        return verdict if person is None or stays else person

    async def judged_when(
        ready: Callable[[], object], call: ToolCall, tool: Tool, arguments: BaseModel
    ) -> Deny | Ask | Allow | None:
        await to_thread.run_sync(ready, abandon_on_cancel=True)
        return judged(call, tool, arguments)

    def hook(
        call: ToolCall, tool: Tool, arguments: BaseModel
    ) -> Deny | Ask | Allow | Awaitable[Deny | Ask | Allow | None] | None:
        if be_ready is not None and rules is not None and tool.traits.effect == "run" and tool.traits.subject:
            return judged_when(be_ready, call, tool, arguments)
        return judged(call, tool, arguments)

    return hook


def _needs_a_person(fs: ScopedFs, place: ShellPlace, tool: Tool, arguments: BaseModel) -> Ask | None:
    """A protected name, or the argument that a tool declares: asked each time, and never remembered."""
    if tool.traits.subject is None and tool.traits.needs_person is None:
        return None
    subject = getattr(arguments, tool.traits.subject) if tool.traits.subject else None
    parts = subject.parts() if isinstance(subject, Subjects) else (subject,)
    if lifted := [part for part in parts if isinstance(part, WorkPath) and part.lifted]:
        return _ask_to_lift(fs, lifted)
    why = getattr(arguments, tool.traits.needs_person) if tool.traits.needs_person else None
    if why is not None:
        reason = (
            f"{tool.name} would run this outside the sandbox, with all of the user's rights; the reason given: {why}"
        )
        where = place.directory() or fs.roots[0]

        def outdated() -> str | None:
            return None if (place.directory() or fs.roots[0]) == where else "the working directory has changed"

        return Ask(reason, remedy="the user can run it in a terminal", where=where, outdated=outdated)
    return None


def _ask_to_lift(fs: ScopedFs, paths: Sequence[WorkPath]) -> Ask:
    why = [fs.protection(path) for path in paths]
    each = [f"`{escaped(path.text)}` is protected ({one})" for path, one in zip(paths, why, strict=True)]
    names = ", ".join(dict.fromkeys(json.dumps(one.strip("`"), ensure_ascii=False) for one in why))
    reason = f"{', '.join(each)}: other programs run what it says"
    return Ask(reason, remedy=f"the user can allow it with unprotect = [{names}]")


def _placed(fs: ScopedFs, tool: Tool, subject: object, may_ask: bool) -> object:
    """A path bound to the place it leads to now, which is the place that is judged, shown and opened."""
    if not isinstance(subject, WorkPath):
        return subject
    return fs.judged(subject, written=tool.traits.effect == "write", may_ask=may_ask)


def spelling(fs: ScopedFs) -> Spell:
    """How the rules read a path: as requested and as it really is."""

    def spell(subject: object) -> tuple[str, ...]:
        return fs.spellings(subject) if isinstance(subject, WorkPath) else (str(subject),)

    return spell
