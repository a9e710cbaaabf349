"""Serves many clients over streamable HTTP, each with a session of its own."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio
import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.edges.mcp.desk import SESSION_HEADER, Desk, session_caller
from holdfast.edges.mcp.server import LARGEST_MESSAGE, server_of
from holdfast.errors import InvalidArgument
from holdfast.host.net import Address, Listening
from holdfast.host.signals import wait_for_end

PATH = "/mcp"
IDLE = 30 * 60.0
MOST_SESSIONS = 1000
# Seconds for a request that was sent home to clean up after itself.
GRACE = 3


@dataclass(frozen=True, slots=True)
class Gate:
    """Who may come in: tokens with their owners' names, and the exact Host and Origin values that are taken."""

    address: Address
    tokens: Sequence[tuple[str, str]] = field(repr=False)
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.tokens and not self.address.is_loopback:
            raise InvalidArgument(f"{self.address} can be reached by others: a server there needs a token")
        if self.address.is_everywhere and not self.hosts:
            raise InvalidArgument(
                f"{self.address} is every address of this machine: say by which names it is called, "
                f"for example --allow-host build.example.org:{self.address.port}"
            )

    @property
    def security(self) -> TransportSecuritySettings:
        hosts = [*self._own_hosts(), *self.hosts]
        origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
        return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[*origins, *self.origins])

    def _own_hosts(self) -> list[str]:
        names = ["127.0.0.1", "localhost", "[::1]"] if self.address.is_loopback else []
        own = [] if self.address.is_everywhere else [str(self.address)]
        return list(dict.fromkeys([*own, *(f"{name}:{self.address.port}" for name in names)]))

    def owner(self, given: str) -> str | None:
        """Whose token this is. Every token is compared, in constant time."""
        found = [name for name, token in self.tokens if hmac.compare_digest(token.encode(), given.encode())]
        return found[0] if found else None


async def serve_http(desk: Desk, gate: Gate, listening: Listening) -> None:
    """Until a signal comes. Nothing a session started is left running."""
    manager = StreamableHTTPSessionManager(
        server_of(desk),
        security_settings=gate.security,
        max_request_body_size=LARGEST_MESSAGE,
        session_idle_timeout=desk.idle,
        max_sessions=MOST_SESSIONS,
    )
    door = Door(manager.handle_request, gate, desk)
    config = uvicorn.Config(
        door,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        ws="none",
    )
    server = _Server(config)
    try:
        async with anyio.create_task_group() as group, manager.run():
            group.start_soon(desk.sweep)
            group.start_soon(_end_on_signal, server, door)
            await server.serve(sockets=[listening])
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await desk.close()


async def _end_on_signal(server: uvicorn.Server, door: Door) -> None:
    await wait_for_end()
    server.should_exit = True
    door.close()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Ours are waited for beside the server: a signal is a clean end, not an exception."""
        yield


class Door:
    """What a request meets first: the token, before a byte of its body is read; then the path."""

    def __init__(self, inside: ASGIApp, gate: Gate, desk: Desk) -> None:
        self._inside = inside
        self._gate = gate
        self._desk = desk
        self._visits: set[anyio.CancelScope] = set()
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        reply = _Reply(send)
        with anyio.CancelScope() as visit:
            self._visits.add(visit)
            try:
                if self._closed:
                    visit.cancel()
                await self._enter(scope, receive, reply.send)
            finally:
                self._visits.discard(visit)
        if visit.cancelled_caught:
            await reply.break_off()

    def close(self) -> None:
        """Sends everyone home: a client may keep a stream open for as long as it lives."""
        self._closed = True
        for visit in list(self._visits):
            visit.cancel()

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        owner = self._owner(headers)
        if owner is None:
            await _refuse(401, "a token is needed: Authorization: Bearer TOKEN", scope, receive, send)
        elif scope["path"].rstrip("/") != PATH:
            await _refuse(404, f"the server is at {PATH}", scope, receive, send)
        else:
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))
            await self._let_in(headers.get(SESSION_HEADER.encode()), scope, receive, send)

    def _owner(self, headers: dict[bytes, str]) -> str | None:
        if not self._gate.tokens:
            return "anyone"
        scheme, _, given = headers.get(b"authorization", "").partition(" ")
        return self._gate.owner(given.strip()) if scheme.lower() == "bearer" else None

    async def _let_in(self, session: str | None, scope: Scope, receive: Receive, send: Send) -> None:
        if session is None:
            await self._inside(scope, receive, send)
            return
        caller = session_caller(session)
        with self._desk.attended(caller):
            status = await _watched(self._inside, scope, receive, send)
        if scope["method"] == "DELETE" and status is not None and status < 300:
            await self._desk.leave(caller)


class _Reply:
    """What was said to a client so far, so that it can be ended in good form."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._whole = False

    async def send(self, message: Message) -> None:
        self._begun = True
        self._whole = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def break_off(self) -> None:
        if not self._begun:
            await self._send({"type": "http.response.start", "status": 503, "headers": []})
        if not self._whole:
            await self._send({"type": "http.response.body", "body": b""})


async def _watched(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> int | None:
    status: int | None = None

    async def watch(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        await send(message)

    await app(scope, receive, watch)
    return status


async def _refuse(status: int, text: str, scope: Scope, receive: Receive, send: Send) -> None:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    await PlainTextResponse(f"{text}\n", status, headers)(scope, receive, send)


def quiet_logs() -> None:
    """The SDK tells every request it refuses at WARNING; a server's screen is for faults."""
    for name in ("mcp", "uvicorn"):
        logging.getLogger(name).setLevel(logging.ERROR)
