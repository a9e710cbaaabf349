"""The interface of the record of calls. `host/record` implements it; `run_call` knows only this."""

from __future__ import annotations

from typing import Protocol


class RunningCall(Protocol):
    """One call while it runs."""

    def decided(self, decision: str) -> None:
        """The call was allowed or refused, by which rule or by whom."""
        ...

    def end(
        self, *, size: int = 0, output_ref: str | None = None, error: str | None = None, answer: str = ""
    ) -> str | None:
        """The call has ended with this answer. Returns what the answer should say about the record, if anything."""
        ...


class Recorder(Protocol):
    """Records calls. Never raises: a call must not fail because its record can't be written."""

    def begin(self, id: str, tool: str, arguments: str) -> RunningCall: ...
