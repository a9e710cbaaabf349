"""What the tests of the edges share: clients of a server in this process, and what they were answered."""

from __future__ import annotations

from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from holdfast.edges.mcp.desk import Desk
from holdfast.edges.mcp.server import server_of
from holdfast.edges.opening import Opening


def client_of(served: Desk | Opening, mode: Any, **options: Any) -> Client:
    return Client(server_of(served if isinstance(served, Desk) else Desk(served)), mode=mode, **options)


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))
