"""The end of a server, which comes even if a tool never stops."""

from __future__ import annotations

import contextlib
import faulthandler
import sys

SECONDS = 60.0
"""How long sessions and tools have to stop, once the server was asked to end. Closing one session may take 30."""
_seconds: list[float] = []


def end_for_sure(seconds: float | None = None) -> None:
    """Called by a server as it starts: once it is asked to end, it ends. A library does not decide that for the
    program it is in."""
    _seconds[:] = [SECONDS if seconds is None else seconds]


def ending() -> None:
    """The server was asked to end. If it still runs when its time is over, it is ended, and standard error shows
    where it was stuck. Commands that still run are ended by their warden, as after any end."""
    if _seconds:
        with contextlib.suppress(RuntimeError, ValueError, AttributeError):  # no thread or no standard error left
            faulthandler.dump_traceback_later(_seconds[0], exit=True, file=sys.__stderr__ or sys.stderr)
