"""The connection to one broker and its warden: starting it, sending requests, hanging up."""

from __future__ import annotations

import array
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from typing import IO

import anyio
from anyio import wait_readable, wait_writable

from gripfast.errors import Internal
from gripfast.host.kernel.features import SWITCH, switched_off
from gripfast.host.kernel.landlock import scope_ruleset, write_ruleset
from gripfast.host.kernel.limits import usual_descriptor_limit
from gripfast.host.kernel.shortage import is_shortage
from gripfast.host.program.programs import interpreter
from gripfast.host.shell.broker import DESCRIPTORS, GRACE_SECONDS, HELD, LAST_LOOK, SEATBELT, SWEEP_SECONDS
from gripfast.host.shell.line import KIND, receive, receive_with_socket
from gripfast.host.shell.network import ON, Network
from gripfast.host.shell.proxy import Proxy
from gripfast.host.shell.rehearsal import Copies, overlay_program
from gripfast.host.shell.sandbox import Level, Sandbox, broker_file, bwrap_arguments, seatbelt_profile
from gripfast.host.shell.walls import Mount, Walls
from gripfast.records import dataclass

_START_SECONDS = 20.0
# How long ending a command may take after its time limit before the supervisor counts as lost.
PATIENCE_SECONDS = GRACE_SECONDS + SWEEP_SECONDS + 3.0


@dataclass(frozen=True, slots=True)
class LastLook:
    """A program that a warden starts when the server is gone, and the descriptors that it inherits."""

    words: tuple[str, ...]
    descriptors: tuple[int, ...]


class MisplacedError(Exception):
    """A place changed while the walls were built around it."""


class BrokerConnection:
    """One broker and its warden, built around the walls as they were when it started."""

    def __init__(
        self,
        walls: Walls,
        sandbox: Sandbox,
        variables: dict[str, str],
        copies: Copies | None = None,
        network: Network = ON,
        last_look: LastLook | None = None,
    ) -> None:
        """With `copies`, what commands write goes there; that needs bubblewrap. `last_look` is a program to start
        when the server is gone."""
        self.environment = [os.fsencode(f"{name}={value}") for name, value in variables.items()]
        self._sandbox, self.walls, self._network = sandbox, walls, network
        self.proxy: Proxy | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the broker
        self._requests, far = socket.socketpair(socket.AF_UNIX, KIND)
        self._requests.setblocking(False)
        live, self._live = os.pipe()
        self._burying, self._sending = anyio.Lock(), anyio.Lock()
        try:
            environment = _warden_environment(walls, sandbox, network, last_look)
            held = last_look.descriptors if last_look else ()
            self._warden = _spawn_warden(
                live, far.fileno(), walls, sandbox, self._errors, copies, network, environment, held
            )
        except BaseException:
            self._errors.close()
            self._requests.close()
            os.close(self._live)
            raise
        finally:
            os.close(live)
            far.close()
        # If it is never closed, or the program ends, hanging up is enough to end everything.
        self._release = weakref.finalize(self, _hang_up, self._live, self._requests, self._warden)

    @property
    def level(self) -> Level:
        """The sandbox that it starts commands in."""
        return self._sandbox.level

    def holds(self, walls: Walls) -> bool:
        """Whether it is alive and its walls are the ones wanted now."""
        return self._warden.poll() is None and (not self._sandbox.confines or walls == self.walls)

    async def ready(self) -> None:
        with anyio.move_on_after(_START_SECONDS):
            await wait_readable(self._requests)
            words, listener = receive_with_socket(self._requests)
            match words:
                case [b"ready"]:
                    self._use_proxy(listener)
                    return
                case [b"misplaced", path]:
                    raise MisplacedError(os.fsdecode(path))
                case _:
                    pass
        self._errors.seek(0)
        words = self._errors.read(4000).decode(errors="replace").strip().splitlines()
        said = f": {words[-1]}" if words else ""
        raise Internal(f"the shell's broker did not start ({self._sandbox.level}{said})", retriable=True)

    def _use_proxy(self, listener: socket.socket | None) -> None:
        """Serves commands that have no network but a list, at the door that the broker opened among them."""
        if listener is not None:
            self.proxy = Proxy(listener, self._network)
            self.environment += [os.fsencode(f"{name}={value}") for name, value in self.proxy.variables().items()]
            weakref.finalize(self, self.proxy.close)

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
            if receive(self._requests) != [b"buried", name.encode()]:
                raise ConnectionResetError("the broker is gone")

    def close(self, look: bool = False) -> None:
        """Hangs up. The warden ends whatever is left. It keeps the temporary directory, which it would remove if the
        server were killed. `look`: then it starts the last look, which happens even if the server is killed now."""
        if self._release.alive:
            with contextlib.suppress(OSError):
                os.write(self._live, b"l" if look else b"k")
        self._release()
        if self.proxy is not None:
            self.proxy.close()
        self._errors.close()


def _hang_up(live: int, requests: socket.socket, warden: subprocess.Popen[bytes]) -> None:
    requests.close()
    os.close(live)
    try:
        warden.send_signal(signal.SIGCONT)
        warden.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        warden.kill()
        warden.wait()


