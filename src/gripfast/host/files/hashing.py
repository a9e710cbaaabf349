"""The digest of what was read, computed in a thread: for a megabyte that takes as long as the rest of its Read."""

from __future__ import annotations

import functools
import hashlib
from concurrent.futures import Future, ThreadPoolExecutor

_SMALL = 64 * 1024  # hashed in less time than it takes to hand it over
_MOST_WAITING = 4  # what waits is kept in memory

_waiting: set[Future[str]] = set()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data, usedforsecurity=False).hexdigest()


def digest_soon(data: bytes) -> str | Future[str]:
    """The digest of these bytes, or the promise of it. They can't change, so it is that of what was read, whatever
    happens to the file."""
    if len(data) <= _SMALL or len(_waiting) >= _MOST_WAITING:
        return digest_of(data)
    try:
        promise = _thread().submit(digest_of, data)
    except RuntimeError:  # no thread can be started, or the program ends
        return digest_of(data)
    _waiting.add(promise)
    promise.add_done_callback(_waiting.discard)
    return promise


@functools.cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "gripfast-digest")
