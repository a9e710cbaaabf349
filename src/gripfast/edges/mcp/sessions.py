"""The sessions of MCP clients: one for the client on stdio, one for each MCP session over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
from mcp.server.context import ServerRequestContext

from gripfast.builtin.session import WorkspaceSession
from gripfast.builtin.shared_state import SharedState
from gripfast.builtin.state import State
from gripfast.call.run import Session
from gripfast.clock import monotonic
from gripfast.edges.approvals import Approvals, answer_within
from gripfast.edges.logs import CLIENT_LOGGER
from gripfast.edges.mcp.ask import AskingClient
from gripfast.edges.mcp.connections import HEADER_SECONDS, HttpConnection
from gripfast.edges.mcp.observed import Observer
from gripfast.edges.mcp.people import People
from gripfast.edges.mcp.quotas import Quotas
from gripfast.edges.mcp.request import ClientLogHandler, ClientRequest, PendingQuestions
from gripfast.edges.mcp.running import RunningCalls
from gripfast.edges.mcp.session_names import (
    NAMED,
    OF_CONNECTION,
    OF_PROTOCOL,
    ONE_CALL,
    connection_of,
    hello_of,
    how_to_name,
    owner_of,
    session_key,
)
from gripfast.edges.mcp.sharing import CallLease, SharedSession, Sharing
from gripfast.edges.settings import SessionSettings
from gripfast.errors import Internal, ToolError
from gripfast.framework.context import LOGGER
from gripfast.framework.definition import only_tool_errors
from gripfast.host.questions.notify import notify_desktop
from gripfast.host.questions.queue import LIFETIME, QuestionQueue
from gripfast.host.stores.sessions import stored_name
from gripfast.messages import OutputRef, ToolMessage
from gripfast.records import dataclass

QUESTION_LIFETIME = LIFETIME
_MOST_HINTED = 1000  # clients of which it is remembered that they were told how to name a session
MAX_LISTED_OUTPUTS = 500
"""How many cached outputs of one session are listed as resources; the oldest drop out first."""


@dataclass(frozen=True, slots=True)
class FixedResource:
    """A text served as a resource besides the cached outputs."""

    uri: str
    name: str
    text: str
    mime_type: str = "text/plain"


@dataclass(slots=True)
class ClientSession:
    """One client's Session, and what the server remembers about that client."""

    owner: str = ""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    session: Session | None = None
    state: State | None = None
    outputs: OrderedDict[str, tuple[str, OutputRef]] = field(default_factory=OrderedDict[str, tuple[str, OutputRef]])
    running_calls: int = 0
    last_used: float = 0.0
    roots_changed: bool = False
    answer_within: float = 0.0
    shared: SharedSession | None = None
    asking: AskingClient = field(default_factory=lambda: AskingClient(None))

    def answer_by(self, started: float) -> float | None:
        """When a call that started then must be answered, by the monotonic clock; None if it may take any time."""
        return started + self.answer_within if self.answer_within else None

    def remember(self, message: ToolMessage) -> None:
        if message.output_ref is not None:
            self.outputs[message.output_ref.id] = (message.name, message.output_ref)
            while len(self.outputs) > MAX_LISTED_OUTPUTS:
                self.outputs.popitem(last=False)

    async def close(self) -> None:
        session, self.session = self.session, None
        if self.asking.approvals is not None:
            await self.asking.approvals.close()
        if session is not None:
            await session.close()


