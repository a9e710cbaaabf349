"""A search of a stored output ends when nobody waits for it any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from gripfast.host.search.line_search import LineSearch, Query


def test_a_stopped_search_ends_though_its_bytes_do_not() -> None:
    begun, over = threading.Event(), threading.Event()

    def bytes_without_end(start: int) -> Iterator[bytes]:
        while not over.is_set():
            yield b"another line\n" * 1000
            begun.set()

    search = LineSearch(Query("needle", False, 0, 0, 50), bytes_without_end, timeout=3600)
    thread = threading.Thread(target=search.run)
    thread.start()
    assert begun.wait(30)
    search.stop()
    thread.join(30)
    try:
        assert not thread.is_alive()
    finally:
        over.set()
        thread.join()
