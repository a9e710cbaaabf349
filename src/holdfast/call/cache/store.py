"""What a store of outputs is: bytes under random ids, each a session's own, each with a card of the cache's.

A store knows nothing of views or words. Its methods block and are called from worker threads. They fail with
`ToolError` or `OSError` and nothing else: `NotFound` for a ref, anything else for the store itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Stored(Protocol):
    """One output that was found: its size in bytes and the card it was committed with."""

    @property
    def id(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def card(self) -> bytes: ...


class Writer(Protocol):
    """An output on its way in. Nobody can find it before `commit`."""

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def read(self, start: int, size: int) -> bytes:
        """What was written so far, while it is being written."""
        ...

    def commit(self, card: bytes) -> str:
        """Make it findable in its session; gives its ref id."""
        ...

    def abandon(self) -> None:
        """Leave nothing behind. Never fails, and does nothing after `commit`."""
        ...


class Row(Protocol):
    """A line that matches or is near a match: where it starts, its length, and its text, clipped when long."""

    @property
    def start(self) -> int: ...
    @property
    def length(self) -> int: ...
    @property
    def is_match(self) -> bool: ...
    @property
    def text(self) -> bytes: ...


class Rows(Protocol):
    """What a search gave: rows in order, and how many lines match in all."""

    @property
    def rows(self) -> Sequence[Row]: ...
    @property
    def matches(self) -> int: ...
    @property
    def timed_out(self) -> bool: ...


class Search(Protocol):
    def run(self) -> Rows:
        """Search, in this thread; fails with `InvalidRegex` in the engine's own words."""
        ...

    def stop(self) -> None:
        """End a search that runs in another thread. Harmless before and after."""
        ...


class Store(Protocol):
    def writer(self, session: str) -> Writer: ...

    def find(self, session: str, ref_id: str) -> Stored:
        """The session's output of that id; `NotFound` says whether it is unknown or expired."""
        ...

    def read(self, stored: Any, start: int, size: int) -> bytes:
        """Bytes of what `find` gave; short only at its end."""
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
        """A search of the first `size` bytes, line by line; nothing happens before `run`."""
        ...

    def close(self) -> None: ...
