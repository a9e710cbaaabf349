"""Witness: who is told, in the course of a call, what happens to files. The record sets one for each call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from gripfast.host.files.watch import PathChange, Watch


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
    """Never raises: a record that can't be written is no reason to fail a call."""

    def replacing(self, *files: Replacement) -> None:
        """Called before anything is touched."""
        ...

    def replaced(self, *files: Replacement) -> None:
        """Called when it is done."""
        ...

    def command_starts(self, watch: Watch) -> None:
        """A command is about to run; what it changes will be told by `command_changed`."""
        ...

    def command_changed(self, changes: Sequence[PathChange], watch: Watch) -> None: ...

    def command_stays(self, watch: Watch, is_running: Callable[[], bool]) -> None:
        """A command runs on when the call has ended; what it changes from now on belongs to the call."""
        ...


WITNESS: ContextVar[Witness | None] = ContextVar("witness", default=None)
