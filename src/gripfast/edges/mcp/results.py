"""A ToolMessage as an MCP result."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from mcp_types import (
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from gripfast.framework.definition import Tool
from gripfast.messages import DocumentPart, ImagePart, Part, TextPart, ToolMessage


def result_of(message: ToolMessage, tool: Tool | None) -> CallToolResult:
    content = message.content
    blocks = [TextContent(text=content)] if isinstance(content, str) else [block_of(part) for part in content]
    ref = message.output_ref
    return CallToolResult(
        content=list[ContentBlock](blocks),
        is_error=message.is_error,
        structured_content=_structure(message, tool),
        _meta={"gripfast/output_ref": {"id": ref.id, "bytes": ref.byte_size, "lines": ref.line_count}}
        if ref
        else None,
    )


def failure(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def _structure(message: ToolMessage, tool: Tool | None) -> dict[str, Any] | None:
    """The structured content: the protocol requires it for a tool with an output schema, and only there."""
    if message.is_error or tool is None or tool.traits.output_schema is None:
        return None
    content = message.content
    first = content if isinstance(content, str) else next(part.text for part in content if isinstance(part, TextPart))
    return json.JSONDecoder().raw_decode(first)[0]  # notes may follow it


def block_of(part: Part) -> ContentBlock:
    match part:
        case TextPart(text):
            return TextContent(text=text)
        case ImagePart():
            return ImageContent(data=b64encode(part.data).decode(), mime_type=part.media_type)
        case DocumentPart():
            return EmbeddedResource(resource=contents_of(f"document:///{part.name or 'document'}", part))


def contents_of(uri: str, part: Part) -> TextResourceContents | BlobResourceContents:
    match part:
        case TextPart(text):
            return TextResourceContents(uri=uri, text=text, mime_type="text/plain")
        case DocumentPart() if part.media_type.startswith("text/"):
            return TextResourceContents(uri=uri, text=part.data.decode("utf-8", "replace"), mime_type=part.media_type)
        case _:
            return BlobResourceContents(uri=uri, blob=b64encode(part.data).decode(), mime_type=part.media_type)
