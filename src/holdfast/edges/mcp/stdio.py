"""Serves one client on standard input and output."""

from __future__ import annotations

from collections.abc import Callable

from mcp.server.stdio import stdio_server

from holdfast.call.run import Session
from holdfast.edges.mcp.server import server_of


async def serve_stdio(open_session: Callable[[], Session]) -> None:
    async with open_session() as session:
        server = server_of(session)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
