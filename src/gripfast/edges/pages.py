"""What commands print that is the same every time (help, the list of tools), kept ready and printed at once.

Importing this module is cheap: it runs before anything else is loaded.
"""

from __future__ import annotations

import sys

from gripfast.host.program import ready

TYPE_CHECKING = False  # importing `typing` takes as long as printing a page
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_HELP = ("-h", "--help")


def is_page(arguments: list[str]) -> bool:
    """Whether these arguments print the same every time in the same circumstances."""
    if ready.completes() or any(word.startswith("--with") for word in arguments):
        return False
    return arguments[:1] in (["tools"], ["--version"]) or arguments[-1:] in ([word] for word in _HELP)


def show(arguments: list[str], otherwise: Callable[[], object]) -> None:
    """Prints the page, if it was kept; else runs the command, and keeps what it prints if it succeeds."""
    key = ready.circumstances([*arguments, ready.terminal()])
    page = ready.load(key)
    if page is not None:
        sys.stdout.write(page.decode())
        return
    copy = _PageCopy(sys.stdout)
    sys.stdout = copy  # pyright: ignore[reportAttributeAccessIssue] - it behaves as the stream it copies
    try:
        otherwise()
    except SystemExit as end:
        if not end.code:
            ready.save(key, "".join(copy.texts).encode())
        raise
    finally:
        sys.stdout = copy.stream


class _PageCopy:
    """A stream that remembers what is written to it."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.texts: list[str] = []

    def write(self, text: str) -> int:
        count = self.stream.write(text)  # click tries with bytes, which raises
        self.texts.append(text)
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
