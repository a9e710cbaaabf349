"""An event loop in a thread of its own, for frameworks whose tools are plain functions.

One loop for the whole program, started when it is first needed. Context variables of the caller are seen by the work.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar, cast

T = TypeVar("T")

_ENDING_SECONDS = 30.0
"""How long a caller that was interrupted waits for its work to end: a command gets TERM, then KILL after two."""

_LOOK_SECONDS = 0.25
"""How often a thread that waits looks whether the main thread was interrupted."""

_LOCK = threading.Lock()
_here: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Runs work to its end while the calling thread waits. Interrupted (Ctrl-C), the work is cancelled first: also
    where a framework called this in a thread and the main thread now waits for that one."""
    loop = _running()
    if _is_here(loop):
        work.close()
        raise RuntimeError("this would wait for itself: from async code, use the async form of the call")
    before = _interrupt_of_main()
    future, ended = _submit(work, loop)
    try:
        return _result(future, before)
    except BaseException:
        future.cancel()
        ended.wait(_ENDING_SECONDS)
        raise


def _result(future: Future[T], before: BaseException | None) -> T:
    """What the work gives. Python interrupts only the main thread: in another one, raises KeyboardInterrupt when the
    main thread has begun to handle one, other than `before`. The main thread itself also wakes up now and then: a
    signal that comes just before it waits doesn't end that wait."""
    is_main = threading.current_thread() is threading.main_thread()
    while not future.done():
        with contextlib.suppress(TimeoutError):
            return future.result(_LOOK_SECONDS)
        interrupt = None if is_main else _interrupt_of_main()
        if interrupt is not None and interrupt is not before and not future.done():
            raise KeyboardInterrupt
    return future.result()


def _interrupt_of_main() -> BaseException | None:
    """The KeyboardInterrupt that the main thread is handling, in a `with` or `finally` that waits for this thread, or
    that has ended the program, which waits for its threads before it exits."""
    handled = cast("Any", sys)._current_exceptions().get(threading.main_thread().ident)
    error: BaseException | None = handled if handled is None or sys.version_info >= (3, 12) else handled[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    last = getattr(sys, "last_value", None)
    return last if error is None and isinstance(last, KeyboardInterrupt) else error


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
