"""The signals that ask a server to end."""

from __future__ import annotations

import signal

import anyio

ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def wait_for_end() -> str:
    """Waits until a signal asks this process to end. Returns the signal's name."""
    with anyio.open_signal_receiver(*ENDINGS) as signals:
        async for number in signals:
            return number.name
    return ""
