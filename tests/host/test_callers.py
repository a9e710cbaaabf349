"""Who is at the other end of a connection: a command, another program, or nobody any more."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gripfast.host.files.scope import Scope
from gripfast.host.shell.callers import Callers
from gripfast.host.shell.sandbox import Sandbox
from gripfast.host.shell.shells import Shells

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="it is the Linux kernel that is asked"),
]


@pytest.fixture(params=["127.0.0.1", "::1"])
def door(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in request.param else socket.AF_INET
    try:
        made = socket.create_server((request.param, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {request.param}")
    with made:
        made.settimeout(60)
        yield made


def asked(line: socket.socket, callers: Callers) -> bool:
    return callers.is_command(line.getpeername()[:2], line.getsockname()[:2])


@asynccontextmanager
async def command(root: Path, door: socket.socket) -> AsyncGenerator[socket.socket]:
    """The connection of a command that stays as long as it is open."""
    host, port = door.getsockname()[:2]
    code = f"import socket; socket.create_connection(({host!r}, {port})).recv(1)"

    async def unheard(data: bytes) -> None:
        pass

    async with (
        Shells(Scope.workspace(str(root)), sandbox=Sandbox("none")) as shells,
        anyio.create_task_group() as group,
    ):
        group.start_soon(shells.run, shlex.join([sys.executable, "-c", code]), unheard)
        line, _ = await anyio.to_thread.run_sync(door.accept)
        with line:
            yield line


async def test_a_command_is_told_from_another_program_while_both_are_connected(
    tmp_path: Path, door: socket.socket
) -> None:
    callers = Callers()
    async with command(tmp_path, door) as line:
        with socket.create_connection(door.getsockname()[:2]), door.accept()[0] as other:
            assert asked(line, callers)
            assert not asked(other, callers)
            assert not asked(other, callers)  # as it was found before
            assert asked(line, callers)


async def test_whoever_is_gone_may_have_been_a_command(tmp_path: Path, door: socket.socket) -> None:
    async with command(tmp_path, door):
        other = socket.create_connection(door.getsockname()[:2])
        with door.accept()[0] as line:
            ends = line.getpeername()[:2], line.getsockname()[:2]
            other.close()
            assert line.recv(1) == b""  # half closed
            assert Callers().is_command(*ends)
        assert Callers().is_command(*ends)  # closed on both sides
        assert Callers().is_command(("192.0.2.1", 1), ends[1])  # nobody's
    assert Callers().is_command(*ends)  # after the command's end, when its request may be looked at only then
