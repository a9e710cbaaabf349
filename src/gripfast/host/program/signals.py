"""The signals that ask a server to end."""

from __future__ import annotations

import signal

import anyio

ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


async def wait_for_end() -> str:
    """Returns, with its name, when a signal asks this process to end."""
    with anyio.open_signal_receiver(*ENDINGS) as signals:
        async for number in signals:
            return number.name
    return ""
