"""`gripfast quarantine`: what commands made and other programs would run; look at it, put it back, delete it."""

from __future__ import annotations

from datetime import datetime

import click

from gripfast.edges.cli.say import say, say_json
from gripfast.errors import ToolError
from gripfast.host.shell.quarantine import Quarantined, discard, find_quarantined, quarantined, release, shown


@click.group(
    invoke_without_command=True, short_help="List, show or release what commands made that other programs would run."
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.pass_context
def quarantine(context: click.Context, as_json: bool) -> None:
    """List what was taken out of workspaces: names that other programs would run, made by a command.

    \b
    gripfast quarantine [list]          list it
    gripfast quarantine show ID         what it says
    gripfast quarantine release ID...   put it back where it was
    gripfast quarantine delete ID...    delete it
    """
    if context.invoked_subcommand is None:
        _list(as_json)


@quarantine.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_all(as_json: bool) -> None:
    """List everything; the same as without a command."""
    _list(as_json)


def _list(as_json: bool) -> None:
    items = quarantined()
    if as_json:
        say_json([{"id": item.id, "path": item.path, "reason": item.reason, "time": item.time} for item in items])
        return
    for item in items:
        say(f"{item.id}  {datetime.fromtimestamp(item.time):%Y-%m-%d %H:%M}  {item.path}  ({item.reason})")
    if not items:
        say("nothing is in quarantine")


@quarantine.command("show")
@click.argument("id")
def show_one(id: str) -> None:
    """Show what an item says, or which files it holds."""
    say(shown(_found(id)))


@quarantine.command("release")
@click.argument("ids", nargs=-1, required=True)
def release_some(ids: tuple[str, ...]) -> None:
    """Put items back where they were."""
    for id in ids:
        item = _found(id)
        try:
            release(item)
        except ToolError as fault:
            raise click.ClickException(fault.message) from None
        except OSError as fault:
            raise click.ClickException(f"{item.path} can't be put back: {fault.strerror}") from None
        say(f"released {item.path}")


@quarantine.command("delete")
@click.argument("ids", nargs=-1, required=True)
def delete_some(ids: tuple[str, ...]) -> None:
    """Delete items for good."""
    for id in ids:
        item = _found(id)
        discard(item)
        say(f"deleted {item.id} ({item.path})")


def _found(id: str) -> Quarantined:
    try:
        return find_quarantined(id)
    except ToolError as fault:
        raise click.ClickException(fault.message) from None
