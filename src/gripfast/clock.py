"""The clock. Besides host/, only this module reads the time; everything else is handed a function that does."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> datetime:
    """The date and time, for people."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Seconds that never go back, for measuring how long something takes."""
    return time.monotonic()
