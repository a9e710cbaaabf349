"""Makes sure that a server ends, even if a tool never stops."""

from __future__ import annotations

import contextlib
import faulthandler
import sys

SECONDS = 60.0
"""How many seconds sessions and tools have to stop once the server was asked to end. Closing one may take 30."""
_seconds: list[float] = []


def end_for_sure(seconds: float | None = None) -> None:
    """A server calls it at its start, so that `ending` takes effect. A library must not decide that for the program
    that uses it."""
    _seconds[:] = [SECONDS if seconds is None else seconds]


def ending() -> None:
    """To be called when the server was asked to end. If it still runs after the time limit, the process exits, and
    standard error shows where it was stuck. Commands that still run are then ended by their warden, as always."""
    if _seconds:
        with contextlib.suppress(RuntimeError, ValueError, AttributeError):  # no thread or no standard error left
            faulthandler.dump_traceback_later(_seconds[0], exit=True, file=sys.__stderr__ or sys.stderr)
