"""Who has which Session: one for a stdio client, one for each MCP session over HTTP."""

from __future__ import annotations

import logging
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from holdfast.builtin.keys import PERSON
from holdfast.builtin.state import State
from holdfast.call.run import Session
from holdfast.edges.mcp.ask import AtClient, ask_by_form
from holdfast.edges.mcp.visit import Rounds, ToClient, Visit
from holdfast.edges.opening import Opening
from holdfast.errors import Internal
from holdfast.messages import OutputRef, ToolMessage

SHELF = 500
"""Cached outputs of one session that are listed as resources; the newest stay."""


@dataclass(frozen=True, slots=True)
class FixedResource:
    """A text that is served as a resource beside the cached outputs."""

    uri: str
    name: str
    text: str
    mime_type: str = "text/plain"


@dataclass(slots=True)
class Seat:
    """A caller's Session, and what the edge remembers for it."""

    opening: anyio.Lock = field(default_factory=anyio.Lock)
    session: Session | None = None
    state: State | None = None
    outputs: OrderedDict[str, tuple[str, OutputRef]] = field(default_factory=OrderedDict[str, tuple[str, OutputRef]])
    users: int = 0
    left_at: float = 0.0
    moved: bool = False

    def remember(self, message: ToolMessage) -> None:
        if message.output_ref is not None:
            self.outputs[message.output_ref.id] = (message.name, message.output_ref)
            while len(self.outputs) > SHELF:
                self.outputs.popitem(last=False)

    async def close(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.close()


class Desk:
    """Opens sessions for callers, keeps them while they are used, closes them after."""

    def __init__(
        self,
        opening: Opening,
        *,
        ask_for_roots: bool = False,
        idle: float | None = None,
        most: int = 1000,
        resources: Sequence[FixedResource] = (),
    ) -> None:
        self.opening = opening
        self.resources = {resource.uri: resource for resource in resources}
        self.rounds = Rounds()
        self._ask_for_roots = ask_for_roots
        self.idle = idle
        self._attended: Counter[str] = Counter()
        self._most = most
        self._seats: dict[str, Seat] = {}

    @asynccontextmanager
    async def seat(self, visit: Visit) -> AsyncGenerator[tuple[Seat, Session]]:
        """The caller's seat with its Session open. Raises ToolError if none can be opened."""
        seat = self._taken(caller_of(visit.ctx))
        seat.users += 1
        try:
            session = seat.session
            if session is None or seat.moved or seat.opening.locked():
                session = await self._opened(seat, visit)
            yield seat, session
        finally:
            seat.users -= 1
            seat.left_at = time.monotonic()

    async def _opened(self, seat: Seat, visit: Visit) -> Session:
        async with seat.opening:
            if seat.session is None or (seat.moved and seat.users == 1):
                await self._open(seat, visit)
            assert seat.session is not None
            return seat.session

    def look(self, ctx: ServerRequestContext[Any]) -> Seat:
        """The caller's seat as it is: its session may not be open."""
        return self._seats.get(caller_of(ctx)) or Seat()

    def _taken(self, caller: str) -> Seat:
        seat = self._seats.get(caller)
        if seat is None:
            if len(self._seats) >= self._most:
                raise Internal(f"{self._most} sessions are open, which is the limit; end one or try later")
            seat = self._seats[caller] = Seat()
        return seat

    async def _open(self, seat: Seat, visit: Visit) -> None:
        roots = [place for uri in await self._roots(visit) if (place := place_of(uri))]
        await seat.close()
        seat.moved = False
        logger = logging.Logger("holdfast.client", logging.INFO)
        logger.parent = logging.getLogger("holdfast")
        logger.addHandler(ToClient())
        seat.session, seat.state = self.opening.session(
            roots,
            ask=ask_by_form,
            overrides={PERSON.id: AtClient},
            kept=seat.state.dump() if seat.state else None,
            logger=logger,
        )

    async def _roots(self, visit: Visit) -> list[str]:
        if self.opening.roots or not self._ask_for_roots:
            return []
        return await visit.roots()

    def roots_changed(self) -> None:
        """The client has other roots now: its session is opened anew before the next call."""
        if self._ask_for_roots and not self.opening.roots:
            for seat in self._seats.values():
                seat.moved = True

    @contextmanager
    def attended(self, caller: str) -> Generator[None]:
        """While a caller's connection is open its session is in use, call or no call."""
        self._attended[caller] += 1
        try:
            yield
        finally:
            self._attended[caller] -= 1
            if not self._attended[caller]:
                del self._attended[caller]
            if caller in self._seats:
                self._seats[caller].left_at = time.monotonic()

    async def leave(self, caller: str) -> None:
        seat = self._seats.pop(caller, None)
        if seat is not None:
            await seat.close()

    async def sweep(self) -> None:
        """Closes sessions nobody has used for the idle time; runs until it is cancelled."""
        while self.idle is not None:
            await anyio.sleep(min(self.idle / 4, 60))
            now = time.monotonic()
            for caller, seat in list(self._seats.items()):
                if not seat.users and not self._attended[caller] and now - seat.left_at > self.idle:
                    await self.leave(caller)

    async def close(self) -> None:
        for caller in list(self._seats):
            await self.leave(caller)


SESSION_HEADER = "mcp-session-id"
NAMED_HEADER = "holdfast-session"


def caller_of(ctx: ServerRequestContext[Any]) -> str:
    """Whose call this is. On stdio there is one client; over HTTP the transport says which session.

    The newer protocol has no sessions: there a client may name one in the header `Holdfast-Session`, and
    otherwise has the one of its token, address and name.
    """
    if ctx.request is None:
        return "stdio"
    request = ctx.request
    user = getattr(request.scope.get("user"), "username", "")
    if SESSION_HEADER in request.headers and ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return session_caller(request.headers[SESSION_HEADER])
    named = request.headers.get(NAMED_HEADER)
    if named:
        return f"named {user!r} {named[:128]}"
    client = ctx.session.client_params
    name = f"{client.client_info.name} {client.client_info.version}" if client else ""
    address = request.client.host if request.client else ""
    return f"client {user!r} {address} {name}"


def session_caller(id: str) -> str:
    return f"session {id}"


def place_of(uri: str) -> str | None:
    """The directory a file: URI names; None for any other."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return unquote(parts.path) or None
