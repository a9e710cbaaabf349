"""Runs the comparisons and writes RESULTS.md and the charts. Use scripts/bench."""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import lisp_corpus, peers, report
from benchmarks.harness import CACHE, Run

GROUPS = [
    *"corridor adapters toolsets files servers fleet shell lisp outline".split(),
    *"cache rules tokens growth undo console patch start".split(),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller data: under two minutes")
    parser.add_argument("--only", action="append", choices=GROUPS, help="run only this group; repeatable")
    parser.add_argument("--no-write", action="store_true", help="print, but leave RESULTS.md as it is")
    parser.add_argument("--page", type=Path, help="write the page to this path instead, and the charts next to it")
    options = parser.parse_args()
    run = Run(quick=options.quick)
    load = os.getloadavg()[0]
    CACHE.mkdir(parents=True, exist_ok=True)
    if missing := peers.node_peers():
        print(f"note: {missing}")
    start = time.perf_counter()
    with _cache_of_its_own():
        for name in options.only or GROUPS:
            print(f"{name}:", flush=True)
            began = time.perf_counter()
            measure(run, name)
            print(f"  {name} took {time.perf_counter() - began:.0f} s", flush=True)
    minutes = (time.perf_counter() - start) / 60
    print(f"{len(run.rows)} rows in {minutes:.1f} minutes")
    if options.page is None and (options.no_write or options.only):
        print("RESULTS.md is left as it is")
    else:
        only = "".join(f" --only {name}" for name in options.only or ())
        report.write(run, minutes=minutes, load=load, results=options.page or report.RESULTS, options=only)


@contextmanager
def _cache_of_its_own() -> Generator[None]:
    """Uses a temporary cache directory, because outputs of a gigabyte are stored."""
    os.environ.setdefault("GRIPFAST_LISP_CORPUS", str(lisp_corpus.folder()))
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="outputs-") as place:
        os.environ["XDG_CACHE_HOME"] = place
        yield


def measure(run: Run, name: str) -> None:
    group = importlib.import_module(f"benchmarks.groups.{name}")
    run.step(group.GROUP, "the rest of this group", lambda: group.measure(run))


if __name__ == "__main__":
    main()
