"""Who writes down what calls did. `host/record` implements it; the corridor knows only this."""

from __future__ import annotations

from typing import Protocol


class RunningCall(Protocol):
    """One call while it runs."""

    def decided(self, decision: str) -> None:
        """The call may run, or not: by which rule, or by whose word."""
        ...

    def end(
        self, *, size: int = 0, output_ref: str | None = None, error: str | None = None, answer: str = ""
    ) -> str | None:
        """The call has ended with this answer. Gives what its answer should say about the record, if anything."""
        ...


class Recorder(Protocol):
    """Never raises: a record that can't be written is no reason to fail a call."""

    def begin(self, id: str, tool: str, arguments: str) -> RunningCall: ...
