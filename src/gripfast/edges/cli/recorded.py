"""Which record a command is about: a session of this workspace, by default the newest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import click

from gripfast.builtin.config import load_config
from gripfast.edges.cli.options import as_usage_errors
from gripfast.edges.cli.say import say
from gripfast.edges.cli.store import chosen_store
from gripfast.edges.settings import SessionSettings
from gripfast.errors import Internal, InvalidArgument, NotFound
from gripfast.host.files.fs import ScopedFs
from gripfast.host.record.calls import RecordedCall, read_calls
from gripfast.host.record.elsewhere import SessionCall, calls_everywhere
from gripfast.host.record.record import Record
from gripfast.host.record.shelf import RecordOptions, last_used, session_directory, sessions_of, was_cut_off
from gripfast.host.stores.redis_sessions import RedisSessions
from gripfast.host.stores.sessions import Recorded, SessionStore
from gripfast.records import dataclass
from gripfast.text.near import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """The record of one session. `shared` is where other servers report their calls in it."""

    fs: ScopedFs
    session: str
    options: RecordOptions
    shared: SessionStore | None = None

    def calls(self) -> tuple[list[RecordedCall], int]:
        return read_calls(session_directory(self.fs.roots[0], self.session) / "calls.jsonl")

    def calls_everywhere(self) -> tuple[list[SessionCall], int]:
        """The calls of the session, also those on other servers; and how many lines can't be read. Raises ToolError
        if the store does not answer."""
        own, broken = self.calls()
        lines = self.shared.lines(self.session) if self.shared is not None else []
        calls, foreign = calls_everywhere(own, lines)
        return calls, broken + foreign

    def is_cut_off(self) -> bool:
        """Whether the record lacks what the last commands changed; says so."""
        cut_off = was_cut_off(session_directory(self.fs.roots[0], self.session))
        if cut_off:
            say("the server was killed while commands ran: what they changed at the end is not recorded", err=True)
        return cut_off

    def shown(self, path: str) -> str:
        return self.fs.show_real(path)

    def open(self) -> Record:
        return Record(self.fs, self.session, self.options)


def record_options(function: F) -> F:
    """Adds --root, --config and --session; the command gets them as one `place` argument. A command that has --store,
    too, is about sessions on all servers."""

    def gathered(
        *args: Any,
        roots: tuple[str, ...],
        config_file: str | None,
        name: str | None,
        store: str | Literal[False] | None = False,
        **rest: Any,
    ) -> Any:
        with as_usage_errors():
            url = None if store is False else chosen_store(config_file, store)
            place = find_record(SessionSettings(roots, config_file=config_file), name, url)
        return function(*args, place=place, **rest)

    gathered.__name__, gathered.__doc__ = function.__name__, function.__doc__
    gathered.__click_params__ = getattr(function, "__click_params__", [])  # pyright: ignore[reportFunctionMemberAccess] - click keeps options there
    click.option("--config", "config_file", metavar="FILE", help="Your configuration.")(gathered)
    click.option("--session", "name", metavar="S", help="Which session; default: the newest of this workspace.")(
        gathered
    )
    click.option(
        "--root", "roots", multiple=True, metavar="DIR", help="The workspace; default: the current directory."
    )(gathered)
    return gathered  # pyright: ignore[reportReturnType] - a decorator that changes keywords


def find_record(settings: SessionSettings, name: str | None, store: str | None = None) -> RecordPlace:
    """Raises NotFound if there is no such record, neither here nor in the store."""
    fs = settings.files()
    options = load_config(settings.config_file).record or RecordOptions()
    shared, there = (None, list[Recorded]()) if store is None else _elsewhere(store)
    known = _sessions(fs.roots[0], there)
    if not known:
        raise NotFound(f"nothing is recorded for {fs.roots[0]}; was it moved, or `[record] on = false`?")
    if name is None:
        return RecordPlace(fs, known[-1], options, shared)
    found = [session for session in known if session == name or session.startswith(name)]
    if name in found or len(found) == 1:
        return RecordPlace(fs, name if name in found else found[0], options, shared)
    if found:
        raise InvalidArgument(f"{name!r} is the beginning of several sessions: {', '.join(found)}")
    raise NotFound(f"no session {name!r} is recorded here; {did_you_mean(name, known)}")


def _elsewhere(store: str) -> tuple[SessionStore | None, list[Recorded]]:
    """The store and the sessions of which it knows; neither, and a word about it, if it does not answer."""
    shared = RedisSessions(store)
    try:
        return shared, shared.recorded()
    except Internal as fault:
        say_only_here(fault)
        return None, []


def say_only_here(fault: Internal) -> None:
    """Says that the store failed, and what is shown nevertheless."""
    say(f"{fault.message}; only what was recorded on this machine is shown", err=True)


def _sessions(root: str, there: Sequence[Recorded]) -> list[str]:
    """The sessions of a workspace, here and on other servers, the newest last."""
    here = {session: last_used(session_directory(root, session)) for session in sessions_of(root)}
    for one in there:
        if one.root == root:
            here[one.session] = max(one.used, here.get(one.session, 0.0))
    return sorted(here, key=lambda session: here[session])
