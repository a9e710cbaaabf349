"""The signals that ask a server to end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import anyio

ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def wait_for_end(on_hangup: Callable[[], object] | None = None) -> str:
    """Waits until a signal asks this process to end. Returns the signal's name.

    With `on_hangup`, SIGHUP calls that and does not end the process, unless it comes because the terminal is gone.
    """
    had_terminal = has_terminal()
    with anyio.open_signal_receiver(*ENDINGS) as signals:
        async for number in signals:
            if number != signal.SIGHUP or on_hangup is None or (had_terminal and not has_terminal()):
                return number.name
            on_hangup()
    return ""


def ignore_early_hangup() -> None:
    """Lets a SIGHUP to a server without a terminal pass while it starts: it is asked to read again what it has just
    read. `wait_for_end` takes over."""
    if not has_terminal():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def has_terminal() -> bool:
    """Whether this process has a controlling terminal (tty(4))."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True
