"""Which session a request belongs to, and for how long that lasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Scope

from gripfast.edges.mcp.connections import CONNECTION, HttpConnection
from gripfast.records import dataclass

SESSION_HEADER = "mcp-session-id"
NAMED_HEADER = "gripfast-session"
NAMED_META = "gripfast/session"
OF_PROTOCOL, NAMED, OF_CONNECTION, ONE_CALL = "session ", "named ", "connection ", "call "
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")
"""Headers of a request that came through a proxy, whose connections are nobody's."""


def session_key(ctx: ServerRequestContext[Any]) -> str:
    """The key of the session a request belongs to. On stdio there is only one; in the older protocol the transport
    names it. In the newer one a client may name it, in the header `Gripfast-Session` or in `_meta`; otherwise it
    lasts as long as the connection, and behind a proxy as long as the call."""
    if ctx.request is None:
        return "stdio"
    request = ctx.request
    if SESSION_HEADER in request.headers and ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return key_of_mcp_session(mcp_session_of(ctx))
    named = request.headers.get(NAMED_HEADER) or _named_in_meta(ctx)
    if named:
        return f"{NAMED}{owner_of(ctx)!r} {named[:128]}"
    connection = connection_of(ctx)
    if connection is None or any(name in request.headers for name in _FORWARDED):
        return f"{ONE_CALL}{id(ctx)}"
    return f"{OF_CONNECTION}{owner_of(ctx)!r} {connection.number}"


def mcp_session_of(ctx: ServerRequestContext[Any]) -> str:
    """The id of the MCP session, as the client knows it; empty if it has none."""
    if ctx.request is None:
        return ""
    begun: BegunSession | None = ctx.request.scope.get(BEGUN)
    return begun.id if begun else ctx.request.headers.get(SESSION_HEADER, "")


def _named_in_meta(ctx: ServerRequestContext[Any]) -> str:
    meta = (ctx.params or {}).get("_meta")
    named: Any = cast("Mapping[str, Any]", meta).get(NAMED_META) if isinstance(meta, Mapping) else None
    return named if isinstance(named, str) else ""


def connection_of(ctx: ServerRequestContext[Any]) -> HttpConnection | None:
    """The connection that a request came over."""
    return None if ctx.request is None else ctx.request.scope.get("state", {}).get(CONNECTION)


def how_to_name(key: str) -> str | None:
    """For the first answer of a session that nobody named: how long it lasts, and how to name one."""
    if not key.startswith((OF_CONNECTION, ONE_CALL)):
        return None
    lasts = "this connection" if key.startswith(OF_CONNECTION) else "this call, because it came through a proxy"
    return (
        f"[this session lasts as long as {lasts}; to keep what was read and the todos, the client sends the header "
        f'Gripfast-Session or _meta["{NAMED_META}"] with a name of its own]'
    )


BEGUN = "gripfast_session"
"""Where a request's scope has the MCP session that it belongs to."""


@dataclass(slots=True)
class BegunSession:
    """An MCP session as its client knows it, and the id it has in this server's transport."""

    id: str
    local: str
    owner: str
    hello: bytes
    used: float
    checked: float
    life: int = 0
    is_stored: bool = False
    scope: Scope = field(default_factory=dict[str, Any])
    """A request of its client, to make others like it."""


def hello_of(ctx: ServerRequestContext[Any]) -> bytes:
    """The parameters of the request that began the MCP session."""
    begun: BegunSession | None = ctx.request.scope.get(BEGUN) if ctx.request is not None else None
    return begun.hello if begun else b""


def owner_of(ctx: ServerRequestContext[Any]) -> str:
    """The owner of the token in a request; empty on stdio, where there is only one client."""
    return "" if ctx.request is None else getattr(ctx.request.scope.get("user"), "username", "")


def key_of_mcp_session(id: str) -> str:
    return f"{OF_PROTOCOL}{id}"
