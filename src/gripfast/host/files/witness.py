"""Witness: is notified of everything a call does to files, and of what its command printed. The record sets one for
each call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Protocol

from gripfast.host.files.watch import PathChange, Watch
from gripfast.records import dataclass


@dataclass(frozen=True, slots=True)
class Replacement:
    """A file about to be written or removed: bytes and mode before and after (None: no file), and the directories
    just made."""

    path: str
    before: bytes | None
    before_mode: int
    after: bytes | None
    after_mode: int
    made: tuple[str, ...] = ()


class Witness(Protocol):
    """Receives the changes of one call. Never raises: a call must not fail because its record can't be written."""

    def replacing(self, *files: Replacement) -> None:
        """Called before anything is touched."""
        ...

    def replaced(self, *files: Replacement) -> None:
        """Called when it is done."""
        ...

    def command_nears(self, watch: Watch) -> None:
        """A command will start as soon as this returns, which may take seconds. It may be abandoned."""
        ...

    def command_starts(self, watch: Watch) -> None:
        """A command is about to run; `command_changed` will report what it changed."""
        ...

    def command_changed(self, changes: Sequence[PathChange], watch: Watch, *, goes_on: bool) -> Mapping[str, bool]:
        """What is different since `command_starts`. `goes_on`: the command has not ended. Returns, for
        files whose content is known, whether it differs."""
        ...

    def command_stays(self, watch: Watch, is_running: Callable[[], bool]) -> None:
        """A command continues after the call has ended; what it changes from now on still belongs to the call."""
        ...

    def command_printed(self, text: str) -> None:
        """What the answer shows of a command's output, still with its colours."""
        ...


WITNESS: ContextVar[Witness | None] = ContextVar("witness", default=None)
