"""`gripfast init`: the configuration a client needs, printed or added to its file."""

from __future__ import annotations

import difflib

import click

from gripfast.edges.cli.clients import CLIENTS, Client, Server, snippet
from gripfast.edges.cli.merge import AlreadyThere, merged
from gripfast.edges.cli.options import as_usage_errors
from gripfast.edges.cli.say import say
from gripfast.edges.profiles import PROFILES
from gripfast.host.program.places import own_command
from gripfast.host.program.userfile import absolute, read_user_file, user_path, write_user_file


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
@click.option("--http", "url", metavar="URL", help="A running server, instead of one that the client starts.")
@click.option("--token", metavar="TOKEN", help="The token of that server.")
@click.option("--name", default="gripfast", show_default=True, help="The name of the server in the client.")
@click.option("--file", "path", metavar="FILE", help="The file to use instead of the client's own.")
@click.option("--write", is_flag=True, help="Add it to the file, and change nothing else there.")
def init(
    client: str,
    roots: tuple[str, ...],
    profile: str | None,
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
    gripfast init cursor --http http://127.0.0.1:8765/mcp --token TOKEN
    """
    known = CLIENTS[client]
    entry = known.over_http(url, token) if url else known.on_stdio(_command(roots, profile or known.profile))
    place = path or known.file
    if not write:
        say(f"# {place}", err=True)
        say(snippet(known, name, entry), nl=False)
        return
    with as_usage_errors():
        _write(known, name, entry, place)


def _command(roots: tuple[str, ...], profile: str | None) -> list[str]:
    named = [word for root in roots for word in ("--root", absolute(root))]
    return [*own_command(), "serve", *named, *(["--profile", profile] if profile else [])]


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
