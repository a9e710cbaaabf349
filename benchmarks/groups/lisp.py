"""The Lisp scanner on real source: compared with SBCL's reader, its speed, and what a collapsed view saves."""

from __future__ import annotations

from pathlib import Path

from benchmarks import lisp_corpus
from benchmarks.harness import Row, Run, bound

GROUP = "Lisp"


SAME, OTHER, SPEED = "same top-level boundaries as SBCL", "files with other boundaries than SBCL's", "the scanner"
BIG, MEMORY = "the view of a 10 MB file", "memory of the whole process for it"
READER = "the scanner's throughput, against cl-mcp's reader"


def measure(run: Run) -> None:
    if reason := lisp_corpus.missing():
        figures = {SAME: "≥ 99.9 %", OTHER: "≤ 0 files", SPEED: "≥ 20 MB/s", BIG: "≤ 1.5 s", MEMORY: "≤ 200 MB"}
        for name, figure in figures.items():
            run.not_run(GROUP, name, figure, reason)
    else:
        paths = lisp_corpus.files()
        chosen = paths[::10] if run.quick else paths
        run.step(GROUP, SAME, lambda: _boundaries(run, chosen))
        run.step(GROUP, SPEED, lambda: _speed(run, chosen))
        run.step(GROUP, BIG, lambda: _big(run, paths))
        run.step(GROUP, "a view, of the whole corpus", lambda: _savings(run, chosen))
    run.not_run(GROUP, READER, "≥ 10×", "this script does not install it: it needs SBCL with Quicklisp")


def _boundaries(run: Run, paths: list[Path]) -> None:
    found = lisp_corpus.compare(paths)
    counts = f"{found.identical:,} of {found.files - found.unreadable:,} files SBCL can read"
    bound(run, GROUP, SAME, 100 * found.share, 99.9, "%", at_least=True, note=counts)
    bound(run, GROUP, OTHER, len(found.different), 0, "files")
    unnoticed = f"in {len(found.silent):,} of them we found no fault"
    run.add(Row(GROUP, "files SBCL can't read", "–", f"{found.unreadable:,}", note=unnoticed))


def _speed(run: Run, paths: list[Path]) -> None:
    speed = sorted(lisp_corpus.megabytes_a_second(paths) for _ in range(3))
    spread = f"{speed[0]:.0f}–{speed[2]:.0f}"
    bound(run, GROUP, SPEED, speed[1], 20, "MB/s", at_least=True, spread=spread, note="processor time")


def _big(run: Run, paths: list[Path]) -> None:
    seconds, memory = lisp_corpus.big_file(paths)
    bound(run, GROUP, BIG, seconds, 1.5, "s", note="processor time")
    bound(run, GROUP, MEMORY, memory, 200, "MB")


def _savings(run: Run, paths: list[Path]) -> None:
    saved = lisp_corpus.savings(paths)
    tokens = f"{saved.view_tokens:,} of {saved.source_tokens:,} tokens, at four characters each"
    run.add(Row(GROUP, "a view, of the whole corpus", "–", f"{saved.total:.0%}", note=tokens, value=saved.total))
    run.add(Row(GROUP, "a view, of the median file", "–", f"{saved.median:.0%}", value=saved.median))