class Sessions:
    """Opens a session for each client, keeps it while it is in use, and closes it afterwards."""

    def __init__(
        self,
        settings: SessionSettings,
        *,
        ask_for_roots: bool = False,
        idle: float | None = None,
        quotas: Quotas | None = None,
        people: People | None = None,
        resources: Sequence[FixedResource] = (),
        sharing: Sharing | None = None,
    ) -> None:
        self.settings = settings
        self.people = People(settings) if people is None else people
        self.sharing = sharing
        self.resources = {resource.uri: resource for resource in resources}
        self.questions = PendingQuestions(sharing)
        self.observers: list[Observer] = []
        self.running = RunningCalls()
        self._ask_for_roots = ask_for_roots
        self.idle = idle
        self._connections: Counter[str] = Counter()
        self.quotas = quotas or Quotas(1)
        self._clients: dict[str, ClientSession] = {}
        self._endings: set[asyncio.Task[None]] = set()
        self._hinted: OrderedDict[str, None] = OrderedDict()

    def acquire(self, request: ClientRequest, started: float, doing: str = "") -> AcquiredSession:
        """A context manager to enter while a call runs that has `started`. Yields the client of a request, its open
        Session, and the call's part in the session's lease, which is released before the call answers. Raises
        ToolError if no session can be opened, or another server keeps it busy."""
        return AcquiredSession(self, request, started, doing)

    async def enter(
        self, key: str, request: ClientRequest, started: float, doing: str
    ) -> tuple[ClientSession, Session, CallLease]:
        """The beginning of `acquire`."""
        client = self._clients.get(key)
        is_new = client is None
        if client is None:
            client = self._clients[key] = ClientSession(owner_of(request.ctx))
            self._begin(key, client, request)
        client.running_calls += 1
        try:
            if is_new:
                await self._make_room(client.owner)
            session = client.session
            if session is None or client.roots_changed or client.lock.locked():
                session = await self._opened(client, request)
            if client.shared is None:
                return client, session, CallLease(None)
            return client, session, await client.shared.enter(doing, client.answer_by(started))
        except BaseException:
            await self.leave(key, client, CallLease(None))
            raise

    async def leave(self, key: str, client: ClientSession, lease: CallLease) -> None:
        """The end of `acquire`."""
        notes = await lease.release()
        if client.shared is not None:
            client.shared.tell_later(notes)
        client.running_calls -= 1
        client.last_used = monotonic()
        if key.startswith(ONE_CALL):
            with anyio.CancelScope(shield=True):
                await self.end(key)

    def _begin(self, key: str, client: ClientSession, request: ClientRequest) -> None:
        """What lasts beyond this server is shared; what lasts as long as a connection ends with it."""
        if key.startswith((OF_PROTOCOL, NAMED)) and self.sharing is not None:
            hello = hello_of(request.ctx) if key.startswith(OF_PROTOCOL) else None
            client.shared = SharedSession(self.sharing, key, client.owner, hello=hello)
        elif key.startswith(OF_CONNECTION):
            connection = connection_of(request.ctx)
            assert connection is not None, "its number is in the key"
            connection.keep(self.idle or HEADER_SECONDS)
            task = asyncio.get_running_loop().create_task(self._end_with(connection, key))
            self._endings.add(task)
            task.add_done_callback(self._endings.discard)

    def first_note(self, request: ClientRequest) -> str | None:
        """For the first answer of a client that names no session: how to name one."""
        key = session_key(request.ctx)
        who = key if key.startswith(OF_CONNECTION) else f"{owner_of(request.ctx)} {request.client_name}"
        note = how_to_name(key)
        if note is None or who in self._hinted:
            return None
        self._hinted[who] = None
        while len(self._hinted) > _MOST_HINTED:
            self._hinted.popitem(last=False)
        return note

    async def _end_with(self, connection: HttpConnection, key: str) -> None:
        await connection.closed.wait()
        await self.end(key)

    async def _opened(self, client: ClientSession, request: ClientRequest) -> Session:
        async with client.lock:
            if client.session is None or (client.roots_changed and client.running_calls == 1):
                await self._open(client, request)
            assert client.session is not None
            return client.session

    def peek(self, ctx: ServerRequestContext[Any]) -> ClientSession:
        """The client of a request, without opening its session."""
        return self._clients.get(session_key(ctx)) or ClientSession()

    async def _make_room(self, owner: str) -> None:
        """Closes an owner's least recently used sessions if there are more than its share. Raises Internal if all of
        them are in use."""
        own = {key: client for key, client in self._clients.items() if client.owner == owner}
        idle = [key for key, client in own.items() if not client.running_calls and not self._connections[key]]
        surplus = len(own) - self.quotas.sessions
        if surplus > len(idle):
            raise Internal(
                f"{self.quotas.sessions} sessions of this client are in use, which is the limit; close one",
                retriable=True,
            )
        for key in sorted(idle, key=lambda key: own[key].last_used)[: max(0, surplus)]:
            await self.end(key)

    async def _open(self, client: ClientSession, request: ClientRequest) -> None:
        roots = [directory for uri in await self._client_roots(request) if (directory := directory_of(uri))]
        await client.close()
        client.roots_changed = False
        logger = logging.Logger(CLIENT_LOGGER, logging.INFO)
        logger.parent = logging.getLogger("gripfast")
        logger.addHandler(ClientLogHandler())
        key = session_key(request.ctx)
        session, client.state = self.people.settings_of(client.owner).session(
            roots,
            saved_state=client.state.dump() if client.state else None,
            logger=logger,
            id=stored_name(key) if client.shared is not None else None,
            outputs=self.sharing.outputs if self.sharing is not None else None,
        )
        if client.shared is not None and self.sharing is not None:
            sharing = self.sharing
            state = SharedState(client.state, session, sharing.holder, tells_calls=sharing.is_remote)
            client.shared.opened(state, client.state)
        if not key.startswith(ONE_CALL):
            session.prepare()
        self._prepare_asking(client, session, request.client_name)
        client.session = session
        LOGGER.debug("session %s of %s began", session.id, client.owner or "the client")

    def _prepare_asking(self, client: ClientSession, session: WorkspaceSession, name: str) -> None:
        chosen, notify = self.settings.answering()
        client.answer_within = answer_within(name, chosen)
        client.asking = AskingClient(None)
        if client.answer_within:
            on_question = notify_desktop if notify else None
            client.asking.approvals = Approvals(
                session.id,
                session.fs.roots[0],
                name,
                QUESTION_LIFETIME,
                on_question,
                QuestionQueue() if self.sharing is None else self.sharing.queue(),
                is_shared=client.shared is not None,
                config=self.settings.config_file,
                who=client.owner,
            )

    def fault(self) -> str | None:
        """Why somebody's calls could not be served now; None if all could. Blocks."""
        return next(filter(None, (settings.fault() for settings in self.people.all_settings())), None)

    async def _client_roots(self, request: ClientRequest) -> list[str]:
        if self.settings.roots or not self._ask_for_roots:
            return []
        return await request.roots()

    def roots_changed(self) -> None:
        """To be called when the client's roots have changed: its session is reopened before the next call."""
        if self._ask_for_roots and not self.settings.roots:
            for client in self._clients.values():
                client.roots_changed = True

    @contextmanager
    def connected(self, key: str) -> Generator[None]:
        """Marks a client's connection as open. Until it closes, the session counts as in use, even without a call."""
        self._connections[key] += 1
        try:
            yield
        finally:
            self._connections[key] -= 1
            if not self._connections[key]:
                del self._connections[key]
            if key in self._clients:
                self._clients[key].last_used = monotonic()

    def count(self) -> int:
        """How many sessions are open."""
        return sum(client.session is not None for client in self._clients.values())

    def is_running(self, key: str) -> bool:
        """Whether a call of this session runs on this server."""
        return key in self._clients and self._clients[key].running_calls > 0

    def is_connected(self, key: str) -> bool:
        return self._connections[key] > 0

    async def end(self, key: str) -> None:
        """Closes a session and forgets it. A failure is only logged, so that the server and other sessions go on."""
        client = self._clients.pop(key, None)
        if client is not None and client.shared is not None:
            client.shared.forget()
        if client is not None:
            if client.session is not None:
                LOGGER.debug("session %s of %s ended", client.session.id, client.owner or "the client")
            with suppress(ToolError):
                await only_tool_errors(client.close(), "closing a session", LOGGER)

    async def end_all_of(self, owner: str) -> None:
        """Closes every session of one owner."""
        for key in [key for key, client in self._clients.items() if client.owner == owner]:
            await self.end(key)

    async def close_idle(self) -> None:
        """Closes sessions that have been idle for too long. Runs until it is cancelled."""
        while self.idle is not None:
            await anyio.sleep(min(self.idle / 4, 60))
            now = monotonic()
            for key, client in list(self._clients.items()):
                if not client.running_calls and not self._connections[key] and now - client.last_used > self.idle:
                    await self.end(key)

    async def close(self) -> None:
        for key in list(self._clients):
            await self.end(key)


class AcquiredSession:
    """A call's use of its client's session: see `Sessions.acquire`."""

    def __init__(self, sessions: Sessions, request: ClientRequest, started: float, doing: str) -> None:
        self._sessions, self._request, self._started, self._doing = sessions, request, started, doing
        self._key = session_key(request.ctx)

    async def __aenter__(self) -> tuple[ClientSession, Session, CallLease]:
        found = await self._sessions.enter(self._key, self._request, self._started, self._doing)
        self._client, _, self._visit = found
        return found

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._sessions.running.are_cut:
            self._visit.was_cut(self._doing)
        await self._sessions.leave(self._key, self._client, self._visit)


def directory_of(uri: str) -> str | None:
    """The directory that a `file:` URI names; None for any other URI."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    return unquote(parts.path) or None
