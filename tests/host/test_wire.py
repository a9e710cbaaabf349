"""The wire: what is written arrives whole and in order, whatever the other end is and however slowly it reads."""

from __future__ import annotations

import fcntl
import os
import pty
import socket
import threading
import tty
from collections.abc import Callable, Generator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gripfast.host.program.wire import LineTooLong, Wire

MESSAGES = [bytes([65 + number]) * (50_000 + 7_001 * number) + b"\n" for number in range(12)]


@pytest.fixture(params=["pipe", "socket"])
def ends(request: pytest.FixtureRequest) -> Generator[tuple[int, int]]:
    """(what to read from, what the wire writes to)"""
    if request.param == "pipe":
        reading, writing = os.pipe()
    else:
        one, other = socket.socketpair()
        reading, writing = one.detach(), other.detach()
    yield reading, writing
    for fd in (reading, writing):
        try:
            os.close(fd)
        except OSError:
            continue  # closed by the test


def _reader(fd: int, got: list[bytes], pause: Callable[[], None] = lambda: None) -> threading.Thread:
    def read() -> None:
        while piece := os.read(fd, 3_000):
            got.append(piece)
            pause()

    thread = threading.Thread(target=read)
    thread.start()
    return thread


def test_messages_of_several_tasks_arrive_whole_while_the_reader_is_slow(ends: tuple[int, int]) -> None:
    reading, writing = ends
    got: list[bytes] = []

    async def main() -> None:
        wire = Wire(0, writing, 1000)
        async with anyio.create_task_group() as group:
            for message in MESSAGES:
                group.start_soon(wire.write, message)
        wire.close()

    thread = _reader(reading, got)
    anyio.run(main)
    os.close(writing)
    thread.join(30)
    assert sorted(b"".join(got).splitlines(keepends=True)) == sorted(MESSAGES)


def test_a_message_is_finished_though_its_sender_is_cancelled(ends: tuple[int, int]) -> None:
    reading, writing = ends
    got: list[bytes] = []
    large = b"x" * 3_000_000 + b"\n"

    async def main() -> threading.Thread:
        wire = Wire(0, writing, 1000)
        with anyio.move_on_after(0.05) as given_up:
            await wire.write(large)
        assert given_up.cancelled_caught
        thread = _reader(reading, got)
        await wire.write(b"after\n")
        wire.close()
        return thread

    thread = anyio.run(main)
    os.close(writing)
    thread.join(30)
    assert b"".join(got) == large + b"after\n"


def test_the_loop_goes_on_while_nobody_reads(ends: tuple[int, int]) -> None:
    """Nothing that is written blocks, and whoever shares the descriptor still has a blocking one."""
    _, writing = ends

    async def main() -> bool:
        wire = Wire(0, writing, 1000)
        with anyio.move_on_after(0.1) as scope:
            await wire.write(b"x" * 3_000_000)
        wire.close()
        return scope.cancelled_caught

    assert anyio.run(main)
    assert not fcntl.fcntl(writing, fcntl.F_GETFL) & os.O_NONBLOCK


def test_the_loop_goes_on_while_nobody_reads_a_terminal() -> None:
    reading, writing = pty.openpty()
    tty.setraw(writing)
    got: list[bytes] = []

    def read() -> None:
        while sum(map(len, got)) < 300_000:
            got.append(os.read(reading, 65_536))

    async def main() -> None:
        wire = Wire(0, writing, 1000)
        with anyio.move_on_after(0.1) as scope:
            await wire.write(b"x" * 300_000)
        assert scope.cancelled_caught
        await anyio.to_thread.run_sync(read)
        wire.close()

    try:
        anyio.run(main)
    finally:
        os.close(reading)
        os.close(writing)
    assert b"".join(got) == b"x" * 300_000


def test_there_is_room_until_much_is_unsent_and_again_when_it_is_read(ends: tuple[int, int]) -> None:
    reading, writing = ends
    asking, telling = os.pipe()
    threads: list[threading.Thread] = []

    async def main() -> list[bool]:
        wire = Wire(asking, writing, 1000)
        said = [await wire.room(0.05)]
        async with anyio.create_task_group() as group:
            for _ in range(6):
                group.start_soon(wire.write, b"x" * 1_000_000)
            await anyio.sleep(0)
            with anyio.move_on_after(0.2) as waited:
                await wire.room(0.05)
            said.append(waited.cancelled_caught)
            os.close(telling)
            said.append(await wire.room(0.05))
            threads.append(_reader(reading, []))
            said.append(await wire.room(30))
        wire.close()
        os.close(writing)
        await anyio.to_thread.run_sync(threads[0].join)
        return said

    assert anyio.run(main) == [True, True, False, True]
    os.close(asking)


def test_a_reader_that_is_gone_is_told_to_every_sender(ends: tuple[int, int]) -> None:
    reading, writing = ends

    async def main() -> int:
        wire = Wire(0, writing, 1000)
        refused = 0

        async def send() -> None:
            nonlocal refused
            try:
                await wire.write(b"x" * 1_000_000)
            except OSError:
                refused += 1

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(send)
            await anyio.sleep(0.05)
            os.close(reading)
        await send()
        wire.close()
        return refused

    assert anyio.run(main) == 4


def test_a_file_as_standard_output_is_written_where_it_stood(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"before\n")
    fd = os.open(target, os.O_WRONLY | os.O_APPEND)

    async def main() -> None:
        wire = Wire(0, fd, 1000)
        for message in MESSAGES:
            await wire.write(message)
        wire.close()

    anyio.run(main)
    os.close(fd)
    assert target.read_bytes() == b"before\n" + b"".join(MESSAGES)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=30), max_size=20), st.integers(1, 20))
def test_lines_are_those_a_naive_split_finds(pieces: list[bytes], limit: int) -> None:
    data = b"".join(pieces)
    expected = [line if len(line) <= limit else None for line in data.split(b"\n")]
    if not data.rpartition(b"\n")[2]:
        expected.pop()

    async def main() -> list[bytes | None]:
        reading, writing = os.pipe()
        wire = Wire(reading, 2, limit)
        os.write(writing, data)
        os.close(writing)
        try:
            return [None if isinstance(line, LineTooLong) else line async for line in wire.lines()]
        finally:
            os.close(reading)

    assert anyio.run(main) == expected
