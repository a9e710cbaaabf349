"""The program that worker.py starts: answers requests on standard input by calling one function of one module.

Hostile input may make that function run forever, use all memory, or crash; in a separate process it can be stopped.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import struct
import sys
import threading
import time
from typing import Any, BinaryIO

MEMORY = 2 << 30
IDLE_SECONDS = 60.0
_LENGTHS = struct.Struct("!II")


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library may print; only answers may go to the pipe
    order = _first()
    threading.Thread(target=_leave_with, args=(order["parent"],), daemon=True).start()
    for limit, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(limit, (most, most))
    sys.path += order["path"]  # after the standard library
    module, _, name = order["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    while (question := _next()) is not None:
        _send(answers, _answered(function, *question))


def _first() -> dict[str, Any]:
    question = _next()
    if question is None:
        raise SystemExit(0)
    return question[0]


def _next() -> tuple[dict[str, Any], bytes] | None:
    """The next request and its data; None at the end of the input."""
    if not select.select([0], [], [], IDLE_SECONDS)[0]:
        return None
    head = _read(_LENGTHS.size)
    if len(head) < _LENGTHS.size:
        return None
    order, data = _LENGTHS.unpack(head)
    return json.loads(_read(order)), _read(data)


def _read(size: int) -> bytes:
    """Reads so many bytes from standard input, unbuffered, so that `select` sees what is left."""
    pieces: list[bytes] = []
    while size > 0 and (piece := os.read(0, min(size, 1 << 20))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _answered(function: Any, order: dict[str, Any], data: bytes) -> dict[str, Any]:
    try:
        return function(order, data)
    except MemoryError:
        return {"fault": "it needs too much memory"}
    except RecursionError:
        return {"fault": "it is nested too deeply"}
    except Exception as fault:  # noqa: BLE001 - whatever a library raises is an answer, and the next order is served
        return {"fault": type(fault).__name__}


def _send(answers: BinaryIO, answer: dict[str, Any]) -> None:
    data = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    answers.write(_LENGTHS.pack(len(data), 0) + data)
    answers.flush()


def _leave_with(parent: int) -> None:
    """Ends this process soon after its parent has been killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if __name__ == "__main__":
    main()
