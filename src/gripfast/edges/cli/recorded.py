"""Which record a command is about: a session of this workspace, by default the newest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from gripfast.builtin.config import load_config
from gripfast.edges.cli.options import as_usage_errors
from gripfast.edges.cli.say import say
from gripfast.edges.settings import SessionSettings
from gripfast.errors import InvalidArgument, NotFound
from gripfast.host.files.fs import ScopedFs
from gripfast.host.record.calls import RecordedCall, read_calls
from gripfast.host.record.record import Record
from gripfast.host.record.shelf import RecordOptions, session_directory, sessions_of, was_cut_off
from gripfast.text.near import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """The record of one session."""

    fs: ScopedFs
    session: str
    options: RecordOptions

    def calls(self) -> tuple[list[RecordedCall], int]:
        return read_calls(session_directory(self.fs.roots[0], self.session) / "calls.jsonl")

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
    """Adds --root, --config and --session; the command gets them as one `place` argument."""

    def gathered(*args: Any, roots: tuple[str, ...], config_file: str | None, name: str | None, **rest: Any) -> Any:
        with as_usage_errors():
            place = find_record(SessionSettings(roots, config_file=config_file), name)
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


def find_record(settings: SessionSettings, name: str | None) -> RecordPlace:
    """Raises NotFound if there is no such record."""
    fs = settings.files()
    options = load_config(settings.config_file).record or RecordOptions()
    known = sessions_of(fs.roots[0])
    if not known:
        raise NotFound(f"nothing is recorded for {fs.roots[0]}; was it moved, or `[record] on = false`?")
    if name is None:
        return RecordPlace(fs, known[-1], options)
    found = [session for session in known if session == name or session.startswith(name)]
    if name in found or len(found) == 1:
        return RecordPlace(fs, name if name in found else found[0], options)
    if found:
        raise InvalidArgument(f"{name!r} is the beginning of several sessions: {', '.join(found)}")
    raise NotFound(f"no session {name!r} is recorded here; {did_you_mean(name, known)}")
