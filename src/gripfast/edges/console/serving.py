"""Serves the console on an address of its own."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp

from gripfast.host.program.net import Address, Listening
from gripfast.host.program.signals import wait_for_end


def hosts_of(address: Address) -> tuple[str, ...]:
    """The Host headers that name an address on loopback."""
    return tuple(dict.fromkeys([str(address), *(f"{name}:{address.port}" for name in ("127.0.0.1", "localhost"))]))


async def serve_console(app: ASGIApp, listening: Listening) -> None:
    """Serves until a signal comes."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
        proxy_headers=False,  # `for_people` must know who really connects
    )
    server = _ConsoleServer(config)
    async with anyio.create_task_group() as group:
        group.start_soon(_end_on_signal, server)
        await server.serve(sockets=[listening])
        group.cancel_scope.cancel()


async def _end_on_signal(server: uvicorn.Server) -> None:
    await wait_for_end()
    server.should_exit = True
    server.force_exit = True  # pages keep a stream open for as long as they are shown


class _ConsoleServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leaves signals alone: `_end_on_signal` waits for them."""
        yield
