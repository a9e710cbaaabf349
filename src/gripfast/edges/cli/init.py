"""`gripfast init`: the configuration a client needs, printed or added to its file."""

from __future__ import annotations

import difflib
import shlex

import click

from gripfast.edges.cli.clients import CLIENTS, Client, Server, snippet
from gripfast.edges.cli.merge import AlreadyThere, merged
from gripfast.edges.cli.options import as_usage_errors
from gripfast.edges.cli.say import say
from gripfast.edges.profiles import PROFILES
from gripfast.errors import InvalidArgument
from gripfast.host.program.places import own_command
from gripfast.host.program.userfile import absolute, is_in_project, read_user_file, user_path, write_user_file


@click.command(short_help="Print or write the configuration of an MCP client.")
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    help="A directory the tools may use. Default: the client decides.",
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    metavar="NAME",
    help="Which tools to serve; `gripfast tools --cost` lists the profiles.",
)
@click.option(
    "--command",
    metavar="COMMAND",
    help="How the client starts gripfast. Default: `gripfast` in a file of the project, else where it is installed.",
)
@click.option("--http", "url", metavar="URL", help="A running server, instead of one that the client starts.")
@click.option("--token", metavar="TOKEN", help="The token of that server.")
@click.option("--name", default="gripfast", show_default=True, help="The name of the server in the client.")
@click.option("--file", "path", metavar="FILE", help="The file to use instead of the client's own.")
@click.option("--write", is_flag=True, help="Add it to the file, and change nothing else there.")
def init(
    client: str,
    roots: tuple[str, ...],
    profile: str | None,
    command: str | None,
    url: str | None,
    token: str | None,
    name: str,
    path: str | None,
    write: bool,
) -> None:
    """Print the configuration that CLIENT needs, or add it to the client's file.

    \b
    gripfast init claude
    gripfast init codex --write
    gripfast init opencode --command /opt/gripfast/bin/gripfast
    gripfast init cursor --http http://127.0.0.1:8765/mcp --token TOKEN
    """
    known = CLIENTS[client]
    place = path or known.file
    started = _started(command, place)
    entry = (
        known.over_http(url, token) if url else known.on_stdio([*started, *_serve(roots, profile or known.profile)])
    )
    if write:
        with as_usage_errors():
            _write(known, name, entry, place)
    else:
        say(f"# {place}", err=True)
        say(snippet(known, name, entry), nl=False)
    if write and url and token and is_in_project(place):
        say(f"{place} has your token now: don't commit it", err=True)
    if not url and command is None and started != own_command():
        say(
            f"{place} belongs to the project, so it starts `gripfast` without a path. Everybody who uses it needs "
            "gripfast on their PATH (for example with pipx); or say how it is started with --command",
            err=True,
        )


def _started(command: str | None, place: str) -> list[str]:
    """The words that start gripfast. A file that others also get has no path of this machine."""
    if command is None:
        return ["gripfast"] if is_in_project(place) else own_command()
    with as_usage_errors():
        words = shlex.split(command)
        if not words:
            raise InvalidArgument("--command is empty; name a program, for example --command gripfast")
    return words


def _serve(roots: tuple[str, ...], profile: str | None) -> list[str]:
    named = [word for root in roots for word in ("--root", absolute(root))]
    return ["serve", *named, *(["--profile", profile] if profile else [])]


def _write(client: Client, name: str, entry: Server, place: str) -> None:
    path = user_path(place)
    before = read_user_file(path)
    try:
        after = merged(before or "", client, name, entry)
    except AlreadyThere as there:
        if there.same:
            say(f"{path} already has this server; nothing to change", err=True)
            return
        raise click.ClickException(
            f"{path} already has a server named {name}; remove it, or choose another name with --name"
        ) from None
    except ValueError as fault:
        raise click.ClickException(f"{path} was not changed: {fault}") from None
    write_user_file(path, after)
    for line in difflib.unified_diff((before or "").splitlines(), after.splitlines(), path, path, lineterm=""):
        say(line)
    if client.notes:
        say(client.notes, err=True)
