"""The brokers of one session: the one in use, and those whose walls no longer stand where they were built."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

import anyio
from anyio import CancelScope, to_thread

from gripfast.errors import Internal, SandboxViolation
from gripfast.host.files.closed import ClosedName, ClosedNames
from gripfast.host.files.closed_places import ClosedPlaces
from gripfast.host.files.scope import Scope
from gripfast.host.files.session_tmp import SessionTmp
from gripfast.host.kernel.shortage import shortages_ignored
from gripfast.host.shell.broker_connection import BrokerConnection, MisplacedError
from gripfast.host.shell.caches import caches_folder, trim_caches
from gripfast.host.shell.environment import command_environment, command_path, users_tmpdir
from gripfast.host.shell.git_settings import GitSettings
from gripfast.host.shell.held_roots import MovedRoot, RootDescriptors
from gripfast.host.shell.hook_copies import HookCopies
from gripfast.host.shell.late import Protected, loose_part, protected_now, undo_late_names, without_names
from gripfast.host.shell.made import Made, remember, remembered
from gripfast.host.shell.mark import MARK, sweep_marked
from gripfast.host.shell.moved_files import MovedFiles, Opens
from gripfast.host.shell.network import ON, Network
from gripfast.host.shell.put_back import ProtectedCopies
from gripfast.host.shell.quarantine import Quarantined
from gripfast.host.shell.rehearsal import Copies, copies_for
from gripfast.host.shell.sandbox import Sandbox, within_network
from gripfast.host.shell.sockets import allowed_sockets
from gripfast.host.shell.unfinished import LastLookFile
from gripfast.host.shell.walls import Walls, walls_of, with_private_hooks, with_private_settings
from gripfast.text.below import is_below

_TRIES = 5  # to build walls around places that somebody moves meanwhile


class Brokers:
    """Starts a broker when a command needs one, replaces it when it is lost or out of date, ends them all."""

    def __init__(
        self,
        scope: Scope,
        sandbox: Sandbox,
        allow: Sequence[str],
        mark: str,
        tmp: SessionTmp,
        sockets: Sequence[str],
        network: Network = ON,
        *,
        outside: bool = False,
    ) -> None:
        """`outside`: for commands that a person lets run outside the sandbox. They get nothing by which commands in
        the sandbox could change what they run."""
        self._scope = scope
        self._outside = outside
        self._network = network
        self._sockets = allowed_sockets(sockets)
        self._tmp = tmp
        self._closed_names = ClosedNames(scope, ClosedPlaces(scope), self._unseen)
        self._seen: Protected | None = None
        self._taken: list[Quarantined] = []
        self.suspect = False
        """Whether a command may have run since the last look."""
        self.suspect_of_moves = False
        """The same for a command to which protected files that git tracks were not all closed."""
        self._sandbox = sandbox
        self._allow = allow
        self._roots = tuple(root.real for root in scope.roots)
        copied = sandbox.level in ("landlock", "bwrap")
        self._copies = ProtectedCopies(self._roots, self._unseen) if copied else None
        self._moved = MovedFiles(self._roots)
        self._settings: GitSettings | None = None
        self._hooks: HookCopies | None = None
        self._may_link = sandbox.level == "bwrap"
        self._mark = mark
        self._held = RootDescriptors(scope.roots)
        self._journal = LastLookFile(scope, mark)
        self._in_use: dict[Opens, BrokerConnection] = {}
        """The brokers by what they leave open to git: one and the same if there are no such files."""
        self._retired: list[BrokerConnection] = []
        self._starting = anyio.Lock()
        self._closed = False

    @property
    def temporary(self) -> str:
        """The session's temporary directory, as this machine names it. Made when it is first asked for."""
        return self._tmp.path()

    @property
    def tmpdir(self) -> str:
        """$TMPDIR of commands: the same directory as they name it; outside the sandbox the user's own."""
        if self._outside:
            return users_tmpdir((*self._roots, *self._distrusted()))
        return "/tmp" if self._sandbox.has_private_tmp else self.temporary

    def path(self, walls: Walls) -> str:
        """PATH for the next command: an environment that was made since the last is on it. Where only git may run,
        nothing of the workspace is."""
        return command_path(
            (*self._roots, *self._distrusted()), sandboxed=self._sandbox.confines and not walls.git_alone
        )

    async def current(self, opens: Opens = "none") -> BrokerConnection:
        """The broker in use, or a new one where there is none or its walls are out of date. `opens`: the protected
        files that are not closed to git, but judged afterwards."""
        async with self._starting:
            if self._closed:
                raise Internal("the session is closed; its shells are gone")
            walls = await to_thread.run_sync(self._walls, opens)
            broker = next((broker for broker in self._in_use.values() if broker.holds(walls)), None)
            if broker is None:
                self._take_out_of_use(opens)
                broker = await self._start(walls, opens)
            if self._in_use.get(opens) is not broker:
                self._take_out_of_use(opens)
                self._in_use[opens] = broker
            return broker

    def _take_out_of_use(self, opens: Opens) -> None:
        """Starts no more commands with a broker; it is closed when its last one has ended."""
        old = self._in_use.pop(opens, None)
        if old is not None and old not in self._in_use.values():
            self._retired.append(old)

    def undo_late_names(self, running: Iterable[BrokerConnection] = ()) -> list[Quarantined]:
        """After a command: takes out the protected names that it, or one in the background, made. `running`: the
        brokers of commands that go on."""
        self.suspect_of_moves = any(map(judges_moves, running))
        if self._sandbox.confines and self._seen is not None:
            try:
                self._require_unmoved()
                self._taken += self._copies.put_back() if self._copies else []
                self._take_late_names()
                if not self.suspect_of_moves:
                    self._moved.forget()
            except SandboxViolation:
                if not self._look_at_moved():
                    raise
        taken, self._taken = self._taken, []
        return taken

    def judge_early(self) -> None:
        """While git runs with files open to it that something on this machine runs."""
        if not self.moved():
            self._taken += self._moved.judge_early()

    def moved(self) -> tuple[MovedRoot, ...]:
        """The roots that are no longer where they were when the session began."""
        return self._held.moved()

    def _look_at_moved(self) -> bool:
        """Judges what commands made where the roots are now. What is known of them stays as it was: when they are
        back, commands go on. False if no root was moved."""
        moved = self.moved()
        if moved and self._seen is not None:
            self._taken += self._journal.state(self._seen, self._copies, self._moved).look(moved)
        return bool(moved)

    def _require_unmoved(self) -> None:
        for directory in self._scope.roots:
            directory.require_unmoved()

    def _take_late_names(self) -> None:
        """Takes out what commands made. The next look knows only what was there before them, or may stay."""
        assert self._seen is not None, "somebody looked before the command"
        self._taken += self._copies.take_new() if self._copies else []
        looks = [self._look_again()]  # shared by all that follows: each look costs a stat of every directory
        self._taken += self._moved.settle(looks[0], goes_on=self.suspect_of_moves)
        if self._settings is not None and self._hooks is not None:
            self._taken += [*self._settings.settle(), *self._hooks.settle()]
            now = protected_now(looks[0]).instructions.keys()
            for owner in (now - self._seen.instructions.keys()) | (now & self._seen.made):
                self._settings.make_whole(f"{owner}/config")
        loose = self._seen.loose
        taken, self._seen = undo_late_names(
            self._seen, lambda: looks.pop() if looks else self._look_again(), self._roots, self._moved.is_judged
        )
        self._taken += taken
        if self._seen.loose != loose:
            remember(self._seen.loose, self._roots)

    def _look_again(self) -> tuple[ClosedName, ...]:
        return self._closed_names.look(unseal=True)

    def _walls(self, opens: Opens, *, are_copies: bool = False) -> Walls:
        """The walls as they must be now. Refuses a root that is no longer the directory it was."""
        level = self._sandbox.level
        suspect = self.suspect and self._seen is not None and level != "none"
        if suspect:
            self._look_at_moved()
        self._require_unmoved()
        self._held.hold()
        suspect_of_moves = suspect and self.suspect_of_moves
        if not suspect_of_moves:
            self._moved.forget()
        if suspect:
            self._taken += self._copies.put_back() if self._copies else []
            self._take_late_names()
        closed = () if level == "none" else self._closed_names.look()
        if not suspect:
            self._seen = protected_now(closed, self._loose(level), self._unseen())
        assert self._seen is not None, "just looked"
        made = self._seen.loose
        self._moved.take(
            closed,
            made,
            suspect=suspect_of_moves,
            opens=opens if level == "bwrap" else "all",
            may_be_new=not suspect,
        )
        if self._copies is not None:
            guarded = loose_part(self._seen) if level == "bwrap" else without_names(self._seen, self._moved.judged)
            self._copies.take(guarded, suspect=suspect)
        if level != "none" and not are_copies:
            self._journal.write(self._seen, self._copies, self._moved)
        judged = self._moved.opened(opens)
        loose = {*made, *judged} if level == "bwrap" else set[str]()
        walls = walls_of(self._scope, closed, self._tmp.path(), level, self._sockets, loose)
        if level == "bwrap":
            walls = replace(walls, judged=tuple(sorted(judged)), git_alone=self._moved.runs_here(judged))
        return walls if are_copies or not self._may_link else self._with_settings(walls)

    def _loose(self, level: str) -> Made:
        """What commands made: as the last look found it, or as earlier sessions remembered it."""
        if self._seen is not None:
            return self._seen.loose
        return remembered(self._roots) if level in ("bwrap", "landlock") else {}

    def _with_settings(self, walls: Walls) -> Walls:
        if self._settings is None or self._hooks is None:
            try:
                self._settings = GitSettings(walls.temporary, self._unseen())
                self._hooks = HookCopies(walls.temporary)
            except FileExistsError:  # another session shares the directory
                self._may_link = False
                return walls
        self._taken += [*self._settings.settle(), *self._hooks.settle()]
        walls = with_private_settings(walls, self._settings.links)
        return with_private_hooks(walls, self._hooks.over)

    def _unseen(self) -> tuple[str, ...]:
        """The directories that commands write and nobody looks through, also by the name that commands know."""
        shared = ["/dev/shm", *(["/tmp"] if self._sandbox.has_private_tmp else [])]
        unseen = [place for place in shared if not any(is_below(root, place) for root in self._roots)]
        return self._tmp.path(), os.path.realpath(caches_folder()), *unseen

    def _distrusted(self) -> tuple[str, ...]:
        """The directories that no variable of a command may lead into: outside the sandbox those that commands inside
        it write, besides the workspace."""
        return self._unseen() if self._outside else ()

    async def _start(self, walls: Walls, opens: Opens) -> BrokerConnection:
        for _ in range(_TRIES):
            try:
                return await self._started(walls)
            except MisplacedError:  # somebody moves things about: look again
                walls = await to_thread.run_sync(self._walls, opens)
            except Internal:
                if not walls.configs:
                    raise
                self._may_link = False  # this kernel mounts no links: configurations can be read only
                walls = await to_thread.run_sync(self._walls, opens)
        raise Internal(
            "the places around the workspace change faster than the sandbox can be built; try again", retriable=True
        )

    @asynccontextmanager
    async def over_copies(self, opens: Opens = "none") -> AsyncGenerator[tuple[BrokerConnection, Copies]]:
        """A broker for one command whose every write goes to a copy. Afterwards nothing of it runs, and the copy is
        removed. Raises SandboxViolation where the machine can't do it."""
        if self._closed:
            raise Internal("the session is closed; its shells are gone")
        if self._sandbox.level != "bwrap":
            why = "; ".join(self._sandbox.faults) or self._sandbox.level
            raise SandboxViolation(f"dry_run needs the bubblewrap sandbox, which is not used here ({why})")
        walls = await to_thread.run_sync(partial(self._walls, opens, are_copies=True))
        copies = await to_thread.run_sync(copies_for, walls)
        try:
            broker = await self._started(walls, copies)
            try:
                yield broker, copies
            finally:
                await _close(broker)
        except MisplacedError:
            raise Internal("the workspace was moved just now; try again", retriable=True) from None
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(copies.remove)

    async def _started(self, walls: Walls, copies: Copies | None = None) -> BrokerConnection:
        variables = command_environment(
            temporary=self.tmpdir, allow=self._allow, roots=self._roots, distrusted=self._distrusted()
        )
        variables |= dict(walls.caches.variables)
        if self._sandbox.confines:  # caches are mounts of their own: uv could not link from them, and would warn
            variables.setdefault("UV_LINK_MODE", "copy")
        variables[MARK] = self._mark
        sandbox = await to_thread.run_sync(within_network, self._sandbox, self._network)
        looks = self._sandbox.confines and copies is None
        last_look = self._journal.program(self._held.hold()) if looks else None
        broker = await to_thread.run_sync(
            BrokerConnection, walls, sandbox, variables, copies, self._network, last_look
        )
        try:
            await broker.ready()
        except BaseException:
            await _close(broker)
            raise
        return broker

    async def close_opened(self, broker: BrokerConnection) -> None:
        """Ends a broker that left files open to git which something on this machine runs, with all that it started:
        only then can nothing change them any more."""
        if broker.walls.git_alone:
            self._in_use = {kind: other for kind, other in self._in_use.items() if other is not broker}
            await _close(broker)

    async def lose(self, broker: BrokerConnection) -> None:
        """The broker is gone or does not answer: its warden ends all that is left of it."""
        self._in_use = {kind: other for kind, other in self._in_use.items() if other is not broker}
        await _close(broker)
        if not self._in_use and not self._retired:
            await to_thread.run_sync(sweep_marked, self._mark)

    async def close_unused(self, in_use: Sequence[BrokerConnection]) -> None:
        """Ends the brokers whose walls are out of date and whose commands have all ended."""
        unused = [broker for broker in self._retired if broker not in in_use]
        self._retired = [broker for broker in self._retired if broker in in_use]
        for broker in unused:
            await _close(broker)

    def start_no_more(self) -> None:
        """From now on commands are refused; what runs goes on."""
        self._closed = True

    async def close(self) -> None:
        """Ends every broker, and with it whatever it started."""
        self.start_no_more()
        brokers = [*dict.fromkeys((*self._retired, *self._in_use.values()))]
        self._in_use, self._retired = {}, []
        for broker in brokers:
            await _close(broker, look=self.suspect and broker is brokers[-1])
        with shortages_ignored():
            await to_thread.run_sync(self._last_look)
            self._journal.remove()

    def _last_look(self) -> None:
        """What commands made that ran until the end."""
        with suppress(SandboxViolation):
            if self.suspect:
                self.undo_late_names()
        self._held.close()
        if self._settings is not None:
            self._settings.close()
            self._settings = self._hooks = None

    async def remove_temporary(self) -> None:
        """The session's temporary directory, when nothing uses it any more."""
        await to_thread.run_sync(self._tmp.remove)
        await to_thread.run_sync(trim_caches)


def judges_moves(broker: BrokerConnection) -> bool:
    """Whether commands of a broker can change protected files, so that these are judged after them."""
    return broker.level == "landlock" or bool(broker.walls.judged)


async def _close(broker: BrokerConnection, *, look: bool = False) -> None:
    with CancelScope(shield=True):
        await to_thread.run_sync(broker.close, look)
