"""Run as a program of its own by pdf.py: reads an order and a PDF from standard input, writes its text as JSON.

A PDF may be made to take forever, or all memory: here it can be stopped. Nothing of gripfast is imported.
"""

from __future__ import annotations

import io
import json
import logging
import os
import resource
import sys
import threading
import time
from typing import Any

MEMORY = 2 << 30
CPU_SECONDS = 30
CHARACTERS = 16 << 20
# What pypdf raises on files that are not what they claim to be, besides its own errors.
_BROKEN = (ValueError, KeyError, IndexError, TypeError, AttributeError, AssertionError, OSError, RecursionError)


def main() -> None:
    order: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_leave_with, args=(order["parent"],), daemon=True).start()
    data = sys.stdin.buffer.read()
    sys.path += order["path"]  # behind the standard library
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    json.dump(_pages(data, order["first"], order["count"]), sys.stdout)


def _leave_with(parent: int) -> None:
    """Ends this process soon after the one that asked has been killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _pages(data: bytes, first: int, count: int) -> dict[str, Any]:
    import pypdf  # noqa: PLC0415 - found only on the path of the order
    from pypdf.errors import PyPdfError  # noqa: PLC0415 - as above

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            return {"password": True}
        total = len(reader.pages)
        chosen = range(first - 1, min(total, first - 1 + count))
        texts: list[str] = []
        for number in chosen:
            texts.append(reader.pages[number].extract_text())
            if sum(map(len, texts)) > CHARACTERS:
                return {"fault": f"more than {CHARACTERS >> 20} million characters of text; ask for fewer pages"}
        return {"texts": texts, "total": total}
    except MemoryError:
        return {"fault": "it needs too much memory"}
    except (PyPdfError, *_BROKEN) as fault:
        return {"fault": type(fault).__name__}


if __name__ == "__main__":
    main()
