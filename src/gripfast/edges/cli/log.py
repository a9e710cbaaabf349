"""`gripfast log`: the calls of a session, and what each changed."""

from __future__ import annotations

from datetime import UTC, datetime

import anyio
import click

from gripfast.edges.cli.options import as_usage_errors
from gripfast.edges.cli.recorded import RecordPlace, record_options
from gripfast.edges.cli.say import say, say_json
from gripfast.host.record.calls import PathDelta, RecordedCall

_POLL_SECONDS = 0.3
_ARGUMENTS = 100  # characters of the arguments on the line of a call


@click.command(short_help="Show what the calls of a session did.")
@record_options
@click.option("--follow", is_flag=True, help="Keep printing calls as they are made.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each call.")
def log(place: RecordPlace, follow: bool, as_json: bool) -> None:
    """Show the calls of a session: number, time, tool, arguments, and the paths each changed.

    \b
    gripfast log
    gripfast log --session fix --json | jq .changes
    """
    with as_usage_errors():
        shown = _show(place, as_json, after=0)
        place.is_cut_off()
        if follow:
            anyio.run(_follow, place, as_json, shown)


async def _follow(place: RecordPlace, as_json: bool, shown: int) -> None:
    while True:
        await anyio.sleep(_POLL_SECONDS)
        shown = _show(place, as_json, after=shown)


def _show(place: RecordPlace, as_json: bool, after: int) -> int:
    """Prints the calls after a number. Gives the last number that was printed."""
    calls, broken = place.calls()
    if broken and not after:
        say(f"{broken} lines of this record can't be read and are left out", err=True)
    for call in calls:
        if call.number > after and (call.ended or not after):
            say_json(call.to_json()) if as_json else _say_call(place, call)
            after = call.number
    return after


def _say_call(place: RecordPlace, call: RecordedCall) -> None:
    time = datetime.fromtimestamp(call.time, UTC).astimezone().strftime("%H:%M:%S")
    arguments = " ".join(call.arguments.split())[:_ARGUMENTS]
    ending = f" {call.error}" if call.error else "" if call.ended else " (did not end)"
    say(f"{call.number:4d} {time} {call.tool} {arguments}{ending}")
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
