"""`holdfast init`: the lines a client wants, printed or put into its file."""

from __future__ import annotations

import difflib

import click

from holdfast.edges.cli.clients import CLIENTS, Client, Server, snippet
from holdfast.edges.cli.merge import AlreadyThere, merged
from holdfast.edges.cli.options import told_as_usage
from holdfast.edges.profiles import PROFILES
from holdfast.host.places import own_command
from holdfast.host.userfile import absolute, read_user_file, user_path, write_user_file


@click.command()
@click.argument("client", type=click.Choice(list(CLIENTS)))
@click.option("--root", "roots", multiple=True, metavar="DIR", help="A root to name. Default: the client says which.")
@click.option(
    "--profile", type=click.Choice(list(PROFILES)), metavar="NAME", help="Which tools; see `holdfast tools --cost`."
)
@click.option("--http", "url", metavar="URL", help="A server that runs elsewhere, instead of one the client starts.")
@click.option("--token", metavar="TOKEN", help="Its token.")
@click.option("--name", default="holdfast", show_default=True, help="What the client calls the server.")
@click.option("--file", "path", metavar="FILE", help="Another file than the client's usual one.")
@click.option("--write", is_flag=True, help="Put it into the file, without changing anything else there.")
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
    """Print what CLIENT wants in its configuration, or put it there.

    \b
    holdfast init claude
    holdfast init codex --write
    holdfast init cursor --http http://127.0.0.1:8765/mcp --token TOKEN
    """
    known = CLIENTS[client]
    entry = known.over_http(url, token) if url else known.on_stdio(_command(roots, profile))
    place = path or known.file
    if not write:
        click.echo(f"# {place}", err=True)
        click.echo(snippet(known, name, entry), nl=False)
        return
    with told_as_usage():
        _write(known, name, entry, place)


def _command(roots: tuple[str, ...], profile: str | None) -> list[str]:
    named = [word for root in roots for word in ("--root", absolute(root))]
    return [*own_command(), "serve", *named, *(["--profile", profile] if profile else [])]


def _write(client: Client, name: str, entry: Server, place: str) -> None:
    path = user_path(place)
    before = read_user_file(path)
    try:
        after = merged(before or "", client, name, entry)
    except AlreadyThere:
        raise click.ClickException(f"{path} already has a server named {name}; remove it or give --name") from None
    except ValueError as fault:
        raise click.ClickException(f"{path} is left as it is: {fault}") from None
    write_user_file(path, after)
    for line in difflib.unified_diff((before or "").splitlines(), after.splitlines(), path, path, lineterm=""):
        click.echo(line)
    if client.notes:
        click.echo(client.notes, err=True)
