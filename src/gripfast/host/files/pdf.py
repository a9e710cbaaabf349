"""The text of PDF pages, by pypdf, in a process of its own: it ends when it takes too long or nobody waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from gripfast.errors import BinaryNotSupported, Cancelled, TimedOut
from gripfast.host.program.programs import installed_places, interpreter
from gripfast.records import dataclass

SECONDS = 20.0
_LOOK_SECONDS = 0.1
_CHILD = str(Path(__file__).with_name("pdf_child.py"))


@dataclass(frozen=True, slots=True)
class Pages:
    """The texts of pages `first` and following (from 1), of `total`."""

    texts: list[str]
    first: int
    total: int


def pdf_pages(
    data: bytes, first: int, count: int, shown: str, *, is_cancelled: Callable[[], bool] = lambda: False
) -> Pages:
    """Up to `count` pages from `first` on."""
    places = installed_places()
    if PathFinder.find_spec("pypdf", places) is None:
        raise BinaryNotSupported(f"`{shown}` is a PDF; reading it needs the extra: pip install 'gripfast[pdf]'")
    order = {"path": places, "parent": os.getpid(), "first": first, "count": count}
    found = _answer(json.dumps(order).encode() + b"\n" + data, shown, is_cancelled)
    if found.get("password"):
        raise BinaryNotSupported(f"`{shown}` is a PDF with a password; it can't be read")
    if "fault" in found:
        raise BinaryNotSupported(f"`{shown}` can't be read as a PDF: {found['fault']}")
    return Pages(found["texts"], first, found["total"])


def _answer(question: bytes, shown: str, is_cancelled: Callable[[], bool]) -> dict[str, Any]:
    command = [interpreter(), "-I", "-S", _CHILD]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env={}, cwd="/") as child:
        try:
            answer = _waited_for(child, question, shown, is_cancelled)
        finally:
            child.kill()
    return json.loads(answer) if child.returncode == 0 else {"fault": "the process that reads it crashed"}


def _waited_for(
    child: subprocess.Popen[bytes], question: bytes, shown: str, is_cancelled: Callable[[], bool]
) -> bytes:
    until = time.monotonic() + SECONDS
    unsaid: bytes | None = question
    while True:
        try:
            return child.communicate(unsaid, timeout=_LOOK_SECONDS)[0]
        except subprocess.TimeoutExpired:
            unsaid = None  # it is remembered
            if is_cancelled():
                raise Cancelled("the call was cancelled") from None
            if time.monotonic() > until:
                raise TimedOut(
                    f'`{shown}` was not read within {SECONDS:.0f} s; ask for fewer pages, as in pages="1"'
                ) from None
