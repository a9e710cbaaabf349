"""Runs the comparisons and writes RESULTS.md. Use scripts/bench."""

from __future__ import annotations

import argparse
import importlib
import time

from benchmarks import peers, report
from benchmarks.harness import Run

GROUPS = ["corridor", "files", "servers", "shell", "lisp", "cache", "rules", "growth"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller data: under two minutes")
    parser.add_argument("--only", action="append", choices=GROUPS, help="one group; may be given again")
    parser.add_argument("--no-write", action="store_true", help="print, but leave RESULTS.md as it is")
    options = parser.parse_args()
    run = Run(quick=options.quick)
    missing = peers.node_peers()
    if missing:
        print(f"note: {missing}")
    start = time.perf_counter()
    for name in options.only or GROUPS:
        print(f"{name}:", flush=True)
        importlib.import_module(f"benchmarks.groups.{name}").measure(run)
    print(f"{len(run.rows)} rows in {time.perf_counter() - start:.0f} s")
    if not options.no_write:
        report.write(run, whole=options.only is None)


if __name__ == "__main__":
    main()
