"""Glob: the files whose path matches, newest first, in bounded memory."""

from __future__ import annotations

import os
import time

from gripfast.host.search.arguments import common_arguments, target, type_hint
from gripfast.host.search.reached import is_reached_without_links
from gripfast.host.search.ripgrep import TIMEOUT_SECONDS
from gripfast.host.search.running import run_rg
from gripfast.host.search.search_types import GlobResult, SearchPlace
from gripfast.host.search.stop import Stop
from gripfast.text.globs import Glob


def glob(
    place: SearchPlace,
    pattern: Glob,
    *,
    include_ignored: bool = False,
    limit: int = 1000,
    stop: Stop | None = None,
    seconds: float = TIMEOUT_SECONDS,
) -> GlobResult:
    """The files beneath a place whose path from it matches: names from rg, times only of what matched."""
    newest = _Newest(place, pattern, limit)
    deadline = time.monotonic() + seconds
    arguments = [*common_arguments(place, include_ignored), "--files", "--null", *type_hint(pattern.name_hint)]
    arguments += [f"-j{_threads_beside_a_reader()}", "--", target(place)]
    ended = run_rg(place, arguments, newest.feed, stop=stop or Stop(), deadline=deadline)
    paths = newest.in_order()
    if not ended.confined and place.confined:
        paths = [path for path in paths if is_reached_without_links(place.root, path)]
    return GlobResult(tuple(paths), newest.total, ended.complaint_count, ended.timed_out)


def _threads_beside_a_reader() -> int:
    """Asking for the times takes as long as the walk: it needs a processor of its own."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(processors, 12) - 1)


class _Newest:
    """The newest of the matching files that rg names, and the count of all."""

    def __init__(self, place: SearchPlace, pattern: Glob, limit: int) -> None:
        self.total = 0
        self._place = place
        self._fits = pattern.regex.fullmatch
        self._ending = pattern.ending
        self._start = len(target(place).rstrip("/")) + 1  # rg names every file from where it was sent
        self._limit = limit
        self._rest = b""
        self._kept: list[tuple[int, str]] = []
        self._oldest = -(1 << 80)  # a time before which nothing can be among the newest

    def feed(self, piece: bytes) -> None:
        names, _, self._rest = (self._rest + piece).rpartition(b"\0")
        if not names:
            return
        stat, root, kept, oldest = os.stat, self._place.root, self._kept, self._oldest
        found = self._fitting(os.fsdecode(names).split("\0"))
        self.total += len(found)
        for name in found:
            try:
                when = stat(name, dir_fd=root, follow_symlinks=False).st_mtime_ns
            except OSError:
                self.total -= 1  # gone since rg saw it
                continue
            if when >= oldest:
                kept.append((-when, name))
        if len(self._kept) > 2 * self._limit + 1000:
            self._cut()

    def _fitting(self, names: list[str]) -> list[str]:
        ending, fits, start, keep = self._ending, self._fits, self._start, self._place.keep
        if ending is not None:
            names = [name for name in names if name.endswith(ending)]
        else:
            names = [name for name in names if fits(name, start)]
        return names if keep is None else [name for name in names if keep(name[2:])]

    def in_order(self) -> list[str]:
        self._cut()
        return [name[2:] for _, name in self._kept]

    def _cut(self) -> None:
        self._kept.sort()
        del self._kept[self._limit :]
        if len(self._kept) == self._limit > 0:
            self._oldest = -self._kept[-1][0]
