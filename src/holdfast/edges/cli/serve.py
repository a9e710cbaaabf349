"""`holdfast serve`: the MCP server."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import anyio
import click

from holdfast.edges.cli.clients import pasted
from holdfast.edges.cli.loading import loading
from holdfast.edges.cli.options import Opening, opening_options, told_as_usage
from holdfast.edges.profiles import price
from holdfast.host.net import Address, listen, parse_address
from holdfast.host.process import hide_process
from holdfast.host.secrets import http_token, read_tokens

if TYPE_CHECKING:
    from holdfast.edges.mcp.http import Gate

_ON_A_TERMINAL = """\
serving one MCP client on standard input and output, which is this terminal; Ctrl-C ends it
  to let a client start this itself:  holdfast init claude
  to serve over HTTP:                 holdfast serve --http 127.0.0.1:8765"""


@click.command(short_help="Serve the tools over MCP, on stdio or HTTP.")
@opening_options
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over HTTP instead; port 0 is any free one.")
@click.option("--token-file", metavar="FILE", help="Tokens to take over HTTP, a line each: TOKEN or NAME TOKEN.")
@click.option("--new-token", is_flag=True, help="Make a new token of your own; the old one is good no longer.")
@click.option("--no-token", is_flag=True, help="Take anyone over HTTP. On loopback only.")
@click.option("--allow-host", "hosts", multiple=True, metavar="HOST:PORT", help="A Host header to take over HTTP.")
@click.option("--allow-origin", "origins", multiple=True, metavar="URL", help="An Origin header to take over HTTP.")
@click.option("--else-any-port", is_flag=True, hidden=True)
@click.option("--idle-minutes", default=30.0, show_default=True, help="Close an HTTP session unused this long.")
def serve(opened: Opening, address: str | None, idle_minutes: float, **door: Any) -> None:
    """Serve the tools to MCP clients: one on standard input and output, or many over HTTP.

    \b
    holdfast serve                                   the client's roots, else this directory
    holdfast serve --root ~/code/app --profile agent
    holdfast serve --http 127.0.0.1:8765             with a token; prints what to paste into a client
    """
    hide_process()
    if address is None:
        _on_stdio(opened)
    else:
        _over_http(opened, address, idle_minutes * 60, **door)


def _on_stdio(opened: Opening) -> None:
    _need_sdk()
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - started without one
        raise click.ClickException("standard input or output is closed; the client speaks over both, or use --http")
    if sys.stdin.isatty():
        click.echo(_ON_A_TERMINAL, err=True)
    from holdfast.edges.mcp.desk import Desk  # noqa: PLC0415 - the extra `mcp`, and a heavy import
    from holdfast.edges.mcp.stdio import serve_stdio  # noqa: PLC0415 - the same

    anyio.run(serve_stdio, Desk(opened, ask_for_roots=True))


def _need_sdk() -> None:
    try:
        with loading():
            importlib.import_module("holdfast.edges.mcp.server")
    except ModuleNotFoundError as missing:
        raise click.ClickException(f"{missing}; install the server with: pip install 'holdfast[mcp]'") from None


def _over_http(
    opened: Opening,
    address: str,
    idle: float,
    token_file: str | None,
    new_token: bool,
    no_token: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    else_any_port: bool,
) -> None:
    _need_sdk()
    from holdfast.edges.mcp.desk import Desk  # noqa: PLC0415 - the extra `mcp`, and a heavy import
    from holdfast.edges.mcp.http import Gate, quiet_logs, serve_http  # noqa: PLC0415 - the same

    with told_as_usage():
        wanted = parse_address(address)
        tokens, kept_in = _tokens(token_file, new=new_token, none=no_token)
        Gate(wanted, tokens, hosts, origins)
        root = opened.place()
        listening, got = listen(wanted, else_any_port=else_any_port)
        gate = Gate(got, tokens, hosts, origins)
    quiet_logs()
    if wanted.port not in (0, got.port):
        click.echo(f"{wanted} is taken, so another port serves", err=True)
    click.echo(_screen(opened, gate, root, kept_in), err=True)
    anyio.run(serve_http, Desk(opened, idle=idle), gate, listening)
    click.echo("ended", err=True)


def _tokens(file: str | None, *, new: bool, none: bool) -> tuple[list[tuple[str, str]], str]:
    if none:
        return [], ""
    if file is not None:
        return read_tokens(file), file
    token, path = http_token(new=new)
    return [("you", token)], str(path)


def _screen(opened: Opening, gate: Gate, root: str, kept_in: str) -> str:
    """Everything somebody needs who has just started it, on one screen."""
    url = f"http://{_called(gate)}/mcp"
    token = gate.tokens[0][1] if len(gate.tokens) == 1 else None
    names = ", ".join(tool.name for tool in opened.tools)
    lines = [
        f"holdfast serves {len(opened.tools)} tools at {url}",
        f"  tools  {names} (about {price(opened.tools)} tokens)",
        f"  root   {root}",
        f"  token  {_said(gate, token, kept_in)}",
        "",
        *pasted(url, token),
        "",
        "Ctrl-C ends it, with everything it started.",
    ]
    return "\n".join(lines)


def _called(gate: Gate) -> str | Address:
    return gate.hosts[0] if gate.address.is_everywhere else gate.address


def _said(gate: Gate, token: str | None, kept_in: str) -> str:
    if not gate.tokens:
        return "none: any program on this machine may call"
    return f"{token}  (in {kept_in})" if token else f"{len(gate.tokens)} of them, in {kept_in}"
