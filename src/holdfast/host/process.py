"""Shells: the commands of one session. The async side of the broker, which starts and ends the processes."""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import os
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import IO, Literal, TypeAlias, cast

import anyio
from anyio import CancelScope, to_thread, wait_readable, wait_writable

from holdfast.errors import Internal, InvalidArgument, NotFound
from holdfast.host.broker import CHUNK, GRACE_SECONDS, PIPE_SIZE, REPORT, SCRIPT, SWEEP_SECONDS
from holdfast.host.environment import command_environment
from holdfast.host.sandbox import (
    Mode,
    Sandbox,
    broker_file,
    bwrap_arguments,
    choose,
    find_program,
    interpreter,
    landlock_ruleset,
)
from holdfast.host.scope import Scope
from holdfast.host.walls import Walls, fingerprint, walls_of

Reason: TypeAlias = Literal["exited", "timeout", "stopped", "lost"]
Feed: TypeAlias = Callable[[bytes], Awaitable[None]]

LONGEST_COMMAND = 1024 * 1024
# What one background shell's output may take on disk; past it the output is read and dropped.
SPOOL_CAP = 64 * 1024 * 1024
_KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
_START_SECONDS = 20.0
# How long after its time a command may take to be ended before the supervisor itself is given up.
_PATIENCE_SECONDS = GRACE_SECONDS + SWEEP_SECONDS + 3.0
_MARK = "HOLDFAST_SHELL"
# Larger pipes make a flood cheaper, but a user's pipes share one allowance: with many commands they stay small.
_LARGE_PIPES = 16
_PR_SET_DUMPABLE = 4


def _wrapper(builtin: str, read: str) -> bytes:
    """The text bash runs: it reads the command, evaluates it, and tells at every kind of end where it was.

    All on one line, so that line numbers in error messages are the command's own. A trap set by the command, or an
    `exec`, costs the report at most; the directory then stays what it was.
    """
    tell = f'{{ {builtin}pwd -P && {builtin}printf "\\0"; }} >&{REPORT}'
    return (
        f"{read} exec {SCRIPT}<&-; trap '{{ {tell}; }} 2>/dev/null' EXIT; "
        f'eval "$_holdfast"; {{ _holdfast=$?; {tell}; set +x; }} 2>/dev/null; exit "$_holdfast"'
    ).encode()


_BASH = _wrapper("builtin ", f"IFS= read -r -d '' _holdfast <&{SCRIPT};")
_SH = _wrapper("", f"_holdfast=$(cat <&{SCRIPT});")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `exit_code` or `signal` is set, unless its supervisor was lost."""

    reason: Reason
    exit_code: int | None = None
    signal: int | None = None
    directory: str = ""
    left_running: int = 0
    left_names: tuple[str, ...] = ()


@dataclass(slots=True)
class _Job:
    """A command on its way: the line to its supervisor, and the pipe its output comes through."""

    name: str
    broker: _Broker
    line: socket.socket
    out: int
    directory: str
    limit: float | None
    ended: Ended | None = None

    def say(self, word: bytes) -> None:
        try:
            self.line.send(word)
        except OSError:
            return  # nobody there: its end is on the line

    def close_output(self) -> None:
        if self.out >= 0:
            os.close(self.out)
            self.out = -1

    def close(self) -> None:
        self.close_output()
        self.line.close()


@dataclass(slots=True)
class Background:
    """A command that runs beside the session, its output in an unnamed file."""

    name: str
    command: str
    job: _Job
    spool: IO[bytes]
    seen: int = 0

    @property
    def ended(self) -> Ended | None:
        return self.job.ended

    @property
    def size(self) -> int:
        return os.fstat(self.spool.fileno()).st_size

    @property
    def full(self) -> bool:
        """The output reached its cap; what came after was dropped."""
        return self.size >= SPOOL_CAP

    def read(self, start: int, size: int) -> bytes:
        return os.pread(self.spool.fileno(), size, start)

    def news(self, offset: int | None = None) -> Iterator[bytes]:
        """What was printed since the last look, or after `offset` lines, in pieces. It is then seen."""
        end = self._whole_characters(self.size)
        start = self.seen if offset is None else self._line_start(offset, end)
        self.seen = end
        while start < end:
            piece = self.read(start, min(CHUNK, end - start))
            if not piece:
                return
            start += len(piece)
            yield piece

    def _whole_characters(self, end: int) -> int:
        """While it runs, a character of which only a part has come is left for the next look."""
        if self.ended is not None:
            return end
        last = self.read(max(0, end - 3), 3)
        for back in range(1, len(last) + 1):
            byte = last[-back]
            if byte >= 0xC0:
                return end - back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else end
            if byte < 0x80:
                return end
        return end

    def _line_start(self, lines: int, end: int) -> int:
        start = 0
        while lines > 0 and start < end:
            piece = self.read(start, CHUNK)
            count = piece.count(b"\n")
            if count >= lines:
                for _ in range(lines):
                    start += piece.index(b"\n") + 1
                    piece = piece[piece.index(b"\n") + 1 :]
                return start
            lines -= count
            start += len(piece)
        return min(start, end)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def hide_process() -> None:
    """Keeps this process's memory and environment from being read by commands of the same user.

    Called by a server as it starts; a library does not decide that for the program it is in.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def promises() -> str:
    """One line for a person: how thoroughly commands are ended on this system."""
    if sys.platform == "linux":
        return "every process a command starts is ended with the session, also after setsid or a double fork"
    return (
        "this system has no subreaper: a process that forks twice and starts a session of its own "
        "can outlive the command"
    )


