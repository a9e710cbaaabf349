"""`holdfast serve`: the MCP server."""

from __future__ import annotations

import anyio
import click

from holdfast.edges.cli.options import root_option, with_option
from holdfast.edges.opening import opening


@click.command()
@root_option
@with_option
def serve(roots: tuple[str, ...], extra: tuple[str, ...]) -> None:
    """Serve the tools to an MCP client on standard input and output."""
    try:
        from holdfast.edges.mcp.desk import Desk  # noqa: PLC0415 - as above
        from holdfast.edges.mcp.stdio import serve_stdio  # noqa: PLC0415 - the extra `mcp`, and a heavy import
    except ModuleNotFoundError as missing:
        raise click.ClickException(f"{missing}; install the server with: pip install 'holdfast[mcp]'") from None
    anyio.run(serve_stdio, Desk(opening(roots, extra), ask_for_roots=True))
