"""One running command: the line to its supervisor, and its output as it comes."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias, cast

import anyio
from anyio import wait_readable

from gripfast.host.shell.broker import CHUNK, PIPE_SIZE
from gripfast.host.shell.broker_connection import BrokerConnection
from gripfast.host.shell.ended import Ended
from gripfast.records import dataclass

Feed: TypeAlias = Callable[[bytes], Awaitable[None]]
Stdin: TypeAlias = Literal["nothing", "pipe", "tty"]


@dataclass(slots=True)
class Job:
    """A command on its way: the line to its supervisor, and the pipe its output comes through. `stdin` is what it
    reads from, `input` where that is written."""

    name: str
    broker: BrokerConnection
    line: socket.socket
    out: int
    directory: str
    limit: float | None
    ended: Ended | None = None
    stdin: Stdin = "nothing"
    input: int = -1

    def say(self, word: bytes) -> None:
        try:
            self.line.send(word)
        except OSError:
            return  # nobody there: its end is on the line

    def close_output(self) -> None:
        if self.out >= 0:
            os.close(self.out)
            self.out = -1

    def close_input(self) -> None:
        if self.input >= 0:
            os.close(self.input)
            self.input = -1

    def close(self) -> None:
        self.close_input()
        self.close_output()
        self.line.close()


async def next_of(both: selectors.BaseSelector, until: float) -> list[object]:
    """What can be read now, waited for; nothing when the time is over."""
    with anyio.CancelScope(deadline=until):
        await wait_readable(cast("selectors.EpollSelector", both).fileno())
    return [key.fileobj for key, _ in both.select(0)]


async def take(job: Job, feed: Feed) -> bool:
    """Feeds what is in the pipe, at most about what a large one holds. False at its end."""
    taken = 0
    while taken < PIPE_SIZE:
        try:
            data = os.read(job.out, CHUNK)
        except BlockingIOError:
            return True
        except OSError:  # EIO: nobody has the terminal open any more
            return False
        if not data:
            return False
        taken += len(data)
        await feed(data)
    return True


async def discard(_: bytes) -> None:
    """For output that nobody waits for any more."""
