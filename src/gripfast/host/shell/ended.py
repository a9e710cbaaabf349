"""How a command ended."""

from __future__ import annotations

import os
import signal
from typing import Literal, TypeAlias

from gripfast.host.shell.held_roots import MovedRoot
from gripfast.host.shell.quarantine import Quarantined
from gripfast.host.shell.refused import RefusedWrite
from gripfast.host.shell.stuck import StuckFile
from gripfast.records import dataclass

Reason: TypeAlias = Literal["exited", "timeout", "stopped", "closed", "lost"]


_IN_WORDS = {
    "timeout": "timed out",
    "stopped": "stopped",
    "closed": "ended with the session",
    "lost": "killed with what watches it",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. `exit_code` or `signal` is set, unless its supervisor was lost."""

    reason: Reason
    exit_code: int | None = None
    signal: int | None = None
    directory: str = ""
    left_running: int = 0
    left_names: tuple[str, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    refused: tuple[RefusedWrite, ...] = ()
    unreached: tuple[str, ...] = ()
    stuck: tuple[StuckFile, ...] = ()
    moved: tuple[MovedRoot, ...] = ()

    @property
    def shell_code(self) -> int:
        """The code a shell would report: 124 for a timeout, as `timeout` does, and 128 more than a signal."""
        if self.reason == "timeout":
            return 124
        if self.signal is not None:
            return 128 + self.signal
        return 1 if self.exit_code is None else self.exit_code

    @property
    def in_words(self) -> str:
        """A few words for a person."""
        if self.reason != "exited":
            return _IN_WORDS[self.reason]
        return f"exit code {self.exit_code}" if self.signal is None else f"killed by {signal_name(self.signal)}"


def exit_of(status: bytes) -> tuple[int | None, int | None]:
    if not status:
        return None, None
    code = os.waitstatus_to_exitcode(int(status))
    return (code, None) if code >= 0 else (None, -code)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
