"""Cached outputs as MCP resources: `gripfast://output/ID`, whole or by lines."""

from __future__ import annotations

from urllib.parse import parse_qs, quote, urlsplit

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from gripfast.edges.mcp.results import contents_of
from gripfast.edges.mcp.sessions import ClientSession, FixedResource
from gripfast.errors import ToolError

WHOLE = 1 << 20
"""The largest output, in bytes, that is sent whole. Of a larger one only the first lines are sent."""
_PREFIX = "gripfast://output/"
_TEMPLATE = _PREFIX + "{id}{?offset,limit}"


def listed(client: ClientSession, fixed: dict[str, FixedResource]) -> ListResourcesResult:
    outputs = [
        Resource(uri=_PREFIX + id, name=f"{tool} {id}", title=f"Output of {tool}, {ref.line_count} lines",
                 mime_type="text/plain", size=ref.byte_size)
        for id, (tool, ref) in reversed(client.outputs.items())
    ]  # fmt: skip
    others = [Resource(uri=one.uri, name=one.name, mime_type=one.mime_type) for one in fixed.values()]
    return ListResourcesResult(resources=[*others, *outputs])


def templates() -> ListResourceTemplatesResult:
    lines = ResourceTemplate(
        uri_template=_TEMPLATE,
        name="output",
        title="Lines of a cached output",
        description="Tool output that was too long for its message. offset: lines to skip; limit: lines to return.",
        mime_type="text/plain",
    )
    return ListResourceTemplatesResult(resource_templates=[lines])


async def read(uri: str, client: ClientSession, fixed: dict[str, FixedResource]) -> ReadResourceResult:
    """Reads a resource. Raises MCPError if nothing has this URI."""
    if uri in fixed:
        one = fixed[uri]
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=one.text, mime_type=one.mime_type)])
    id, offset, limit = _parsed(uri)
    if client.session is None or id not in client.outputs:
        raise _unknown(uri)
    cache, (_, ref) = client.session.cache, client.outputs[id]
    try:
        if limit is None and ref.byte_size <= WHOLE:
            return ReadResourceResult(contents=[contents_of(uri, part) for part in await cache.parts(id)])
        window = await cache.window(id, offset, 2000 if limit is None else limit)
    except ToolError as error:
        raise MCPError(code=INVALID_PARAMS, message=error.message, data={"uri": uri}) from error
    text = "\n".join(line.text for line in window.lines)
    last = window.first + len(window.lines)
    if last < window.total:
        following = f"{_PREFIX}{quote(id)}?offset={last}"
        text += f"\n[lines {window.first + 1} to {last} of {window.total}; continue with {following}]"
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type="text/plain")])


def _parsed(uri: str) -> tuple[str, int, int | None]:
    if not uri.startswith(_PREFIX):
        raise _unknown(uri)
    parts = urlsplit(uri[len(_PREFIX) :])
    query = parse_qs(parts.query)
    try:
        offset, limit = int(query.get("offset", ["0"])[0]), query.get("limit")
        windowed = int(limit[0]) if limit else (2000 if "offset" in query else None)
    except ValueError:
        raise MCPError(code=INVALID_PARAMS, message="offset and limit must be integers", data={"uri": uri}) from None
    return parts.path, offset, windowed


def _unknown(uri: str) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=f"no such resource: {uri[:200]}", data={"uri": uri[:200]})