class Shells:
    """Runs commands for one session. The broker starts with the first command; `close` ends everything."""

    def __init__(
        self,
        scope: Scope,
        *,
        sandbox: Mode | Sandbox = "auto",
        allow: Sequence[str] = (),
        directory: str | None = None,
    ) -> None:
        self.scope = scope
        self.home = scope.roots[0].real
        self.directory = directory or self.home
        self.sandbox = sandbox if isinstance(sandbox, Sandbox) else choose(sandbox)
        self._roots = tuple(root.real for root in scope.roots)
        self._allow = tuple(allow)
        self.mark = secrets.token_hex(8)
        self._temporary = ""
        self._broker: _Broker | None = None
        self._retired: list[_Broker] = []
        self._starting = anyio.Lock()
        self._jobs: dict[str, _Job] = {}
        self._background: dict[str, Background] = {}
        self._numbers = 0
        self._closed = False

    # ---- one command ----

    async def run(self, command: str, feed: Feed, *, timeout_ms: int = 120_000) -> Ended:
        """Runs a command to its end. Its output goes to `feed` as it comes, stdout and stderr in order.

        Cancelled, or when `feed` fails, everything the command started is ended before this returns.
        """
        job = await self._start(command, timeout_ms, None)
        try:
            ended = await self._follow(job, feed)
        except BaseException:
            with CancelScope(shield=True):
                await self._stop(job)
            raise
        finally:
            self._settle(job)
        if ended.directory and ended.directory != job.directory:
            self.directory = ended.directory
        return ended

    async def _start(self, command: str, timeout_ms: int, spool: IO[bytes] | None) -> _Job:
        text = checked(command)
        shell = find_shell(self._roots)
        broker = await self._current_broker()
        try:
            return await self._submit(broker, text, shell, timeout_ms, spool)
        except OSError:  # the broker was ended by something outside: a new one takes its place, once
            await self._lose(broker)
        broker = await self._current_broker()
        try:
            return await self._submit(broker, text, shell, timeout_ms, spool)
        except OSError as fault:
            raise Internal("the shell could not be reached; try again", retriable=True) from fault

    async def _submit(
        self, broker: _Broker, text: bytes, shell: str, timeout_ms: int, spool: IO[bytes] | None
    ) -> _Job:
        self._numbers += 1
        line, far = socket.socketpair(socket.AF_UNIX, _KIND)
        line.setblocking(False)
        out, write_end = os.pipe()
        script = _script(text)
        limit = timeout_ms / 1000 if timeout_ms else None
        job = _Job(f"{self._numbers}", broker, line, out, self.directory, limit)
        fields = [b"run", job.name.encode(), b"%d" % timeout_ms, b"%d" % SPOOL_CAP, os.fsencode(job.directory)]
        fields += [os.fsencode(shell), _BASH if shell.endswith("bash") else _SH, *broker.environment]
        descriptors = [far.fileno(), out, write_end, script]
        try:
            self._tune_pipe(out)
            await broker.send(b"\0".join(fields), descriptors + ([spool.fileno()] if spool else []))
        except BaseException:
            job.close()
            raise
        finally:
            far.close()
            os.close(write_end)
            os.close(script)
        self._jobs[job.name] = job
        return job

    def _tune_pipe(self, out: int) -> None:
        os.set_blocking(out, False)
        if sys.platform == "linux" and len(self._jobs) < _LARGE_PIPES:
            try:
                fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
            except OSError:
                return  # over the user's allowance for pipes: the usual size does

    async def _follow(self, job: _Job, feed: Feed) -> Ended:
        """Moves output until the supervisor reports the shell's end, then takes what is left in the pipe."""
        until = inf if job.limit is None else anyio.current_time() + job.limit + _PATIENCE_SECONDS
        with selectors.DefaultSelector() as both:
            both.register(job.line, selectors.EVENT_READ)
            if job.out >= 0:
                both.register(job.out, selectors.EVENT_READ)
            while job.ended is None:
                ready = await _next_of(both, until)
                if job.out in ready and not await _take(job, feed):
                    both.unregister(job.out)
                if job.line in ready:
                    job.ended = self._understood(job, _receive(job.line))
                elif not ready:
                    job.ended = Ended("lost")
        if job.ended.reason == "lost":
            await self._bury(job)
        if job.out >= 0:
            await _take(job, feed)
        return job.ended

    def _understood(self, job: _Job, words: list[bytes]) -> Ended:
        match words:
            case [b"ended", reason, status, directory, count, *names]:
                code, number = _exit(status)
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

    def _without_directory(self, job: _Job, fault: str) -> NotFound:
        job.ended = Ended("lost")
        self.directory = self.home
        return NotFound(
            f"nothing was run: the working directory {job.directory!r} can't be entered any more ({fault}). "
            f"The next command starts in the workspace's root; send it again if that is right"
        )

    async def _stop(self, job: _Job) -> None:
        """Ends a command and all it started: TERM, then KILL."""
        if job.ended is None:
            job.say(b"stop")
            job.limit = 0.0
            await self._follow(job, _discard)

    async def _bury(self, job: _Job) -> None:
        """The supervisor is gone or stuck: the broker ends it and whatever it left, or is itself replaced."""
        with CancelScope(shield=True):
            try:
                with anyio.fail_after(_PATIENCE_SECONDS):
                    await job.broker.bury(job.name)
            except (OSError, TimeoutError):
                await self._lose(job.broker)

    def _settle(self, job: _Job) -> None:
        """A finished command's line is closed, unless something of it still runs: then it stays as its leash."""
        job.close_output()
        if job.ended is not None and job.ended.left_running and not self._closed:
            job.say(b"drain")
        else:
            job.close()
            self._jobs.pop(job.name, None)

    # ---- in the background ----

    async def start(self, command: str) -> Background:
        """Starts a command that runs until it ends, is killed, or the session closes."""
        spool = tempfile.TemporaryFile(prefix="holdfast-")  # noqa: SIM115 - lives as long as the shell is known
        try:
            job = await self._start(command, 0, spool)
        except BaseException:
            spool.close()
            raise
        job.close_output()
        shell = Background(f"bash_{len(self._background) + 1}", command, job, spool)
        self._background[shell.name] = shell
        return shell

    def look(self, name: str) -> Background:
        """A background shell as it is now."""
        shell = self._background.get(name)
        if shell is None:
            known = ", ".join(self._background) or "none was started"
            raise NotFound(f"no background shell {name!r}; known: {known}")
        self._notice(shell.job)
        return shell

    def _notice(self, job: _Job) -> None:
        if job.ended is None:
            try:
                words = _receive(job.line)
            except BlockingIOError:
                return
            job.ended = self._understood(job, words)
            self._settle(job)

    async def kill(self, name: str) -> Background:
        """Ends a background shell and everything it started: TERM, then KILL after two seconds."""
        shell = self.look(name)
        job = shell.job
        if job.ended is None:
            await self._stop(job)
            self._settle(job)
        elif job.name in self._jobs:
            await self._end_leftovers(job)
        return shell

    async def _end_leftovers(self, job: _Job) -> None:
        """What a finished command left running; its supervisor hangs up when it is gone."""
        job.say(b"stop")
        with anyio.move_on_after(_PATIENCE_SECONDS):
            while _receive_quietly(job.line) != [b""]:
                await wait_readable(job.line)
        job.close()
        self._jobs.pop(job.name, None)

    # ---- the broker ----

    async def _current_broker(self) -> _Broker:
        async with self._starting:
            if self._closed:
                raise Internal("the session is closed; its shells are gone")
            self._let_go()
            broker = self._broker
            if broker is not None and broker.holds(self.scope):
                return broker
            if broker is not None:
                self._retired.append(broker)
                self._broker = None
            self._broker = await self._start_broker()
            return self._broker

    def _let_go(self) -> None:
        """Forgets finished commands whose leftovers have ended by themselves."""
        for job in [job for job in self._jobs.values() if job.ended is not None]:
            if _receive_quietly(job.line) == [b""]:
                job.close()
                self._jobs.pop(job.name, None)

    async def _start_broker(self) -> _Broker:
        if not self._temporary:
            self._temporary = tempfile.mkdtemp(prefix="holdfast-")
        private = "/tmp" if self.sandbox.level == "bwrap" else self._temporary
        variables = command_environment(temporary=private, allow=self._allow, roots=self._roots)
        variables[_MARK] = self.mark
        broker = await to_thread.run_sync(_Broker, self.scope, self.sandbox, self._temporary, variables)
        try:
            await broker.ready()
        except BaseException:
            await self._retire(broker, keep=True)
            raise
        return broker

    async def _lose(self, broker: _Broker) -> None:
        """The broker is gone or does not answer: its warden ends all that is left of it."""
        if self._broker is broker:
            self._broker = None
        await self._retire(broker, keep=True)
        if not self._live_brokers():
            await to_thread.run_sync(_sweep_marked, self.mark)

    def _live_brokers(self) -> bool:
        return self._broker is not None or bool(self._retired)

    async def _retire(self, broker: _Broker, *, keep: bool) -> None:
        with CancelScope(shield=True):
            await to_thread.run_sync(broker.close, keep)

    async def close(self) -> None:
        """Ends every process of the session, running, left behind or in the background."""
        self._closed = True
        with CancelScope(shield=True):
            await self._stop_all()
            brokers = [broker for broker in (*self._retired, self._broker) if broker is not None]
            self._broker, self._retired = None, []
            for broker in brokers:
                await self._retire(broker, keep=False)
            for shell in self._background.values():
                shell.spool.close()
            if self._temporary:
                await to_thread.run_sync(lambda: shutil.rmtree(self._temporary, ignore_errors=True))

    async def _stop_all(self) -> None:
        """Asks politely first, everything at once."""
        jobs = list(self._jobs.values())
        async with anyio.create_task_group() as group:
            for job in jobs:
                if job.ended is not None or any(job is shell.job for shell in self._background.values()):
                    group.start_soon(self._end_leftovers, job)

    async def __aenter__(self) -> Shells:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Broker:
    """One broker and its warden, built around the walls as they were when it started."""

    def __init__(self, scope: Scope, sandbox: Sandbox, temporary: str, variables: dict[str, str]) -> None:
        self.environment = [os.fsencode(f"{name}={value}") for name, value in variables.items()]
        self._scope, self._sandbox = scope, sandbox
        self._walls = walls_of(scope, temporary)
        self._fingerprint = fingerprint(scope, self._walls)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the broker
        self._requests, far = socket.socketpair(socket.AF_UNIX, _KIND)
        self._requests.setblocking(False)
        live, self._live = os.pipe()
        self._burying, self._sending = anyio.Lock(), anyio.Lock()
        ruleset = landlock_ruleset([*self._walls.write, temporary]) if sandbox.level == "landlock" else -1
        try:
            self._warden = _spawn_warden(live, far.fileno(), ruleset, self._walls, sandbox, self._errors)
        finally:
            os.close(live)
            far.close()
            if ruleset >= 0:
                os.close(ruleset)
        # Forgotten without being closed, or at the program's end: hanging up is enough to end everything.
        self._release = weakref.finalize(self, _hang_up, self._live, self._requests, self._warden)

    def holds(self, scope: Scope) -> bool:
        """Alive, and its walls still stand where they were built."""
        if self._warden.poll() is not None:
            return False
        return self._sandbox.level == "none" or fingerprint(scope, self._walls) == self._fingerprint

    async def ready(self) -> None:
        with anyio.move_on_after(_START_SECONDS):
            await wait_readable(self._requests)
            if _receive_quietly(self._requests) == [b"ready"]:
                return
        self._errors.seek(0)
        words = self._errors.read(4000).decode(errors="replace").strip().splitlines()
        said = f": {words[-1]}" if words else ""
        raise Internal(f"the shell's broker did not start ({self._sandbox.level}{said})", retriable=True)

    async def send(self, data: bytes, descriptors: Sequence[int]) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        async with self._sending:
            while True:
                try:
                    self._requests.sendmsg([data], rights)
                    return
                except BlockingIOError:
                    await wait_writable(self._requests)

    async def bury(self, name: str) -> None:
        async with self._burying:
            await self.send(b"bury\0" + name.encode(), ())
            await wait_readable(self._requests)
            if _receive(self._requests) != [b"buried", name.encode()]:
                raise ConnectionResetError("the broker is gone")

    def close(self, keep: bool) -> None:
        """Hangs up. The warden ends whatever is left, and removes the temporary directory unless told to keep it."""
        if keep:
            with contextlib.suppress(OSError):
                os.write(self._live, b"k")
        self._release()
        self._errors.close()


