"""A ToolMessage as an MCP result."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
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

# Gemini CLI takes a first text that is JSON for structured content, then refuses the result unless it is an object:
# https://github.com/google-gemini/gemini-cli/pull/27045. A command that prints a number would seem to have failed.
_PARSES_TEXT = "gemini-cli-mcp-client"
_NO_OBJECT = re.compile(r'\s*(?:[-"\[0-9]|true\b|false\b|null\b)')


def result_of(message: ToolMessage, tool: Tool | None, client: str = "") -> CallToolResult:
    """The result for a client of this name."""
    content = message.content
    blocks = [TextContent(text=content)] if isinstance(content, str) else [block_of(part) for part in content]
    structure = _structure(message, tool)
    if structure is None and client.startswith(_PARSES_TEXT) and _is_bare_json(blocks):
        blocks.insert(0, TextContent(text=""))
    ref = message.output_ref
    return CallToolResult(
        content=list[ContentBlock](blocks),
        is_error=message.is_error,
        structured_content=structure,
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


def _is_bare_json(blocks: Sequence[ContentBlock]) -> bool:
    """Whether the first text is JSON, and no object."""
    first = blocks[0] if blocks else None
    if not isinstance(first, TextContent) or not _NO_OBJECT.match(first.text):
        return False
    try:
        json.loads(first.text, parse_int=str)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


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
