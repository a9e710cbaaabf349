"""One MCP server over one Session: definitions out, calls in."""

from __future__ import annotations

import base64
import json
from importlib.metadata import version
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from mcp_types import Tool as McpTool

from holdfast.call.run import Session, run_call
from holdfast.messages import DocumentPart, ImagePart, Part, TextPart, ToolCall, ToolMessage


def server_of(session: Session) -> Server[Any]:
    listing = ListToolsResult(tools=[McpTool.model_validate(one) for one in session.definitions("mcp")])

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return listing

    async def call_tool(ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        call = ToolCall(str(ctx.request_id), params.name, params.arguments or {})
        return result_of(await run_call(session, call), session)

    return Server("holdfast", version=version("holdfast"), on_list_tools=list_tools, on_call_tool=call_tool)


def result_of(message: ToolMessage, session: Session) -> CallToolResult:
    content = message.content
    blocks = [TextContent(text=content)] if isinstance(content, str) else [_block(part) for part in content]
    return CallToolResult(
        content=list[ContentBlock](blocks),
        is_error=message.is_error,
        structured_content=_structure(message, session),
    )


def _structure(message: ToolMessage, session: Session) -> dict[str, Any] | None:
    tool = session.tools.get(message.name)
    if message.is_error or tool is None or tool.traits.output_schema is None:
        return None
    return json.loads(message.text)


def _block(part: Part) -> ContentBlock:
    match part:
        case TextPart(text):
            return TextContent(text=text)
        case ImagePart():
            return ImageContent(data=base64.b64encode(part.data).decode(), mime_type=part.media_type)
        case DocumentPart():
            blob = base64.b64encode(part.data).decode()
            uri = f"document:{part.name or 'document'}"
            return EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=blob, mime_type=part.media_type))
