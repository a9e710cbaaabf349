"""The signals that ask a server to end."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager

import anyio

ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def wait_for_end() -> str:
    """Waits until a signal asks this process to end. Returns the signal's name."""
    with endings() as asked:
        return await anext(asked)


@contextmanager
def endings(on_hangup: Callable[[], object] | None = None) -> Generator[AsyncGenerator[str]]:
    """The names of the signals that ask this process to end, as they come.

    With `on_hangup`, SIGHUP calls that and does not end the process, unless it comes because the terminal is gone.
    """
    had_terminal = has_terminal()
    with anyio.open_signal_receiver(*ENDINGS) as signals:

        async def asked() -> AsyncGenerator[str]:
            async for number in signals:
                if number != signal.SIGHUP or on_hangup is None or (had_terminal and not has_terminal()):
                    yield number.name
                else:
                    on_hangup()

        yield asked()


def ignore_early_hangup() -> None:
    """Lets a SIGHUP to a server without a terminal pass while it starts: it is asked to read again what it has just
    read. `endings` takes over."""
    if not has_terminal():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def has_terminal() -> bool:
    """Whether this process has a controlling terminal (tty(4))."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True
