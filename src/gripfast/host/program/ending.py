"""Makes sure that a server ends, even if a tool never stops."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
from collections.abc import Generator

SECONDS = 60.0
"""How many seconds sessions and tools have to stop once the server was asked to end. Closing one may take 30."""
_SPARE = 5.0  # seconds after which a server ends whose code does not even let another thread run
_seconds: list[float] = []
_timers: list[threading.Timer] = []
_own_process: list[bool] = []


@contextlib.contextmanager
def end_for_sure(seconds: float | None = None) -> Generator[None]:
    """A server runs inside it, so that `ending` takes effect. A library must not decide that for the program that
    uses it, and neither must a server that has ended, unless the process is its own: then a thread that never stops
    could still keep it alive."""
    _seconds[:] = [SECONDS if seconds is None else seconds]
    try:
        yield
    finally:
        if not _own_process:
            _seconds.clear()
            while _timers:
                _timers.pop().cancel()
            faulthandler.cancel_dump_traceback_later()


def this_process_is_ours() -> None:
    """Called by the command line where the program starts."""
    _own_process.append(True)


def is_our_process() -> bool:
    """Whether this process runs one command and then ends, so that what is changed for it can't disturb another."""
    return bool(_own_process)


def ending() -> None:
    """The server was asked to end. If it still runs when its time is over, it is ended, and standard error shows
    where it was stuck. Commands that still run are ended by their warden, as after any end."""
    if not _seconds or _timers:
        return
    with contextlib.suppress(RuntimeError, ValueError, AttributeError):  # no thread or no standard error left
        faulthandler.dump_traceback_later(_seconds[0] + _SPARE, exit=True, file=sys.__stderr__ or sys.stderr)
        _timers.append(threading.Timer(_seconds[0], _end))
        _timers[0].daemon = True
        _timers[0].start()


def _end() -> None:
    """Shows where every thread is, and ends. Other threads don't run meanwhile, so what is shown holds still: the
    watchdog of `faulthandler` looks while they run, and may crash."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.write(2, b"gripfast: something did not stop in time, so the server ends now. It was here:\n")
        faulthandler.dump_traceback(file=sys.__stderr__ or sys.stderr)
    os._exit(1)
