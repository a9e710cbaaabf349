"""Sessions that servers share: one has the lease while calls run, and state is in the store before they answer."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeVar

import anyio
from anyio import to_thread

from gripfast.builtin.shared_state import SharedState
from gripfast.builtin.state import State
from gripfast.call.cache import Store
from gripfast.call.cache.sink import FAILURES
from gripfast.clock import monotonic
from gripfast.errors import Conflict, Internal, NotFound, ToolError
from gripfast.framework.context import LOGGER
from gripfast.host.questions.everywhere import EverywhereQueue
from gripfast.host.questions.question import Questions
from gripfast.host.questions.queue import QuestionQueue
from gripfast.host.questions.redis_questions import RedisQuestions
from gripfast.host.stores.sessions import LEASE_SECONDS, Busy, Found, Lease, Leased, SessionStore
from gripfast.text.escape import escaped

T = TypeVar("T")
WAIT_SECONDS = 50.0
"""How long a call waits for a session that another server is using, if it has no time to answer by."""
_RENEW_SECONDS = 0.5
_RECOVERY_SECONDS = 15.0  # more than the pause after a failure and the time between two looks of `keep_up`
_THREADS = 64


class Sharing:
    """The store that this server shares with others, and the name under which it does."""

    def __init__(
        self,
        store: SessionStore,
        outputs: Store,
        name: str,
        *,
        most: int,
        is_remote: bool = False,
        questions: Callable[[str], RedisQuestions] | None = None,
    ) -> None:
        """`most` is how many sessions an owner may have; `is_remote`: servers on other machines also use it.
        `questions` opens the queue of questions in the store for a server; without, they wait in files."""
        self.store = store
        self.is_remote = is_remote
        self.outputs = outputs
        self.name = name
        self.holder = f"{name} {secrets.token_hex(4)}"
        self.most = most
        self._questions = questions and questions(self.holder)
        self.deliver: Callable[[str, bytes], Awaitable[None]] | None = None
        self._threads = anyio.CapacityLimiter(_THREADS)
        self.catch_up: Callable[[], Awaitable[None]] | None = None
        self._failed_at = float("-inf")
        self._trouble: str | None = None if is_remote else ""
        self._epoch = ""
        self.life = 0
        """Counts the times that the store was found empty."""
        self.behind: set[SharedSession] = set()

    async def ask(self, work: Callable[[], T]) -> T:
        """Runs a method of the store in a thread."""
        try:
            return await to_thread.run_sync(work, limiter=self._threads)
        except ToolError as fault:
            self._failed_at = monotonic()
            self._note_failure(fault)
            raise

    def _note_failure(self, fault: ToolError) -> None:
        """Counts it, and logs it if it is another one than the last."""
        if isinstance(fault, Internal):
            FAILURES.count += 1
            if fault.message != self._trouble:
                LOGGER.warning("%s; sessions are not shared with other servers", escaped(fault.message))
            self._trouble = fault.message

    def _note_success(self) -> None:
        if self._trouble is None:
            LOGGER.info("the shared store answers")
        elif self._trouble:
            LOGGER.info("the shared store answers again")
        self._trouble = ""

    @property
    def was_away(self) -> bool:
        """Whether the store failed so recently that other servers may still have to store what they know."""
        return monotonic() - self._failed_at < _RECOVERY_SECONDS

    def queue(self) -> Questions:
        """The queue for the questions of one session."""
        local = QuestionQueue()
        return local if self._questions is None else EverywhereQueue(local, self._questions)

    async def begin(self, key: str, owner: str, hello: bytes) -> None:
        await self.ask(lambda: self.store.begin(key, owner, hello, most=self.most))

    async def find(self, key: str) -> Found | None:
        return await self.ask(lambda: self.store.find(key))

    async def put(self, name: str, value: bytes, seconds: float) -> bool:
        """Stores a value to be taken once. False if the store does not answer."""
        try:
            await self.ask(lambda: self.store.put(name, value, seconds))
        except ToolError:
            return False
        return True

    async def take(self, name: str) -> tuple[bytes, float] | None:
        """The value and its age in seconds; nobody else gets it. Raises ToolError if the store does not answer."""
        return await self.ask(lambda: self.store.take(name))

    async def was_emptied(self, life: int) -> bool:
        """Whether the store has lost everything since that `life`."""
        await self._look()
        return life != self.life

    async def _look(self) -> None:
        epoch = await self.ask(self.store.epoch)
        self.life += bool(self._epoch) and epoch != self._epoch
        self._epoch = epoch

    async def keep_up(self) -> None:
        """Tells others that this server runs, and saves what could not be saved. Runs until it is cancelled."""
        while True:
            try:
                await self.ask(lambda: self.store.announce(self.holder))
                await self._look()
                self._note_success()
                if self.catch_up is not None:
                    await self.catch_up()
                for session in list(self.behind):
                    await session.catch_up()
            except ToolError:
                pass  # each call says for itself what is not kept
            await anyio.sleep(LEASE_SECONDS / 4)

    async def close(self) -> None:
        await self.ask(self.store.close)
        await self.ask(self.outputs.close)
        if self._questions is not None:
            await self.ask(self._questions.close)


class SharedSession:
    """One session as this server shares it. Its calls on this server run under one lease."""

    def __init__(self, sharing: Sharing, key: str, owner: str, *, hello: bytes | None) -> None:
        """`hello` is the request that began it; None for a session that its client only names."""
        self._sharing = sharing
        self._key = key
        self._owner = owner
        self._hello = hello
        self._lock = anyio.Lock()
        self._calls = 0
        self._lease: Lease | None = None
        self._fence = self._life = 0
        self._fault = ""
        self._renewing: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._state: SharedState | None = None
        self._place: State | None = None
        self._notes: list[str] = []
        self._cut = ""

    def opened(self, state: SharedState, place: State) -> None:
        """The session's objects on this server were made: they know nothing of other servers yet."""
        self._state, self._place, self._fence = state, place, 0

    async def enter(self, doing: str, until: float | None) -> CallLease:
        """A call begins. Waits while another server has the session, until a time of the monotonic clock; then raises
        Conflict. Raises NotFound if the session has ended."""
        async with self._lock:
            if self._calls == 0:
                await self._take(doing, until)
            self._calls += 1
        return CallLease(self)

    async def _take(self, doing: str, until: float | None) -> None:
        deadline = monotonic() + WAIT_SECONDS if until is None else until
        pause = 0.01
        while (other := await self._try(doing)) is not None:
            if monotonic() >= deadline:
                raise Conflict(
                    f"this session is busy: a call of it runs on server {_shown(other)}; call again when it has ended"
                )
            await anyio.sleep(pause)
            pause = min(pause * 1.5, 0.2)

    async def _try(self, doing: str) -> str | None:
        """Takes the lease, or goes on without one if the store does not answer. Returns which server has it."""
        with anyio.CancelScope(shield=True):  # a lease that nobody knows of would keep other servers out
            try:
                found = await self._leased(doing)
            except NotFound:
                raise
            except ToolError as fault:
                if self._hello is None and not self._fence and self._sharing.is_remote:
                    raise Internal(
                        f"{fault.message}, so this server can't know what this session did on others; nothing was "
                        "run; try again",
                        retriable=True,
                    ) from fault
                self._fault = fault.message
                return None
            if isinstance(found, Busy):
                return found.holder
            await self._adopt(found)
        return None

    async def _leased(self, doing: str) -> Leased | Busy:
        sharing, known, new = self._sharing, self._fence, self._hello is None

        def lease() -> Leased | Busy | None:
            return sharing.store.lease(self._key, self._owner, sharing.holder, doing[:80], known=known, new=new)

        found = await sharing.ask(lease)
        if found is None and self._fence and await sharing.was_emptied(self._life):
            await sharing.begin(self._key, self._owner, self._hello or b"")
            found = await sharing.ask(lease)
        if found is None:
            raise NotFound("this session has ended; begin a new one")
        return found

    async def _adopt(self, found: Leased) -> None:
        self._lease, self._fault = found.lease, ""
        self._renewing = asyncio.get_running_loop().call_later(_RENEW_SECONDS, self._start_renewing)
        if found.unfinished is not None:
            server, tool = found.unfinished
            self._notes.append(
                f"[a call of {escaped(tool[:80])} did not finish on server {_shown(server)}, which is gone "
                "or lost its connection; look at what it changed before you repeat it]"
            )
        if self._state is None or self._place is None:
            return
        if found.fields is not None:
            self._notes += await self._sharing.ask(
                lambda: self._state.adopt(found.fields or {}) if self._state else []
            )
        elif found.is_behind:
            self._state.forget_saved()
        if self._state.elsewhere or self._place.place.elsewhere:
            await self._tell_of_shells(self._state, self._place)

    async def _tell_of_shells(self, state: SharedState, place: State) -> None:
        """Says of each background shell on another server whether that still runs."""
        reasons: dict[str, str] = {}
        for server in set(state.elsewhere.values()):
            try:
                is_up = await self._sharing.ask(lambda server=server: self._sharing.store.is_up(server))
            except ToolError:
                is_up = True
            reasons[server] = (
                f"was started on server {_shown(server)}, and this is {self._sharing.name}: shells can't move. If it "
                "still runs, a call that reaches that server shows it"
                if is_up
                else f"ran on server {_shown(server)}, which is gone; it ended with that server"
            )
        place.place.elsewhere.clear()
        place.place.elsewhere.update((name, reasons[server]) for name, server in state.elsewhere.items())

    # --- while it is held ---

    def _start_renewing(self) -> None:
        self._renewing = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        """Keeps the lease, and takes what other servers were sent for it."""
        while (lease := self._lease) is not None:
            try:
                messages = await self._sharing.ask(lambda lease=lease: self._sharing.store.renew(lease))
            except ToolError:
                messages = []
            for message in messages or ():
                if self._sharing.deliver is not None:
                    await self._sharing.deliver(self._key, message)
            await asyncio.sleep(_RENEW_SECONDS)

    # --- the end of a call ---

    async def leave(self) -> list[str]:
        """A call ends. What it changed is in the store when this returns, or the notes say that it is not."""
        notes: list[str] = []
        with anyio.CancelScope(shield=True):
            async with self._lock:
                self._calls -= 1
                notes, self._notes = self._notes, []
                try:
                    fault = await self._save(release=self._calls == 0)
                except ToolError as failure:
                    fault = failure.message
                if fault and self._state is not None:
                    if self._state.changes():
                        self._sharing.behind.add(self)
                    notes.append(f"[this call could neither use nor update what the servers share: {fault}]")
        return notes

    async def _save(self, *, release: bool) -> str:
        """Why nothing was saved; empty if it was."""
        lease = self._lease
        if lease is None:
            return self._fault
        if release:
            self._lease = None
            if self._renewing is not None:
                self._renewing.cancel()
        state = self._state
        changes, root = (state.changes(), state.root) if state is not None else ({}, "")
        lines = state.lines() if state is not None else []
        save = partial(
            self._sharing.store.save, lease, changes, lines, root=root, release=release, unfinished=self._cut
        )
        is_saved = await self._sharing.ask(save)
        if not is_saved:
            self._lease, self._fence = None, 0
            return "another server has taken over this session meanwhile"
        self._fence, self._life = lease.fence, self._sharing.life
        if state is not None:
            state.saved(changes)
            state.lines_saved(len(lines))
        self._sharing.behind.discard(self)
        return ""

    async def catch_up(self) -> None:
        """Saves what could not be saved before."""
        self._sharing.behind.discard(self)
        if self._calls:
            return
        try:
            lease = await self.enter("", monotonic())
        except NotFound:
            return  # it has ended
        except Conflict:
            self._sharing.behind.add(self)  # another server uses it
            return
        self.tell_later(await lease.release())

    def tell_later(self, notes: Iterable[str]) -> None:
        """The next answer says this."""
        self._notes += (note for note in notes if note not in self._notes)

    def was_cut(self, doing: str) -> None:
        """A call was cut short: the server that goes on with the session says so."""
        self._cut = doing[:80]

    def forget(self) -> None:
        """The session is closed on this server."""
        self._sharing.behind.discard(self)


class CallLease:
    """One call's part in the lease of its session; without a session, that of a call in one that is not shared."""

    def __init__(self, session: SharedSession | None) -> None:
        self._session = session

    def was_cut(self, doing: str) -> None:
        """The call ends before it is done, because its server does."""
        if self._session is not None:
            self._session.was_cut(doing)

    async def release(self) -> list[str]:
        """Returns the notes for the call's answer. Does nothing the second time."""
        session, self._session = self._session, None
        return [] if session is None else await session.leave()


def _shown(holder: str) -> str:
    """The name of a server, without what makes it unique."""
    return escaped(holder.partition(" ")[0][:80])
