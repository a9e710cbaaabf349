"""`gripfast diff`: what calls changed, as a unified diff."""

from __future__ import annotations

import click

from gripfast.edges.cli.options import as_usage_errors
from gripfast.edges.cli.recorded import RecordPlace, record_options
from gripfast.edges.cli.say import say
from gripfast.errors import NotFound
from gripfast.host.files.paths import WorkPath
from gripfast.host.record.compare import compared
from gripfast.text.below import is_below


@click.command(short_help="Show what calls changed.")
@click.argument("calls", nargs=-1, type=int, metavar="[CALL]...")
@record_options
@click.option("--path", "paths", multiple=True, metavar="P", help="Only this file or directory.")
def diff(calls: tuple[int, ...], place: RecordPlace, paths: tuple[str, ...]) -> None:
    """Show what CALLs changed, by default all of the session. A path that was changed since by somebody else is shown
    as it is now, too.

    \b
    gripfast diff
    gripfast diff 12 --path src
    """
    with as_usage_errors():
        places = [place.fs.real(WorkPath.parse(path)) for path in paths]
        found, _ = place.calls()
        if missing := set(calls) - {call.number for call in found}:
            raise NotFound(f"there is no call {min(missing)} in this record; `gripfast log` lists them")
        chosen = [
            (call.number, change)
            for call in found
            if not calls or call.number in calls
            for change in call.changes
            if not places or any(is_below(change.path, wanted) for wanted in places)
        ]
        if not chosen:
            say("no call changed anything" if not (calls or paths) else "these calls changed nothing there", err=True)
        place.is_cut_off()
        record = place.open()
        try:
            for number, change in chosen:
                for row in compared(record, number, change):
                    say(row)
        finally:
            record.close()
