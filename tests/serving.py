"""Shared by the tests of the edges: clients of a server in this process, and the answers they got."""

from __future__ import annotations

from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from gripfast.edges.mcp.server import server_of
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.settings import SessionSettings


def client_of(served: Sessions | SessionSettings, mode: Any, **options: Any) -> Client:
    return Client(server_of(served if isinstance(served, Sessions) else Sessions(served)), mode=mode, **options)


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))
