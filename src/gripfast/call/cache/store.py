"""The protocol of an output store: bytes under random ids, each owned by a session and stored with its index card.

A store knows nothing about views or messages. Its methods block and are called from worker threads. They raise only
`ToolError` or `OSError`: `NotFound` for an unknown ref, anything else for a failure of the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Stored(Protocol):
    """A stored output: its size in bytes and the card it was committed with."""

    @property
    def id(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def card(self) -> bytes: ...


class Writer(Protocol):
    """An output being written. It can't be found before `commit`."""

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def read(self, start: int, size: int) -> bytes:
        """Bytes that have been written so far."""
        ...

    def commit(self, card: bytes) -> str:
        """Make the output available to its session and return its ref id."""
        ...

    def abandon(self) -> None:
        """Discard the output. Never fails, and does nothing after `commit`."""
        ...


class Row(Protocol):
    """A matching line or a context line: where it starts, its length, and its text, clipped if long."""

    @property
    def start(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def is_match(self) -> bool: ...
    @property
    def text(self) -> bytes: ...
    @property
    def rest_at(self) -> int | None:
        """The byte of the line where what is missing begins: after `text`, or before it if it is the end of the line;
        None if `text` is the whole line."""
        ...


class Rows(Protocol):
    """The result of a search: rows in order, and the total number of matching lines."""

    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def matches(self) -> int: ...
    @property
    def timed_out(self) -> bool: ...


class Search(Protocol):
    def run(self) -> Rows:
        """Search, in this thread; raises `InvalidRegex` with the engine's own message."""
        ...

    def stop(self) -> None:
        """Stop a search that runs in another thread. Does nothing if none is running."""
        ...


class Store(Protocol):
    def writer(self, session: str) -> Writer: ...

    def find(self, session: str, ref_id: str) -> Stored:
        """The session's output with that id; `NotFound` says whether it is unknown or expired."""
        ...

    def read(self, stored: Any, start: int, size: int) -> bytes:
        """Bytes of an output that `find` returned; fewer than `size` only at its end."""
        ...

    def search(
        self,
        stored: Any,
        pattern: str,
        *,
        size: int,
        longest_line: int,
        regex: bool,
        before: int,
        after: int,
        max_matches: int,
    ) -> Search:
        """Prepares a search of the first `size` bytes, line by line; `run` starts it."""
        ...

    def close(self) -> None: ...
