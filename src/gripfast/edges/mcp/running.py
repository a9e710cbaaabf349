"""The calls that run on a server: its end waits for them for a while, and then cuts them short."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import anyio

CUT = (
    "the server was stopped or restarted while this call ran, so it was cut short and may be half done; "
    "look at what it changed before you repeat it"
)


class RunningCalls:
    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._none_left = anyio.Event()
        self.are_cut = False

    def __len__(self) -> int:
        return len(self._scopes)

    @contextmanager
    def one(self) -> Generator[anyio.CancelScope]:
        """One call runs inside it. The scope has caught a cancellation if the call was cut short."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            if self.are_cut:
                scope.cancel()
            try:
                yield scope
            finally:
                self._scopes.discard(scope)
                if not self._scopes:
                    self._none_left.set()

    async def finished(self, seconds: float) -> None:
        """Waits until no call runs, but not longer than so many seconds."""
        with anyio.move_on_after(seconds):
            while self._scopes:
                self._none_left = anyio.Event()
                await self._none_left.wait()

    def cut(self) -> None:
        """Cancels all of them, and all that still come. Each is answered with an error that says so."""
        self.are_cut = True
        for scope in list(self._scopes):
            scope.cancel()
