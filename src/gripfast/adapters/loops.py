"""An event loop in a thread of its own, for frameworks whose tools are plain functions.

One loop for the whole program, started when it is first needed. Context variables of the caller are seen by the work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_ENDING_SECONDS = 30.0
"""How long a caller that was interrupted waits for its work to end: a command gets TERM, then KILL after two."""

_LOCK = threading.Lock()
_here: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Runs work to its end while the calling thread waits. Interrupted (Ctrl-C), the work is cancelled first."""
    loop = _running()
    if _is_here(loop):
        work.close()
        raise RuntimeError("this would wait for itself: from async code, use the async form of the call")
    future, ended = _submit(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        ended.wait(_ENDING_SECONDS)
        raise


async def beside(work: Coroutine[Any, Any, T]) -> T:
    """Runs work in that loop from another one. Cancelled, it returns when the work has ended."""
    future, ended = _submit(work, _running())
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        future.cancel()
        await asyncio.to_thread(ended.wait, _ENDING_SECONDS)
        raise


def _submit(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> tuple[Future[T], threading.Event]:
    ended = threading.Event()

    async def body() -> T:
        try:
            return await work
        finally:
            ended.set()

    return asyncio.run_coroutine_threadsafe(body(), loop), ended


def _is_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _running() -> asyncio.AbstractEventLoop:
    """The loop; another one where its thread is gone, as in a process that was forked."""
    global _here
    with _LOCK:
        if _here is None or not _here[1].is_alive():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="gripfast-loop", daemon=True)
            thread.start()
            _here = loop, thread
        return _here[0]