def _hang_up(live: int, requests: socket.socket, warden: subprocess.Popen[bytes]) -> None:
    requests.close()
    os.close(live)
    try:
        warden.send_signal(signal.SIGCONT)
        warden.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        warden.kill()
        warden.wait()


def _spawn_warden(
    live: int, requests: int, ruleset: int, walls: Walls, sandbox: Sandbox, errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    program = [interpreter(), "-I", "-S", broker_file()]
    inside = bwrap_arguments(sandbox, walls, [*program, "serve", f"{requests}"]) if sandbox.level == "bwrap" else []
    return subprocess.Popen(
        [*program, "warden", f"{live}", f"{requests}", f"{ruleset}", walls.temporary, *inside],
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=[descriptor for descriptor in (live, requests, ruleset) if descriptor >= 0],
        start_new_session=True,
    )


def checked(command: str) -> bytes:
    """The command as bash will read it, or why it can't be."""
    if not command.strip():
        raise InvalidArgument("`command` is empty; give a shell command")
    if "\0" in command:
        raise InvalidArgument(f"`command` has a NUL character at {command.index(chr(0))}; a shell can't take one")
    try:
        text = command.encode()
    except UnicodeEncodeError as fault:
        raise InvalidArgument(f"`command` has half a surrogate pair at {fault.start}") from None
    if len(text) > LONGEST_COMMAND:
        raise InvalidArgument(
            f"`command` has {len(text)} bytes, at most {LONGEST_COMMAND} can be run; write it to a file and run that"
        )
    return text


def find_shell(roots: Sequence[str]) -> str:
    shell = find_program("bash", roots) or find_program("sh", roots)
    if not shell:
        raise Internal("there is no bash and no sh on this machine")
    return shell


def _script(text: bytes) -> int:
    """A descriptor from which the shell reads its command."""
    if sys.platform == "linux":
        script = os.memfd_create("command", os.MFD_CLOEXEC)
    else:
        script, path = tempfile.mkstemp()
        os.unlink(path)
    with open(script, "wb", closefd=False) as file:
        file.write(text)
    os.lseek(script, 0, os.SEEK_SET)
    return script


async def _next_of(both: selectors.BaseSelector, until: float) -> list[object]:
    """What can be read now, waited for; nothing when the time is over."""
    with anyio.CancelScope(deadline=until):
        await wait_readable(cast("selectors.EpollSelector", both).fileno())
    return [key.fileobj for key, _ in both.select(0)]


async def _take(job: _Job, feed: Feed) -> bool:
    """Feeds what is in the pipe, at most about what a large one holds. False at its end."""
    taken = 0
    while taken < PIPE_SIZE:
        try:
            data = os.read(job.out, CHUNK)
        except BlockingIOError:
            return True
        if not data:
            return False
        taken += len(data)
        await feed(data)
    return True


async def _discard(_: bytes) -> None:
    """For output that nobody waits for any more."""


def _receive(line: socket.socket) -> list[bytes]:
    try:
        return line.recv(64 * 1024).split(b"\0")
    except BlockingIOError:
        raise
    except OSError:
        return [b""]


def _receive_quietly(line: socket.socket) -> list[bytes]:
    try:
        return _receive(line)
    except BlockingIOError:
        return []


def _exit(status: bytes) -> tuple[int | None, int | None]:
    if not status:
        return None, None
    code = os.waitstatus_to_exitcode(int(status))
    return (code, None) if code >= 0 else (None, -code)


def _sweep_marked(mark: str) -> None:
    """The last resort, when warden and broker were both killed: ends what carries the session's mark."""
    if sys.platform != "linux":
        return
    wanted = f"{_MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if name.isdigit() and wanted in _environment_of(name):
            try:
                os.kill(int(name), signal.SIGKILL)
            except OSError:
                continue


def _environment_of(pid: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []
