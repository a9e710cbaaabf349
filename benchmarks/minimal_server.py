"""The smallest server on the same SDK that reads a file, as a baseline for our own server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

ROOT = Path(sys.argv[1])
SCHEMA = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}


async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name="Read", description="Reads a file.", input_schema=SCHEMA)])


async def call_tool(_: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
    text = (ROOT / (params.arguments or {})["file_path"]).read_text(encoding="utf-8")
    return CallToolResult(content=[TextContent(text=text)])


async def main() -> None:
    server: Server[Any] = Server("minimal", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


anyio.run(main)
