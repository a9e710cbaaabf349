"""The sessions of the older protocol: begun on this server, or begun on another and continued here.

The SDK's transport knows only sessions that began in it. One that began elsewhere is continued by beginning a new one
with what the client said then; from there on, ids are translated: the client keeps the one it was given.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, cast

import anyio
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gripfast.clock import monotonic
from gripfast.edges.mcp.session_names import BEGUN, SESSION_HEADER, BegunSession, key_of_mcp_session
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.mcp.sharing import Sharing
from gripfast.errors import Internal, ToolError

_HEADER = SESSION_HEADER.encode()
_CHECK_SECONDS = 2.0
"""How long a session that was found is not looked for again: within this, a session that another server ended may be
used here."""
_SMALL = 64 * 1024  # bytes of what a client says when it begins, and of a message that is passed on


class McpSessions:
    """The MCP sessions on this server. `app` is the SDK's."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions
        self._begun: OrderedDict[str, BegunSession] = OrderedDict()
        self._locks: dict[str, anyio.Lock] = {}
        self._trouble = "the shared store failed"
        if sessions.sharing is not None:
            sessions.sharing.deliver = self._deliver
            sessions.sharing.catch_up = self._store_all

    async def serve(self, owner: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request of an owner."""
        headers = dict(scope["headers"])
        version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        if version and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._app(scope, receive, send)
        elif _HEADER in headers:
            await self._serve_known(owner, headers[_HEADER].decode("latin-1"), scope, receive, send)
        else:
            await self._begin(owner, scope, receive, send)

    async def end_idle(self) -> None:
        """Ends the sessions that have been idle for too long, on this server. Runs until it is cancelled."""
        while (idle := self._sessions.idle) is not None:
            await anyio.sleep(min(idle / 4, 60))
            for begun in list(self._begun.values()):
                key = key_of_mcp_session(begun.id)
                if not self._sessions.is_connected(key) and monotonic() - begun.used > idle:
                    await self._drop(begun)

    async def end_all_of(self, owner: str) -> None:
        """Ends the sessions of an owner, for all servers."""
        for begun in [one for one in self._begun.values() if one.owner == owner]:
            await self._drop(begun)
            await self._end_everywhere(key_of_mcp_session(begun.id))

    # --- a new one ---

    async def _begin(self, owner: str, scope: Scope, receive: Receive, send: Send) -> None:
        said = bytearray()
        begun: BegunSession | None = None

        async def listen() -> Message:
            message = await receive()
            if message["type"] == "http.request" and len(said) <= _SMALL:
                said.extend(message.get("body", b""))
            return message

        async def tell(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and message["status"] < 300:
                id = dict(message["headers"]).get(_HEADER, b"").decode("latin-1")
                begun = await self._store(id, owner, bytes(said), scope) if id else None
                if begun is not None and self._must_wait(begun):
                    text = f"{self._trouble}, so no session can begin; try again\n"
                    await PlainTextResponse(text, 503, {"Retry-After": "2"})(scope, receive, send)
            if begun is None or not self._must_wait(begun):
                await send(message)

        await self._app(scope, listen, tell)
        if begun is not None and self._must_wait(begun):
            await self._drop(begun)
        elif begun is not None:
            await self._make_room(begun)

    def _must_wait(self, begun: BegunSession) -> bool:
        """Whether a session can't begin now: other servers would not know it."""
        sharing = self._sessions.sharing
        return sharing is not None and sharing.is_remote and not begun.is_stored

    async def _store(self, id: str, owner: str, said: bytes, scope: Scope) -> BegunSession:
        """Before its client knows it, other servers do."""
        now = monotonic()
        begun = BegunSession(id, id, owner, _hello_in(said), now, now, scope=_pattern_of(scope))
        self._begun[id] = begun
        await self._store_again(begun)
        return begun

    async def _store_again(self, begun: BegunSession) -> None:
        sharing = self._sessions.sharing
        if sharing is None or not begun.hello:
            return
        try:
            await sharing.begin(key_of_mcp_session(begun.id), begun.owner, begun.hello)
        except ToolError as fault:
            self._trouble = fault.message
            return  # it is known here; it is stored when the store is back
        begun.is_stored, begun.life, begun.checked = True, sharing.life, monotonic()

    async def _store_all(self) -> None:
        """Stores the sessions that began while the store was away."""
        for begun in [one for one in self._begun.values() if not one.is_stored]:
            await self._store_again(begun)

    async def _make_room(self, newest: BegunSession) -> None:
        """An owner with more sessions than their share loses the least recently used one on this server. There is
        always one: a session in use holds a request open, and the limit on requests is lower than the one on
        sessions."""
        own = [one for one in self._begun.values() if one.owner == newest.owner]
        unused = (
            one for one in own if one is not newest and not self._sessions.is_connected(key_of_mcp_session(one.id))
        )
        if len(own) > self._sessions.quotas.sessions and (oldest := next(unused, None)) is not None:
            await self._drop(oldest)

    async def _drop(self, begun: BegunSession) -> None:
        """Ends a session on this server."""
        self._begun.pop(begun.id, None)
        await self._send_own(begun, "DELETE", b"")
        await self._sessions.end(key_of_mcp_session(begun.id))

    # --- a known one ---

    async def _serve_known(self, owner: str, id: str, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            begun = await self._find(owner, id, scope)
        except ToolError as fault:
            text = f"{fault.message}, so it is not known whether this session exists; try again\n"
            await PlainTextResponse(text, 503, {"Retry-After": "2"})(scope, receive, send)
            return
        if begun is None:
            await _not_found()(scope, receive, send)
            return
        key = key_of_mcp_session(id)
        begun.used = monotonic()
        self._begun.move_to_end(id)
        with self._sessions.connected(key):
            if scope["method"] == "POST":
                body, receive = await _peeked(scope, receive)
                if body and await self._pass_on(key, body):
                    await Response(status_code=202)(scope, receive, send)
                    return
            status = await self._translated(begun, scope, receive, send)
        if scope["method"] == "DELETE" and 200 <= status < 300:
            self._begun.pop(id, None)
            await self._end_everywhere(key)

    async def _find(self, owner: str, id: str, scope: Scope) -> BegunSession | None:
        """The session, continued on this server if it began on another. None if its owner has no such session."""
        sharing, begun = self._sessions.sharing, self._begun.get(id)
        if begun is not None and begun.owner != owner:
            return None
        if sharing is None or (begun is not None and monotonic() - begun.checked < _CHECK_SECONDS):
            return begun
        if begun is not None:
            return await self._checked(sharing, begun)
        async with self._locks.setdefault(id, anyio.Lock()):
            try:
                return self._begun.get(id) or await self._continued(sharing, owner, id, scope)
            finally:
                self._locks.pop(id, None)

    async def _checked(self, sharing: Sharing, begun: BegunSession) -> BegunSession | None:
        """The session, if no other server has ended it. Without the store, this server goes on."""
        try:
            found = await sharing.find(key_of_mcp_session(begun.id))
            is_lost = found is None and (not begun.is_stored or await sharing.was_emptied(begun.life))
        except ToolError:
            return begun
        if is_lost:
            await self._store_again(begun)
        elif found is None:
            await self._drop(begun)
            return None
        begun.checked = monotonic()
        return begun

    async def _continued(self, sharing: Sharing, owner: str, id: str, scope: Scope) -> BegunSession | None:
        found = await sharing.find(key_of_mcp_session(id))
        if found is None and sharing.was_away:
            raise Internal("the shared store was away until now", retriable=True)
        if found is None or found.owner != owner:
            return None
        hello = _hello_in(b'{"method": "initialize", "params": %b}' % found.hello)
        if not hello:
            return None
        now = monotonic()
        begun = BegunSession(id, "", owner, hello, now, now, sharing.life, is_stored=True, scope=_pattern_of(scope))
        request = b'{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": %b}' % hello
        begun.local = await self._send_own(begun, "POST", request)
        if not begun.local:
            return None
        await self._send_own(begun, "POST", b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        self._begun[id] = begun
        await self._make_room(begun)
        return begun

    async def _end_everywhere(self, key: str) -> None:
        await self._sessions.end(key)
        sharing = self._sessions.sharing
        if sharing is not None:
            try:
                await sharing.ask(lambda: sharing.store.end(key))
            except ToolError:
                return  # it expires

    # --- messages that belong to a call on another server ---

    async def _pass_on(self, key: str, body: bytes) -> bool:
        """Sends an answer or a cancellation to the server that runs the session's call. False if that is this one."""
        sharing = self._sessions.sharing
        if sharing is None or self._sessions.is_running(key) or not _belongs_to_a_call(body):
            return False
        try:
            found = await sharing.find(key)
            if found is None or found.holder in ("", sharing.holder):
                return False
            await sharing.ask(lambda: sharing.store.send(key, body))
        except ToolError:
            return False
        return True

    async def _deliver(self, key: str, body: bytes) -> None:
        begun = next((one for one in self._begun.values() if key_of_mcp_session(one.id) == key), None)
        if begun is not None and len(body) <= _SMALL and _belongs_to_a_call(body):
            await self._send_own(begun, "POST", body)

    # --- requests to the SDK ---

    async def _translated(self, begun: BegunSession, scope: Scope, receive: Receive, send: Send) -> int:
        """Runs the SDK for one request, with the id that it knows. Returns the status of the response."""
        status = 0
        others = [(name, value) for name, value in scope["headers"] if name != _HEADER]
        headers = [*others, (_HEADER, begun.local.encode("latin-1"))]

        async def tell(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                kept = [(name, value) for name, value in message["headers"] if name.lower() != _HEADER]
                message = {**message, "headers": [*kept, (_HEADER, begun.id.encode("latin-1"))]}
            await send(message)

        await self._app({**scope, "headers": headers, BEGUN: begun}, receive, tell)
        return status

    async def _send_own(self, begun: BegunSession, method: str, body: bytes) -> str:
        """A request as the session's client would send it; the SDK has no other way to do this. Returns the id of the
        session that the response names."""
        named, is_sent = "", False

        async def receive() -> Message:
            nonlocal is_sent
            if is_sent:
                await anyio.sleep_forever()  # nobody goes away
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal named
            if message["type"] == "http.response.start" and message["status"] < 300:
                named = dict(message["headers"]).get(_HEADER, b"").decode("latin-1")

        headers = [*begun.scope["headers"], (b"content-length", b"%d" % len(body))]
        if begun.local:
            headers.append((_HEADER, begun.local.encode("latin-1")))
        await self._app({**begun.scope, "method": method, "headers": headers, BEGUN: begun}, receive, send)
        return named


def _pattern_of(scope: Scope) -> Scope:
    """What requests like this one have in common."""
    kept = [(name, value) for name, value in scope["headers"] if name in (b"host", b"origin")]
    kept += [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]
    return {name: value for name, value in scope.items() if name not in ("state", "extensions")} | {"headers": kept}


async def _peeked(scope: Scope, receive: Receive) -> tuple[bytes, Receive]:
    """The body of a small request, and how to receive it again; empty for one that is not small."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    if not length.isdigit() or int(length) > _SMALL:
        return b"", receive
    messages: list[Message] = []
    while not messages or messages[-1].get("more_body"):
        messages.append(await receive())
        if messages[-1]["type"] != "http.request":
            break
    body = b"".join(message.get("body", b"") for message in messages)
    left = iter(messages)

    async def again() -> Message:
        return next(left, None) or await receive()

    return body, again


def _belongs_to_a_call(body: bytes) -> bool:
    """Whether a message is an answer to a server's question, or the cancellation of a call."""
    if b'"method"' in body and b'"notifications/cancelled"' not in body:
        return False
    message = _object_in(body)
    return message.get("method") == "notifications/cancelled" or ("method" not in message and "id" in message)


def _hello_in(body: bytes) -> bytes:
    """The parameters of a request that begins a session, as JSON; empty for another request, or if too large."""
    message = _object_in(body) if len(body) <= _SMALL + 100 else {}
    params = message.get("params")
    if message.get("method") != "initialize" or not isinstance(params, dict):
        return b""
    return json.dumps(params, separators=(",", ":")).encode()


def _object_in(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _not_found() -> Response:
    """As the SDK answers for a session that it does not know."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Session not found"}}
    return Response(json.dumps(error), 404, media_type="application/json")
