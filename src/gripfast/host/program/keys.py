"""Single keys from the terminal, waited for a moment at a time."""

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
"""What Ctrl-D sends, and what is given at the end of the input."""


@contextmanager
def keys() -> Generator[NextKey]:
    """While it is open keys come one by one, without Enter and not shown. Gives a function that waits some seconds
    for the next key; None if there was none."""
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