def _spawn_warden(
    live: int,
    requests: int,
    walls: Walls,
    sandbox: Sandbox,
    errors: IO[bytes],
    copies: Copies | None,
    network: Network,
    environment: dict[str, str],
    held: Sequence[int],
) -> subprocess.Popen[bytes]:
    program = [interpreter(), "-I", "-S", broker_file()]
    with contextlib.ExitStack() as stack:
        ruleset = _ruleset(walls, sandbox, network)
        if ruleset >= 0:
            stack.callback(os.close, ruleset)
        listens = network.kind == "list"
        inside, passed = _inside(requests, ruleset, walls, sandbox, program, stack, copies, listens=listens)
        own_ruleset = ruleset if sandbox.level == "landlock" else -1
        return subprocess.Popen(
            [*program, "warden", f"{live}", f"{requests}", f"{own_ruleset}", walls.temporary, *inside],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[descriptor for descriptor in (live, requests, ruleset, *passed, *held) if descriptor >= 0],
            start_new_session=True,
        )


def _ruleset(walls: Walls, sandbox: Sandbox, network: Network) -> int:
    if sandbox.level == "landlock":
        write = [*walls.allowed, walls.temporary, *walls.caches.folders]
        return write_ruleset(write, walls.hidden, network=network.kind == "on")
    return scope_ruleset() if sandbox.level == "bwrap" else -1


def _inside(
    requests: int,
    ruleset: int,
    walls: Walls,
    sandbox: Sandbox,
    program: list[str],
    stack: contextlib.ExitStack,
    copies: Copies | None,
    *,
    listens: bool,
) -> tuple[list[str], list[int]]:
    """The command line that starts the broker inside bubblewrap, and the descriptors that go with it."""
    if sandbox.level != "bwrap":
        return [], []
    sources = {mount.path: _held(mount, stack) for mount in walls.mounts if mount.kind != "hide"}
    checks = _checks(walls, stack, are_copies=copies is not None)
    broker = [*program, "serve", f"{requests}", f"{ruleset}", f"{checks}", f"{int(listens)}"]
    arguments = bwrap_arguments(sandbox, walls, sources, broker)
    if copies is not None:
        spec = _in_memory("copies", copies.rows(sources.items()), stack)
    elif walls.configs:
        spec = _in_memory("links", _link_rows(walls), stack)
    else:
        return arguments, [*sources.values(), checks]
    return [*overlay_program(spec), *arguments], [*sources.values(), checks, spec]


def _link_rows(walls: Walls) -> bytes:
    rows = ((link.path, *link.identity, link.target) for link in walls.configs)
    fields = (("links", walls.temporary), *(("link", *row) for row in rows))
    return b"".join(b"".join(os.fsencode(f"{field}") + b"\0" for field in row) + b"\n\n" for row in fields)


def _held(mount: Mount, stack: contextlib.ExitStack) -> int:
    """A descriptor of what is mounted: the place itself, or the copy that lies over it."""
    place = _held_place(mount.path, mount.identity[:2], stack)
    return place if mount.copy is None else _held_place(mount.copy.folder, mount.copy.identity, stack)


def _held_place(path: str, identity: tuple[int, int], stack: contextlib.ExitStack) -> int:
    """A descriptor of the place itself; what was put there meanwhile, or in place of a directory above it, is not."""
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as fault:
        if is_shortage(fault):
            raise
        raise MisplacedError(path) from None
    stack.callback(os.close, fd)
    found = os.fstat(fd)
    if (found.st_dev, found.st_ino) != identity or os.readlink(f"/proc/self/fd/{fd}") != path:
        raise MisplacedError(path)
    return fd


def _checks(walls: Walls, stack: contextlib.ExitStack, *, are_copies: bool) -> int:
    """A file for the broker: what must be mounted where, as fields that end with NUL. A copy is another file than
    what it is a copy of; whoever makes it has looked."""
    mounts = (
        (mount.path, mount.kind, *(("-", "-") if are_copies else _mounted_identity(mount))) for mount in walls.mounts
    )
    links = ((link.path, "link", link.target, "-") for link in walls.configs)
    rows = (*mounts, *links)
    return _in_memory("walls", b"".join(os.fsencode(f"{field}") + b"\0" for row in rows for field in row), stack)


def _mounted_identity(mount: Mount) -> tuple[int, int]:
    return mount.identity[:2] if mount.copy is None else mount.copy.identity


def _in_memory(name: str, data: bytes, stack: contextlib.ExitStack) -> int:
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    stack.callback(os.close, fd)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _warden_environment(
    walls: Walls, sandbox: Sandbox, network: Network, last_look: LastLook | None
) -> dict[str, str]:
    """What the broker is told by way of the environment; no command sees it."""
    variables = {"PATH": "/usr/bin:/bin", SWITCH: " ".join(sorted(switched_off()))}
    if last_look:
        variables[LAST_LOOK] = "\n".join(last_look.words)
        variables[HELD] = " ".join(map(str, last_look.descriptors))
        names = ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
        variables |= {name: os.environ[name] for name in names if name in os.environ}
    usual = usual_descriptor_limit()
    if usual is not None:
        variables[DESCRIPTORS] = f"{usual}"
    if sandbox.level == "seatbelt":
        variables[SEATBELT] = f"{sandbox.program}\n{seatbelt_profile(walls, network=network.kind == 'on')}"
    return variables
