"""`gripfast log`: the calls of a session, and what each changed."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import UTC, datetime

import anyio
import click

from gripfast.edges.cli.options import as_usage_errors
from gripfast.edges.cli.recorded import RecordPlace, record_options, say_only_here
from gripfast.edges.cli.say import say, say_json
from gripfast.edges.cli.store import store_option
from gripfast.errors import Internal
from gripfast.host.record.calls import PathDelta
from gripfast.host.record.elsewhere import SessionCall

_POLL_SECONDS = 0.3
_POLL_STORE_SECONDS = 1.0
_ARGUMENTS = 100  # characters of the arguments on the line of a call


@click.command(short_help="Show what the calls of a session did.")
@record_options
@store_option
@click.option("--follow", is_flag=True, help="Keep printing calls as they are made.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each call.")
def log(place: RecordPlace, follow: bool, as_json: bool) -> None:
    """Show the calls of a session: number, time, tool, arguments, and the paths each changed. With a shared store,
    also those on other servers, as NUMBER@SERVER.

    \b
    gripfast log
    gripfast log --session fix --json | jq .changes
    """
    with as_usage_errors():
        shown: set[str] = set()
        try:
            _show(place, as_json, shown)
        except Internal as fault:
            say_only_here(fault)
            _show(replace(place, shared=None), as_json, shown)
        place.is_cut_off()
        if follow:
            anyio.run(_follow, place, as_json, shown)


async def _follow(place: RecordPlace, as_json: bool, shown: set[str]) -> None:
    while True:
        await anyio.sleep(_POLL_SECONDS if place.shared is None else _POLL_STORE_SECONDS)
        with contextlib.suppress(Internal):  # the store is away
            _show(place, as_json, shown)


def _show(place: RecordPlace, as_json: bool, shown: set[str]) -> None:
    """Prints the calls that were not shown yet, and remembers them."""
    is_first = not shown
    calls, broken = place.calls_everywhere()
    if broken and is_first:
        say(f"{broken} lines of this record can't be read and are left out", err=True)
    for one in calls:
        if one.key not in shown and (one.call.ended or is_first):
            say_json(one.to_json()) if as_json else _say_call(place, one)
            shown.add(one.key)


def _say_call(place: RecordPlace, one: SessionCall) -> None:
    call = one.call
    time = datetime.fromtimestamp(call.time, UTC).astimezone().strftime("%H:%M:%S")
    arguments = " ".join(call.arguments.split())[:_ARGUMENTS]
    ending = f" {call.error}" if call.error else "" if call.ended else " (did not end)"
    say(f"{one.key:>4} {time} {call.tool} {arguments}{ending}")
    for change in call.changes:
        say(f"       {sign_of(change)} {place.shown(change.path)}{_remark(change)}")
    for path in call.uncovered:
        say(f"       ! not covered: {path}")


def sign_of(change: PathDelta) -> str:
    """`+` for a new path, `-` for one that is gone, `~` for one that changed."""
    if change.before.kind == "absent":
        return "+"
    return "-" if change.after.kind == "absent" else "~"


def _remark(change: PathDelta) -> str:
    return " (or another command that ran at the same time)" if change.shared else ""
