"""Makes sure that a server ends, even if a tool never stops."""

from __future__ import annotations

import contextlib
import faulthandler
import sys
from collections.abc import Generator

SECONDS = 60.0
"""How many seconds sessions and tools have to stop once the server was asked to end. Closing one may take 30."""
_seconds: list[float] = []


@contextlib.contextmanager
def end_for_sure(seconds: float | None = None) -> Generator[None]:
    """A server runs inside it, so that `ending` takes effect. A library must not decide that for the program that
    uses it, and neither must a server that has ended."""
    _seconds[:] = [SECONDS if seconds is None else seconds]
    try:
        yield
    finally:
        _seconds.clear()
        faulthandler.cancel_dump_traceback_later()


def ending() -> None:
    """To be called when the server was asked to end. If it still runs after the time limit, the process exits, and
    standard error shows where it was stuck. Commands that still run are then ended by their warden, as always."""
    if _seconds:
        with contextlib.suppress(RuntimeError, ValueError, AttributeError):  # no thread or no standard error left
            faulthandler.dump_traceback_later(_seconds[0], exit=True, file=sys.__stderr__ or sys.stderr)
