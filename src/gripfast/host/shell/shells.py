"""Shells: the commands of one session. The async side of the broker, which starts and ends the processes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import selectors
import socket
import sys
import tempfile
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from math import inf
from typing import IO, cast

import anyio
from anyio import CancelScope, to_thread, wait_readable

from gripfast.errors import Conflict, Internal, NotFound, SandboxViolation, ToolError
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from gripfast.host.files.session_tmp import SessionTmp
from gripfast.host.kernel.shortage import is_shortage, shortages_as_errors, shortages_ignored
from gripfast.host.shell.background import SPOOL_CAP, Background
from gripfast.host.shell.board import Board
from gripfast.host.shell.broker import PIPE_SIZE
from gripfast.host.shell.broker_connection import PATIENCE_SECONDS, BrokerConnection
from gripfast.host.shell.brokers import Brokers, judges_moves
from gripfast.host.shell.ended import Ended, Reason, exit_of
from gripfast.host.shell.held_roots import MovedRoot
from gripfast.host.shell.job import Feed, Job, Stdin, discard, next_of, take
from gripfast.host.shell.line import KIND, receive, receive_quietly
from gripfast.host.shell.moved_files import Opens, names_git
from gripfast.host.shell.network import ON, Network
from gripfast.host.shell.pump import Pump
from gripfast.host.shell.quarantine import Quarantined
from gripfast.host.shell.refused import RefusedWrite, Signs, refusals
from gripfast.host.shell.rehearsal import Differences, differences
from gripfast.host.shell.sandbox import Sandbox, SandboxMode, choose
from gripfast.host.shell.script import BASH, SH, checked, find_shell, script_file
from gripfast.host.shell.shared import MAX_OUTPUT, BegunSecret, no_secret_begun, share_tmp
from gripfast.host.shell.stuck import StuckFile, StuckFiles
from gripfast.host.shell.typing_in import open_ends, require_input, type_in

# Larger pipes make a flood cheaper, but a user's pipes share one allowance: with many commands they stay small.
_LARGE_PIPES = 16
ATTACH_SECONDS = 60.0
"""How long the same command again means the one that goes on in the background."""
_LOOK_SECONDS = 0.05
_EARLY_SECONDS = 0.25
_BOARD_SECONDS = 0.2
_QUIET_SECONDS = 0.15


@contextmanager
def selector() -> Generator[selectors.BaseSelector]:
    """What a command is waited for with, opened before it is started."""
    with shortages_as_errors():
        made = selectors.DefaultSelector()
    with made:
        yield made


_ALL: weakref.WeakSet[Shells] = weakref.WeakSet()


def running_commands() -> int:
    """How many commands run in all sessions of this process."""
    return sum(shells.count() for shells in list(_ALL))


class Shells:
    """Runs commands for one session. The broker starts with the first command; `close` ends everything."""

    def __init__(
        self,
        scope: Scope,
        *,
        sandbox: SandboxMode | Sandbox = "auto",
        allow: Sequence[str] = (),
        directory: str | None = None,
        tmp: SessionTmp | None = None,
        sockets: Sequence[str] = (),
        network: Network = ON,
        board: Board | None = None,
    ) -> None:
        """`tmp` is the temporary directory that file tools share with commands; by default one of its own. `sockets`
        are those of other programs that commands may reach. `board` shows background shells to the user."""
        self.scope = scope
        self.home = scope.roots[0].real
        self.directory = directory or self.home
        self.sandbox = sandbox if isinstance(sandbox, Sandbox) else choose(sandbox)
        self._roots = tuple(root.real for root in scope.roots)
        self.mark = secrets.token_hex(8)
        tmp = tmp or SessionTmp()
        self._brokers = Brokers(scope, self.sandbox, tuple(allow), self.mark, tmp, sockets, network)
        self.network = network
        self._outside = Brokers(scope, Sandbox("none"), tuple(allow), self.mark, tmp, sockets, outside=True)
        self.max_output = MAX_OUTPUT
        self.begun_secret: BegunSecret = no_secret_begun
        self.may_leave = False
        """Whether commands may run outside the sandbox: set by whoever asks a person about each of them."""
        self._jobs: dict[str, Job] = {}
        self._background: dict[str, Background] = {}
        self.elsewhere: Mapping[str, str] = {}
        """Background shells of this session on other servers, each with the reason why it can't be reached."""
        self._outputs: IO[bytes] | None = None
        self._numbers = 0
        self._closed = False
        self._stuck = StuckFiles(self._roots)
        self._board = board
        self._timer: asyncio.TimerHandle | None = None
        _ALL.add(self)

    def count(self) -> int:
        """How many of its commands run."""
        return sum(job.ended is None for job in list(self._jobs.values()))

    @property
    def temporary(self) -> str:
        """The session's temporary directory, as this machine names it."""
        return self._brokers.temporary

    @property
    def tmpdir(self) -> str:
        """The same directory as commands name it."""
        return self._brokers.tmpdir

    # ---- one command ----

    async def run(
        self, command: str, feed: Feed, *, timeout_ms: int = 120_000, outside: bool = False, git_alone: bool = False
    ) -> Ended:
        """Runs a command to its end. Its output goes to `feed` as it comes, stdout and stderr in order.
        `outside`: not in the sandbox. `git_alone`: it runs nothing but git, by somebody who has read it; so protected
        files are left open to it, and judged afterwards.

        Cancelled, or when `feed` fails, everything the command started is ended before this returns.
        """
        ended = await self.run_or_stay(command, feed, timeout_ms=timeout_ms, outside=outside, git_alone=git_alone)
        assert isinstance(ended, Ended), "it had all the time it takes"
        return ended

    async def run_or_stay(
        self,
        command: str,
        feed: Feed,
        *,
        timeout_ms: int = 120_000,
        seconds: float = inf,
        outside: bool = False,
        git_alone: bool = False,
        stdin: Stdin = "nothing",
        take_back: Callable[[], bytes] = bytes,
    ) -> Ended | Background:
        """As `run`, but a command that still runs after so many seconds goes on as a background shell. Its output
        begins with what `take_back` returns: what was fed and is not shown yet."""
        signs = Signs()

        async def fed(data: bytes) -> None:
            signs.feed(data)
            await feed(data)

        with selector() as both:
            staying: Background | None = None
            leave_at = anyio.current_time() + max(0.0, seconds)
            job = await self._start(command, timeout_ms, None, outside=outside, git_alone=git_alone, stdin=stdin)
            try:
                async with self._judging_early(job):
                    ended = await self._follow_until(leave_at, job, fed, both)
                if ended is None:
                    staying = self._stay(command, job, take_back())
                    return staying
            except BaseException:
                with CancelScope(shield=True):
                    await self._stop(job)
                raise
            finally:
                if staying is None:
                    self._settle(job)
        ended = await self._end_git(job, ended)
        taken = await self._undo_late_names()
        refused = await self._refused(signs, job)
        unreached = tuple(job.broker.proxy.take_refused()) if job.broker.proxy else ()
        stuck = await self._stuck_files(job.broker)
        moved = self.moved()
        if moved:  # its directory may have another name now, where no command may be when it is moved back
            ended = replace(ended, directory=job.directory)
        elif ended.directory and ended.directory != job.directory:
            self.directory = ended.directory
        return replace(
            ended, quarantined=tuple(taken), refused=refused, unreached=unreached, stuck=stuck, moved=moved
        )

    def moved(self) -> tuple[MovedRoot, ...]:
        """The roots that are no longer where they were when the session began."""
        return self._brokers.moved()

    @asynccontextmanager
    async def _judging_early(self, job: Job) -> AsyncGenerator[None]:
        """Looks at files again and again that are open only to git, as long as a call waits for it."""
        if not job.broker.walls.git_alone:
            yield
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._judge_early)
            yield
            group.cancel_scope.cancel()

    async def _judge_early(self) -> None:
        while True:
            await anyio.sleep(_EARLY_SECONDS)
            with shortages_ignored():
                await to_thread.run_sync(self._brokers.judge_early)

    async def _end_git(self, job: Job, ended: Ended) -> Ended:
        """Ends what a line for git alone left running, so that nothing can change files while they are judged."""
        if not job.broker.walls.git_alone:
            return ended
        with CancelScope(shield=True):
            if job.name in self._jobs:
                await self._end_leftovers(job)
            await self._brokers.close_opened(job.broker)
        return replace(ended, left_running=0, left_names=())

    async def _stuck_files(self, broker: BrokerConnection) -> tuple[StuckFile, ...]:
        """Protected files that git could not change since the last look."""
        with shortages_ignored():
            if broker.level == "bwrap" and self._stuck.has_news(broker.walls):
                return await to_thread.run_sync(self._stuck.look, broker.walls)
        return ()

    async def _refused(self, signs: Signs, job: Job) -> tuple[RefusedWrite, ...]:
        """The writes that the sandbox refused, by what the command printed."""
        lines = signs.lines()
        if not lines:
            return ()
        where = (job.ended.directory if job.ended else "") or job.directory
        level = job.broker.level
        with shortages_ignored():
            return tuple(await to_thread.run_sync(refusals, lines, job.broker.walls, self.scope, level, where))
        return ()

    async def late_names(self, shell: Background) -> list[Quarantined]:
        """What a background shell made that other programs would run, if it has ended."""
        return [] if shell.ended is None or self._closed else await self._undo_late_names()

    async def _undo_late_names(self) -> list[Quarantined]:
        """After a command: what it made that other programs would run. In a shortage the next command looks."""
        if not self._brokers.suspect:  # only what a person let run outside the sandbox has run
            return []
        with shortages_ignored():
            running = [job.broker for job in self._jobs.values() if job.broker.level != "none"]
            taken = await to_thread.run_sync(self._brokers.undo_late_names, running)
            self._brokers.suspect = bool(running or self.moved())
            return taken
        return []

    async def rehearse(
        self, command: str, feed: Feed, *, fs: ScopedFs, timeout_ms: int = 120_000, git_alone: bool = False
    ) -> tuple[Ended, Differences]:
        """Runs a command on a copy of everything it may write, and says what it changed there. Nothing of it is kept:
        neither files, nor processes, nor the directory it went to. Raises SandboxViolation where that can't be."""
        text, shell = checked(command), find_shell(self._roots)
        with shortages_as_errors(), selector() as both:
            opens: Opens = "all" if git_alone else "ci" if names_git(text) else "none"
            return await self._rehearse(text, shell, feed, fs, timeout_ms, both, opens)

    async def _rehearse(
        self,
        text: bytes,
        shell: str,
        feed: Feed,
        fs: ScopedFs,
        timeout_ms: int,
        both: selectors.BaseSelector,
        opens: Opens,
    ) -> tuple[Ended, Differences]:
        async with self._brokers.over_copies(opens) as (broker, copies):
            job = await self._submit(broker, text, shell, timeout_ms, None)
            try:
                ended = await self._follow(job, feed, both)
            except BaseException:
                with CancelScope(shield=True):
                    await self._stop(job)
                raise
            finally:
                job.close()
                self._jobs.pop(job.name, None)
            await to_thread.run_sync(broker.close)
            found = await to_thread.run_sync(differences, copies, fs)
        return replace(ended, directory="", left_running=0, left_names=()), found

    async def _start(
        self,
        command: str,
        timeout_ms: int,
        spool: IO[bytes] | None,
        *,
        outside: bool = False,
        git_alone: bool = False,
        stdin: Stdin = "nothing",
    ) -> Job:
        if outside and not self.may_leave:
            raise SandboxViolation("nobody is asked here, so no command may run outside the sandbox")
        text = checked(command)
        shell = find_shell(self._roots)
        opens: Opens = "all" if git_alone else "ci" if names_git(text) else "none"
        with shortages_as_errors():
            broker = await self._current_broker(opens, outside)
            try:
                return await self._submit(broker, text, shell, timeout_ms, spool, stdin)
            except OSError as fault:
                if is_shortage(fault):
                    raise
                await self._brokers.lose(broker)  # it was ended by something outside: a new one takes its place, once
            broker = await self._current_broker(opens, outside)
            try:
                return await self._submit(broker, text, shell, timeout_ms, spool, stdin)
            except OSError as fault:
                raise Internal("the shell could not be reached; try again", retriable=True) from fault

    async def _current_broker(self, opens: Opens, outside: bool) -> BrokerConnection:
        """The broker for the next command, after letting go of what finished commands still hold."""
        for job in [job for job in self._jobs.values() if job.ended is not None]:
            if receive_quietly(job.line) == [b""]:
                job.close()
                self._jobs.pop(job.name, None)
        for shell in self._background.values():
            self._notice(shell)
        await self._brokers.close_unused([job.broker for job in self._jobs.values()])
        broker = await (self._outside if outside else self._brokers).current(opens)
        await self._stuck_files(broker)  # what somebody else did meanwhile
        return broker

    async def _submit(
        self,
        broker: BrokerConnection,
        text: bytes,
        shell: str,
        timeout_ms: int,
        spool: IO[bytes] | None,
        stdin: Stdin = "nothing",
    ) -> Job:
        self._numbers += 1
        with ExitStack() as sent:
            line, far = socket.socketpair(socket.AF_UNIX, KIND)
            sent.enter_context(far)
            line.setblocking(False)
            script = script_file(text)
            sent.callback(os.close, script)
            ends = open_ends(stdin)
            given = [fd for fd in (ends.source,) if fd >= 0]
            for fd in (ends.write_end, *given):
                sent.callback(os.close, fd)
            limit = timeout_ms / 1000 if timeout_ms else None
            job = Job(
                f"{self._numbers}", broker, line, ends.out, self.directory, limit, stdin=stdin, input=ends.input
            )
            fields = [b"run", job.name.encode(), b"%d" % timeout_ms, b"%d" % SPOOL_CAP, stdin.encode()]
            fields += [os.fsencode(job.directory), os.fsencode(shell), BASH if shell.endswith("bash") else SH]
            fields += broker.environment
            brokers = self._outside if broker.level == "none" else self._brokers
            fields.append(os.fsencode(f"PATH={brokers.path(broker.walls)}"))
            descriptors = [far.fileno(), ends.out, ends.write_end, script, *given]
            self._jobs[job.name] = job  # before it is sent: a broker without a command may be ended
            try:
                self._tune_pipe(ends.out)
                await broker.send(b"\0".join(fields), descriptors + ([spool.fileno()] if spool else []))
            except BaseException:
                job.close()
                del self._jobs[job.name]
                raise
        self._brokers.suspect |= broker.level != "none"
        self._brokers.suspect_of_moves |= judges_moves(broker)
        return job

    def _tune_pipe(self, out: int) -> None:
        os.set_blocking(out, False)
        if sys.platform == "linux" and len(self._jobs) < _LARGE_PIPES:
            try:
                fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
            except OSError:
                return  # over the user's allowance for pipes: the usual size does

    def _stay(self, command: str, job: Job, begins: bytes) -> Background:
        """Makes a background shell of a command in the foreground; its output goes to a file from now on."""
        with shortages_as_errors():
            spool = tempfile.TemporaryFile(prefix="gripfast-", buffering=0)  # noqa: SIM115 - lives until it has ended
            spool.write(begins)
        shell = Background(self._new_name(), command, job, spool, begun_secret=self.begun_secret)
        if job.out >= 0:
            shell.pump, job.out = Pump(job.out, spool, SPOOL_CAP), -1
        shell.handed_over_at = anyio.current_time()
        self._put_in_background(shell)
        return shell

    def handed_over(self, command: str) -> Background | None:
        """The same command, run in the same directory, that an answer of the last minute said goes on, unless its end
        was reported since."""
        since = anyio.current_time() - ATTACH_SECONDS
        for shell in reversed(self._background.values()):
            recent = shell.handed_over_at is not None and shell.handed_over_at >= since and not shell.end_reported
            if recent and shell.command == command and shell.job.directory == self.directory:
                return shell
        return None

    async def wait_for_end(self, shell: Background, seconds: float) -> bool:
        """Whether a background shell ended within so many seconds."""
        until = anyio.current_time() + seconds
        while self.is_running(shell):
            if anyio.current_time() >= until:
                shell.handed_over_at = anyio.current_time()
                return False
            await anyio.sleep(_LOOK_SECONDS)
        return True

    async def _follow(self, job: Job, feed: Feed, both: selectors.BaseSelector) -> Ended:
        ended = await self._follow_until(inf, job, feed, both)
        assert ended is not None, "it had all the time it takes"
        return ended

    async def _follow_until(
        self, leave_at: float, job: Job, feed: Feed, both: selectors.BaseSelector
    ) -> Ended | None:
        """Moves output until the supervisor reports the shell's end, then takes what is left in the pipe. None if it
        still runs at a time."""
        until = inf if job.limit is None else anyio.current_time() + job.limit + PATIENCE_SECONDS
        both.register(job.line, selectors.EVENT_READ)
        if job.out >= 0:
            both.register(job.out, selectors.EVENT_READ)
        while job.ended is None:
            ready = await next_of(both, min(until, leave_at))
            if job.out in ready and not await take(job, feed):
                both.unregister(job.out)
            if job.line in ready:
                job.ended = self._understood(job, receive(job.line))
            elif leave_at < until and anyio.current_time() >= leave_at:
                return None
            elif not ready:
                job.ended = Ended("lost")
        if job.ended.reason == "lost":
            await self._bury(job)
        if self._closed and job.ended.reason in ("lost", "stopped"):
            job.ended = Ended("closed")
        if job.out >= 0:
            await take(job, feed)
        return job.ended

    def _understood(self, job: Job, words: list[bytes]) -> Ended:
        match words:
            case [b"ended", reason, status, directory, count, *names]:
                code, number = exit_of(status)
                running = tuple(os.fsdecode(name) for name in names)
                kind = cast("Reason", reason.decode())
                return Ended(kind, code, number, os.fsdecode(directory), int(count), running)
            case [b"nodir", fault]:
                raise self._without_directory(job, fault.decode())
            case [b"failed", fault]:
                job.ended = Ended("lost")
                raise Internal(f"the command could not be started: {fault.decode()}", retriable=True)
            case _:
                return Ended("lost")

    def _without_directory(self, job: Job, fault: str) -> NotFound:
        job.ended = Ended("lost")
        self.directory = self.home
        return NotFound(
            f"nothing was run: the working directory {job.directory!r} can't be entered any more ({fault}). "
            f"The next command starts in the workspace's root; send it again if that is right"
        )

    async def _stop(self, job: Job) -> None:
        """Ends a command and all it started: TERM, then KILL."""
        if job.ended is None:
            job.say(b"stop")
            job.limit = 0.0
            try:
                with selectors.DefaultSelector() as both:
                    await self._follow(job, discard, both)
            except OSError:  # no descriptor left to wait with: hanging up ends it too
                job.ended = Ended("stopped")
                job.close()

    async def _bury(self, job: Job) -> None:
        """The supervisor is gone or stuck: the broker ends it and whatever it left, or is itself replaced."""
        with CancelScope(shield=True):
            try:
                with anyio.fail_after(PATIENCE_SECONDS):
                    await job.broker.bury(job.name)
            except (OSError, TimeoutError):
                await self._brokers.lose(job.broker)

    def _settle(self, job: Job) -> None:
        """Closes the line of a finished command, unless something it started still runs, which that would end."""
        job.close_output()
        if job.ended is not None and job.ended.left_running and not self._closed:
            job.say(b"drain")
        else:
            job.close()
            self._jobs.pop(job.name, None)

    # ---- in the background ----

    async def start(self, command: str, *, stdin: Stdin = "nothing") -> Background:
        """Starts a command that runs until it ends, is killed, or the session closes."""
        with shortages_as_errors():
            spool = tempfile.TemporaryFile(prefix="gripfast-")  # noqa: SIM115 - lives until the command has ended
        try:
            job = await self._start(command, 0, spool, stdin=stdin)
        except BaseException:
            spool.close()
            raise
        job.close_output()
        shell = Background(self._new_name(), command, job, spool, begun_secret=self.begun_secret)
        self._put_in_background(shell)
        return shell

    def _put_in_background(self, shell: Background) -> None:
        self._background[shell.name] = shell
        if self._board is not None:
            self._board.begins(shell.name, shell.command)
            self._look_later(self._board)

    def _look_later(self, board: Board) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_BOARD_SECONDS, self._look_on_board, board)

    def _look_on_board(self, board: Board) -> None:
        """Keeps the board up to date while a background shell runs, and ends those that a person wants to end."""
        self._timer = None
        if self._closed:
            return
        for shell in self._background.values():
            if not shell.end_on_board:
                self._show_on_board(shell, board)
        if not all(shell.end_on_board for shell in self._background.values()):
            self._look_later(board)

    def _show_on_board(self, shell: Background, board: Board) -> None:
        self._notice(shell)
        if shell.ended is None and not shell.ended_by_user and board.wants_end(shell.name):
            shell.ended_by_user = True
            shell.job.say(b"stop")
        shell.end_on_board = shell.ended is not None
        board.shows(shell.name, shell.ready, shell.read, always=shell.end_on_board)
        if shell.ended is not None:
            board.ends(shell.name, shell.ended.in_words)

    def look(self, name: str) -> Background:
        """A background shell as it is now."""
        shell = self._background.get(name)
        if shell is None and name in self.elsewhere:
            raise NotFound(f"{name} {self.elsewhere[name]}")
        if shell is None:
            known = ", ".join(self._background) or "none was started"
            raise NotFound(f"no background shell {name!r}; known: {known}")
        self._notice(shell)
        if shell.fault is not None:
            fault, shell.fault = shell.fault, None
            raise fault
        return shell

    async def type_in(self, shell: Background, text: str) -> int:
        """Sends text to what a background shell reads from. Returns how many bytes it did not take."""
        self.require_input(shell)
        return await type_in(shell.job, text)

    def require_input(self, shell: Background) -> None:
        """Raises Conflict if nothing reads what would be sent to a background shell."""
        if not self.is_running(shell):
            raise Conflict(f"{shell.name} has ended, so nothing reads what is sent to it")
        require_input(shell.job)

    async def settled(self, shell: Background, wait_ms: int, text: str) -> None:
        """Waits until a background shell has answered a text, by more than a terminal's echo of it, and is quiet; or
        has ended."""
        echo = _echoed(text) if shell.job.stdin == "tty" else 0
        with anyio.move_on_after(wait_ms / 1000):
            size = -1
            while (shell.ready <= shell.seen + echo or shell.size != size) and self.is_running(shell):
                size = shell.size
                await anyio.sleep(_QUIET_SECONDS)

    def _new_name(self) -> str:
        """A name that no background shell of the session has had, here or elsewhere."""
        taken = [int(name[5:]) for name in (*self._background, *self.elsewhere) if name[5:].isdecimal()]
        return f"bash_{max(taken, default=0) + 1}"

    def running(self) -> list[str]:
        """The background shells that have not ended."""
        return [name for name, shell in self._background.items() if self.is_running(shell)]

    async def news(self, shell: Background, wait_ms: int, size: int | None = None) -> None:
        """Waits until a background shell has printed more than these bytes, or than what was looked at, or has
        ended."""
        pause, size = 0.01, shell.seen if size is None else size
        with anyio.move_on_after(wait_ms / 1000):
            while shell.ready <= size and self.is_running(shell):
                await anyio.sleep(pause)
                pause = min(pause * 2, 0.2)

    def is_running(self, shell: Background) -> bool:
        """Whether a background shell has not ended yet, also when this is closed already."""
        if self._closed:
            return False
        self._notice(shell)
        return shell.ended is None

    def _notice(self, shell: Background) -> None:
        """Looks whether a background command has ended. One that has keeps no descriptor: its output moves to the
        file that the session has for all of them."""
        job = shell.job
        if job.ended is None:
            try:
                words = receive(job.line)
            except BlockingIOError:
                return
            try:
                job.ended = self._understood(job, words)
            except ToolError as fault:
                shell.fault = fault
            shell.end_output()
            self._settle(job)
        if shell.length is None and job.name not in self._jobs:
            with suppress(OSError):  # no room for it: it stays where it is
                shell.move_to(self._archive())

    def _archive(self) -> IO[bytes]:
        if self._outputs is None:
            self._outputs = tempfile.TemporaryFile(prefix="gripfast-", buffering=0)  # noqa: SIM115 - closed at the end
        return self._outputs

    async def kill(self, name: str) -> Background:
        """Ends a background shell and everything it started: TERM, then KILL after two seconds."""
        shell = self.look(name)
        job = shell.job
        if job.ended is None:
            await self._stop(job)
            shell.end_output()
            self._settle(job)
        elif job.name in self._jobs:
            await self._end_leftovers(job)
        self._notice(shell)
        return shell

    async def _end_leftovers(self, job: Job, word: bytes = b"stop") -> None:
        """What a finished command left running; its supervisor hangs up when it is gone."""
        job.say(word)
        with anyio.move_on_after(PATIENCE_SECONDS):
            while receive_quietly(job.line) != [b""]:
                await wait_readable(job.line)
        job.close()
        self._jobs.pop(job.name, None)

    # ---- the end ----

    async def close(self) -> None:
        """Ends every process of the session, running, left behind or in the background."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._board is not None:
            self._board.close()
        self._brokers.start_no_more()
        self._outside.start_no_more()
        with CancelScope(shield=True):
            await self._stop_all()
            await self._outside.close()
            await self._brokers.close()
            for shell in self._background.values():
                shell.end_output()
            for spool in (self._outputs, *(shell.spool for shell in self._background.values())):
                if spool is not None:
                    spool.close()
            await self._brokers.remove_temporary()

    async def _stop_all(self) -> None:
        """Asks politely first, everything at once."""
        jobs = list(self._jobs.values())
        async with anyio.create_task_group() as group:
            for job in jobs:
                if job.ended is not None or any(job is shell.job for shell in self._background.values()):
                    group.start_soon(self._end_leftovers, job, b"end")
                else:
                    group.start_soon(self._end_followed, job)

    async def _end_followed(self, job: Job) -> None:
        """A command that a call waits for: that call learns of its end."""
        job.say(b"end")
        with anyio.move_on_after(PATIENCE_SECONDS):
            while job.ended is None:
                await anyio.sleep(0.01)

    async def __aenter__(self) -> Shells:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def shells_over(
    fs: ScopedFs,
    sandbox: SandboxMode = "auto",
    env: Iterable[str] = (),
    sockets: Iterable[str] = (),
    *,
    directory: str | None = None,
    network: Network = ON,
    board: Board | None = None,
) -> Shells:
    """Shells for the scope of a file system, which share its temporary directory."""
    share_tmp(fs, sandbox)
    return Shells(
        fs.scope,
        sandbox=sandbox,
        allow=tuple(env),
        directory=directory,
        tmp=fs.tmp,
        sockets=tuple(sockets),
        network=network,
        board=board,
    )


def _echoed(text: str) -> int:
    """How many bytes a terminal prints of a text that is typed into it: CR LF for LF, `^C` for Ctrl-C."""
    return len(text.encode()) + sum(char < " " and char not in "\t\x04" for char in text)
