"""Cached outputs as resources: `holdfast://output/ID`, and windows of them by line."""

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

from holdfast.edges.mcp.desk import FixedResource, Seat
from holdfast.edges.mcp.results import contents_of
from holdfast.errors import ToolError

WHOLE = 1 << 20
"""Bytes of an output that are sent as one resource; of a larger one, the first lines."""
_PREFIX = "holdfast://output/"
_TEMPLATE = _PREFIX + "{id}{?offset,limit}"


def listed(seat: Seat, fixed: dict[str, FixedResource]) -> ListResourcesResult:
    outputs = [
        Resource(uri=_PREFIX + id, name=f"{tool} {id}", title=f"Output of {tool}, {ref.line_count} lines",
                 mime_type="text/plain", size=ref.byte_size)
        for id, (tool, ref) in reversed(seat.outputs.items())
    ]  # fmt: skip
    others = [Resource(uri=one.uri, name=one.name, mime_type=one.mime_type) for one in fixed.values()]
    return ListResourcesResult(resources=[*others, *outputs])


def templates() -> ListResourceTemplatesResult:
    lines = ResourceTemplate(
        uri_template=_TEMPLATE,
        name="output",
        title="Lines of a cached output",
        description="Tool output that was too long for its message. offset: lines to skip; limit: lines to give.",
        mime_type="text/plain",
    )
    return ListResourceTemplatesResult(resource_templates=[lines])


async def read(uri: str, seat: Seat, fixed: dict[str, FixedResource]) -> ReadResourceResult:
    """Raises MCPError for what is not there."""
    if uri in fixed:
        one = fixed[uri]
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=one.text, mime_type=one.mime_type)])
    id, offset, limit = _asked(uri)
    if seat.session is None or id not in seat.outputs:
        raise _unknown(uri)
    cache, (_, ref) = seat.session.cache, seat.outputs[id]
    try:
        if limit is None and ref.byte_size <= WHOLE:
            return ReadResourceResult(contents=[contents_of(uri, part) for part in await cache.parts(id)])
        window = await cache.window(id, offset, 2000 if limit is None else limit)
    except ToolError as error:
        raise MCPError(code=INVALID_PARAMS, message=error.message, data={"uri": uri}) from error
    text = "\n".join(line.text for line in window.lines)
    last = window.first + len(window.lines)
    if last < window.total:
        text += (
            f"\n[lines {window.first + 1} to {last} of {window.total}; go on with {_PREFIX}{quote(id)}?offset={last}]"
        )
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type="text/plain")])


def _asked(uri: str) -> tuple[str, int, int | None]:
    if not uri.startswith(_PREFIX):
        raise _unknown(uri)
    parts = urlsplit(uri[len(_PREFIX) :])
    query = parse_qs(parts.query)
    try:
        offset, limit = int(query.get("offset", ["0"])[0]), query.get("limit")
        windowed = int(limit[0]) if limit else (2000 if "offset" in query else None)
    except ValueError:
        raise MCPError(code=INVALID_PARAMS, message="offset and limit are whole numbers", data={"uri": uri}) from None
    return parts.path, offset, windowed


def _unknown(uri: str) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=f"no such resource: {uri[:200]}", data={"uri": uri[:200]})
