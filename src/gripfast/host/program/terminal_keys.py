"""Reads single keys from the terminal, with a timeout."""

from __future__ import annotations

import codecs
import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import contextmanager

NextKey = Callable[[float], str | None]
END = "\x04"
"""What Ctrl-D sends; also returned at the end of the input."""


@contextmanager
def keys() -> Generator[NextKey]:
    """Reads keys one by one, without Enter and without echo. Yields a function that waits so many seconds for the
    next key and returns None if there was none."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def next_key(seconds: float) -> str | None:
        ready, _, _ = select.select([fd], [], [], seconds)
        if not ready:
            return None
        data = os.read(fd, 1)
        return (decoder.decode(data) or None) if data else END

    try:
        tty.setcbreak(fd)
        yield next_key
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)
