"""`gripfast undo`: takes back what calls changed."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

import click

from gripfast.clock import utc_now
from gripfast.edges.cli.options import as_usage_errors
from gripfast.edges.cli.recorded import RecordPlace, record_options
from gripfast.edges.cli.say import say, say_json
from gripfast.errors import InvalidArgument
from gripfast.host.files.paths import WorkPath
from gripfast.host.record.undo import NothingToUndo, UndoResult
from gripfast.host.record.undo import undo as take_back

REFUSED = 3
_ON_ONE_LINE = 3  # paths
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@click.command(short_help="Take back what calls changed.")
@click.argument("calls", nargs=-1, type=int, metavar="[CALL]...")
@record_options
@click.option("--all", "every", is_flag=True, help="Every call of the session.")
@click.option("--since", metavar="TIME", help="Calls since a time (2026-01-31T12:00) or for a while (30m, 2h, 1d).")
@click.option("--path", "paths", multiple=True, metavar="P", help="Only this file or directory.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--save-mine", metavar="DIR", help="Copy what was changed since into DIR, then take it back as well.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def undo(
    calls: tuple[int, ...],
    place: RecordPlace,
    every: bool,
    since: str | None,
    paths: tuple[str, ...],
    dry_run: bool,
    save_mine: str | None,
    as_json: bool,
) -> None:
    """Take back what CALLs changed, by default the last one that changed something.

    A path is put back only if it is what the call left; one that was changed since is refused (exit code 3). So is a
    record that is not whole because the server was killed.
    All other paths are put back together or not at all. An undo is a call of the record and can be undone.

    \b
    gripfast undo --dry-run
    gripfast undo 12 13
    gripfast undo --since 30m --path src
    """
    with as_usage_errors():
        if bool(calls) + every + (since is not None) > 1:
            raise InvalidArgument("name calls, or give --all, or --since")
        places = [place.fs.real(WorkPath.parse(path)) for path in paths]
        start = None if since is None else _time(since)
        cut_off = place.is_cut_off()
        record = place.open()
        try:
            result = take_back(
                record,
                calls or None,
                places,
                since=start,
                all=every,
                dry_run=dry_run,
                save_mine=save_mine,
                by_person=True,
            )
        except NothingToUndo:
            result = UndoResult((), (), (), dry_run)
        finally:
            record.close()
    say_json(_as_json(result)) if as_json else _say(result, save_mine)
    sys.exit(REFUSED if result.refused or cut_off else 0)


def _time(text: str) -> float:
    if text[:-1].isdigit() and text[-1:] in _UNITS:
        return (utc_now() - timedelta(seconds=int(text[:-1]) * _UNITS[text[-1]])).timestamp()
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise InvalidArgument(f"--since {text!r} is not a time; write 2026-01-31T12:00, or 30m, 2h, 1d") from None


def _say(result: UndoResult, save_mine: str | None) -> None:
    if not result.calls:
        say("nothing to undo")
        return
    calls = f"call{'s' if len(result.calls) > 1 else ''} {', '.join(map(str, result.calls))}"
    named = [f"{done.path} ({done.what})" for done in result.restored]
    is_short = len(named) <= _ON_ONE_LINE
    paths = (", ".join(named) or "nothing") if is_short else f"{len(named)} paths"
    say(f"{'would take back' if result.dry_run else 'took back'} {calls}: {paths}")
    for name in () if is_short else named:
        say(f"  {name}")
    for path in result.saved:
        say(f"  {path}: somebody else's version {'would be' if result.dry_run else 'is'} saved in {save_mine}")
    for kept in result.kept:
        say(f"  {kept.path}: stays: {kept.reason}")
    for refused in result.refused:
        say(f"  {refused.path}: refused: {refused.reason}", err=True)
    if result.call is not None:
        say(f"to undo this: gripfast undo {result.call}")


def _as_json(result: UndoResult) -> dict[str, object]:
    return {
        "calls": list(result.calls),
        "restored": [{"path": done.path, "what": done.what} for done in result.restored],
        "refused": [{"path": refused.path, "reason": refused.reason} for refused in result.refused],
        "kept": [{"path": kept.path, "reason": kept.reason} for kept in result.kept],
        "saved": list(result.saved),
        "dry_run": result.dry_run,
        "call": result.call,
    }
