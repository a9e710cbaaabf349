"""Serves many clients over streamable HTTP, each with its own session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import field
from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio
import uvicorn
from anyio import to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gripfast.clock import monotonic
from gripfast.edges.console.access import PATH as CONSOLE
from gripfast.edges.issuer import METADATA, Issuer
from gripfast.edges.mcp.connections import connections
from gripfast.edges.mcp.mcp_sessions import McpSessions
from gripfast.edges.mcp.metrics import PATH as METRICS
from gripfast.edges.mcp.metrics import Metrics, MetricsOnly
from gripfast.edges.mcp.people import TokenWatch
from gripfast.edges.mcp.quotas import MOST_REQUESTS, MOST_SESSIONS
from gripfast.edges.mcp.running import RunningCalls
from gripfast.edges.mcp.server import LARGEST_MESSAGE, server_of
from gripfast.edges.mcp.sessions import Sessions
from gripfast.errors import InvalidArgument, Unavailable
from gripfast.framework.context import LOGGER
from gripfast.host.kernel.limits import raise_descriptor_limit
from gripfast.host.program.ending import ending
from gripfast.host.program.net import Address, Listening
from gripfast.host.program.signals import endings
from gripfast.host.program.token_file import Token, TokenFile
from gripfast.host.shell.callers import Callers
from gripfast.records import dataclass
from gripfast.text.escape import escaped

if TYPE_CHECKING:
    from gripfast.edges.mcp.oauth import OAuth

PATH = "/mcp"
HEALTH, READY = "/healthz", "/readyz"
# Seconds that a cancelled request has to clean up.
GRACE = 3
FINISH_SECONDS = 10
"""How long running calls have to finish when the server is asked to end. What they do after that is cut short."""
CUT_SECONDS = 5
"""How long a call that is cut short has to stop and to be answered. A command has two seconds after SIGTERM."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call: tokens with their owners' names, and the exact Host and Origin values that are accepted."""

    address: Address
    tokens: Sequence[Token] = field(repr=False)
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()
    issuer: Issuer | None = None

    def __post_init__(self) -> None:
        if not self.tokens and self.issuer is None and not self.address.is_loopback:
            raise InvalidArgument(f"{self.address} can be reached from other machines, so a token is required")
        if self.address.is_everywhere and not self.hosts:
            raise InvalidArgument(
                f"{self.address} listens on every address of this machine: name the hosts that clients use, "
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


async def serve_http(
    sessions: Sessions,
    access: Access,
    listening: Listening,
    console: ASGIApp | None = None,
    token_file: TokenFile | None = None,
    metrics_at: tuple[Listening, Address] | None = None,
) -> None:
    """Serves until a signal asks the server to end. No process that a session started is left running. `console` is
    served beside the tools and checks for itself who may use it. `token_file` is read again when it changes.
    The metrics are also at `metrics_at`, without a token."""
    manager = StreamableHTTPSessionManager(
        server_of(sessions),
        security_settings=access.security,
        max_request_body_size=LARGEST_MESSAGE,
        session_idle_timeout=None,  # `McpSessions` ends those that are idle, and holds each client to its share
        max_sessions=MOST_SESSIONS + MOST_REQUESTS,
    )
    metrics = Metrics(sessions)
    sessions.observers.append(metrics)
    mcp = McpSessions(manager.handle_request, sessions)
    guard = TokenGuard(mcp, access, sessions, metrics, console)
    watch = None if token_file is None else TokenWatch(token_file)
    server = _server(guard)
    raise_descriptor_limit()
    sessions.quotas.divide_threads()
    try:
        async with anyio.create_task_group() as group, manager.run():
            group.start_soon(sessions.close_idle)
            group.start_soon(mcp.end_idle)
            if sessions.sharing is not None:
                group.start_soon(sessions.sharing.keep_up)
            group.start_soon(_end_on_signal, server, guard, sessions.running, watch)
            if watch is not None:
                group.start_soon(_keep_tokens, watch, guard)
            if metrics_at is not None:
                group.start_soon(_serve_metrics, metrics, *metrics_at)
            await server.serve(sockets=[listening])
            group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await sessions.close()
            if sessions.sharing is not None:
                await sessions.sharing.close()


async def _serve_metrics(metrics: Metrics, listening: Listening, address: Address) -> None:
    hosts = Access(address, ()).security.allowed_hosts if address.is_loopback else ()
    await _server(MetricsOnly(metrics, hosts)).serve(sockets=[listening])


def _server(app: ASGIApp) -> _HttpServer:
    config = uvicorn.Config(
        app,
        http=connections(),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=FINISH_SECONDS + CUT_SECONDS + GRACE,
        ws="none",
        proxy_headers=False,  # the console must know who really connects
    )
    return _HttpServer(config)


async def _keep_tokens(watch: TokenWatch, guard: TokenGuard) -> None:
    async for tokens in watch.changes():
        await guard.replace(tokens)


async def _end_on_signal(
    server: uvicorn.Server, guard: TokenGuard, running: RunningCalls, watch: TokenWatch | None
) -> None:
    """Nothing new is accepted, running calls may finish or are cut short, and then open streams are closed. A second
    signal cuts at once."""
    with endings(watch and watch.ask) as asked:
        await anext(asked)
        ending()
        guard.refuse_new()
        server.should_exit = True
        if running:
            calls = "1 running call has" if len(running) == 1 else f"{len(running)} running calls have"
            LOGGER.info("%s %d seconds to finish; another signal does not wait", calls, FINISH_SECONDS)
        async with anyio.create_task_group() as group:
            group.start_soon(_cut_on_signal, asked, running)
            await running.finished(FINISH_SECONDS)
            running.cut()
            await running.finished(CUT_SECONDS)
            await guard.drained(GRACE)
            group.cancel_scope.cancel()
    guard.close()


async def _cut_on_signal(asked: AsyncIterator[str], running: RunningCalls) -> None:
    await anext(asked)
    running.cut()


class _HttpServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Installs no uvicorn signal handlers: `_end_on_signal` waits for signals and ends the server cleanly."""
        yield


class Readiness:
    """Whether calls could be served. Looks once for all who ask at the same time: anybody may, and each look connects
    to the store."""

    def __init__(self, look: Callable[[], str | None]) -> None:
        self._look = look
        self._looking = anyio.Lock()
        self._began = 0.0
        self._fault: str | None = None

    async def fault(self) -> str | None:
        """What a look found that began after this was called."""
        asked = monotonic()
        async with self._looking:
            if self._began <= asked:
                self._began = monotonic()
                self._fault = await to_thread.run_sync(self._look)
            return self._fault


class TokenGuard:
    """Checks the token before any byte of the body is read, then the path, then passes the request on."""

    def __init__(
        self, mcp: McpSessions, access: Access, sessions: Sessions, metrics: Metrics, console: ASGIApp | None = None
    ) -> None:
        self._oauth = None if access.issuer is None else _oauth(access.issuer)
        self._mcp = mcp
        self._metrics = metrics
        self._console = console
        self._access = access
        self._sessions = sessions
        self._requests: dict[anyio.CancelScope, str] = {}
        self._hosts = frozenset(access.security.allowed_hosts)
        self._posts = 0
        self._is_ending = False
        self._readiness = Readiness(sessions.fault)
        self._callers = Callers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if self._is_ending:
            await _refuse(503, "this server is ending and did nothing with this; send it again", scope, receive, send)
            return
        response = _Response(send)
        is_post = scope["method"] == "POST"
        with anyio.CancelScope() as request:
            self._requests[request] = ""
            self._posts += is_post
            try:
                await self._check(request, scope, receive, response.send)
            finally:
                self._posts -= is_post
                del self._requests[request]
        if request.cancelled_caught:
            await response.finish()
        self._metrics.responded(response.status)

    def refuse_new(self) -> None:
        self._is_ending = True

    async def drained(self, seconds: float) -> None:
        """Waits until everything that was posted is answered, but not longer than so many seconds."""
        with anyio.move_on_after(seconds):
            while self._posts:
                await anyio.sleep(0.02)

    def close(self) -> None:
        """Cancels running requests; a client may otherwise keep its stream open forever."""
        self._is_ending = True
        for request in list(self._requests):
            request.cancel()

    async def replace(self, tokens: Sequence[Token]) -> None:
        """Takes new tokens instead of the old ones, and ends the sessions of those who lost one. If the new ones
        can't be used, the old ones stay."""
        try:
            gone = self._sessions.people.replace(tokens)
        except InvalidArgument as fault:
            LOGGER.error("the tokens stay as they were: %s", escaped(fault.message))
            return
        quotas = self._sessions.quotas
        quotas.divide(self._sessions.people.expected)
        quotas.divide_threads()
        for owner in gone:
            await self._forget(owner)
        LOGGER.info(
            "the token file was read again: %d people, ended the sessions of %s", quotas.clients, _names(gone)
        )

    async def _forget(self, owner: str) -> None:
        """Ends the requests and sessions of one owner."""
        for request, whose in list(self._requests.items()):
            if whose == owner:
                request.cancel()
        await self._mcp.end_all_of(owner)
        await self._sessions.end_all_of(owner)

    async def _check(self, request: anyio.CancelScope, scope: Scope, receive: Receive, send: Send) -> None:
        if self._console is not None and f"{scope['path']}/".startswith(f"{CONSOLE}/"):
            await self._console(scope, receive, send)
            return
        if scope["path"] in (HEALTH, READY):
            await self._tell_health(scope, receive, send)
            return
        if self._oauth is not None and scope["path"].startswith(METADATA):
            await self._oauth.metadata(self._oauth.at_root(scope), receive, send)
            return
        if await self._is_from_command(scope):
            await _refuse(403, "an agent's commands may not use this server", scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        owner = self._owner(headers) or await self._signed_in(headers, scope, receive, send)
        if owner is None:
            return
        if scope["path"] == METRICS and scope["method"] == "GET":
            await self._metrics.respond(scope, receive, send)
        elif scope["path"].rstrip("/") != PATH:
            await _refuse(404, f"the server is at {PATH}", scope, receive, send)
        else:
            self._requests[request] = owner
            scope["user"] = _user(owner)
            await self._admit(owner, scope, receive, send)

    async def _is_from_command(self, scope: Scope) -> bool:
        """Whether a command of an agent is the client, whatever token it has found: it could answer its own
        questions."""
        client, server = scope.get("client"), scope.get("server")
        if not client or not server:
            return False
        is_near = client[0] == server[0] or ip_address(client[0]).is_loopback
        return is_near and await to_thread.run_sync(self._callers.is_command, client, server)

    async def _signed_in(self, headers: dict[bytes, str], scope: Scope, receive: Receive, send: Send) -> str | None:
        """The owner of an access token. Refuses the request, and returns None, if there is no good one."""
        if self._oauth is None or b"authorization" not in headers:
            challenge = self._oauth.challenge() if self._oauth else "Bearer"
            text = "a token is required: send `Authorization: Bearer TOKEN`"
            return await _refuse(401, text, scope, receive, send, challenge)
        try:
            owner, may_call = await self._oauth.owner(scope)
        except Unavailable as fault:
            return await _refuse(503, fault.message, scope, receive, send)
        if owner is None:
            challenge = self._oauth.challenge("invalid_token")
            return await _refuse(
                401, "the token is not valid here, or is no longer valid", scope, receive, send, challenge
            )
        if not may_call:
            challenge = self._oauth.challenge("insufficient_scope")
            return await _refuse(403, "the token lacks a scope that is needed", scope, receive, send, challenge)
        return owner

    async def _tell_health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """For whoever watches the server: whether it runs, and whether it could serve a call now. Tells nothing else,
        because no token is asked for."""
        fault = await self._readiness.fault() if scope["path"] == READY else None
        known = {"ready": fault is None} | ({"reason": fault} if fault else {})
        answer = PlainTextResponse("ok\n") if scope["path"] == HEALTH else JSONResponse(known, 503 if fault else 200)
        await answer(scope, receive, send)

    async def _admit(self, owner: str, scope: Scope, receive: Receive, send: Send) -> None:
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if host not in self._hosts and not any(one.endswith(":*") for one in self._hosts):
            text = f"the Host header `{escaped(host[:200])}` is not accepted; --allow-host or --url allows it"
            await _refuse(421, text, scope, receive, send)
            return
        with self._sessions.quotas.request(owner) as has_room:
            if has_room:
                await self._mcp.serve(owner, scope, receive, send)
            else:
                limit = self._sessions.quotas.requests
                await _refuse(429, f"this client already has {limit} open requests, its limit", scope, receive, send)

    def _owner(self, headers: dict[bytes, str]) -> str | None:
        people = self._sessions.people
        if people.open_to_all:
            return "anyone"
        scheme, _, given = headers.get(b"authorization", "").partition(" ")
        return people.owner(given.strip()) if scheme.lower() == "bearer" else None


def _oauth(issuer: Issuer) -> OAuth:
    from gripfast.edges.mcp.oauth import OAuth  # noqa: PLC0415 - cryptography, which few servers need

    return OAuth(issuer)


def _user(owner: str) -> AuthenticatedUser:
    return AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))


def _names(owners: set[str]) -> str:
    return ", ".join(sorted(owners)) or "nobody"


_ENDED = "the server or this client's access to it ended while the request was served; a call in it may be half done"


class _Response:
    """Remembers how much of a response was sent, so that a cancelled request still ends as valid HTTP."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self._complete = False

    async def send(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        self._complete = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def finish(self) -> None:
        if not self.status:
            self.status = 503
            kind = [(b"content-type", b"text/plain; charset=utf-8")]
            await self._send({"type": "http.response.start", "status": 503, "headers": kind})
            await self._send({"type": "http.response.body", "body": f"{_ENDED}\n".encode()})
        elif not self._complete:
            await self._send({"type": "http.response.body", "body": b""})


async def _refuse(
    status: int, text: str, scope: Scope, receive: Receive, send: Send, challenge: str | None = None
) -> None:
    LOGGER.debug("%s %s was refused with %d: %s", scope["method"], escaped(scope["path"][:200]), status, text)
    headers = {} if challenge is None else {"WWW-Authenticate": challenge}
    await PlainTextResponse(f"{text}\n", status, headers)(scope, receive, send)
