"""The Lisp scanner on real source: against SBCL's reader, its speed, and what a collapsed view saves."""

from __future__ import annotations

from benchmarks import lisp_corpus
from benchmarks.harness import Row, Run, bound

GROUP = "Lisp"


def measure(run: Run) -> None:
    if reason := lisp_corpus.missing():
        run.not_run(GROUP, "the corpus", "–", reason)
        return
    paths = lisp_corpus.files()
    if run.quick:
        paths = paths[::10]
    found = lisp_corpus.compare(paths)
    counts = f"{found.identical:,} of {found.files - found.unreadable:,} files SBCL can read"
    bound(run, GROUP, "same top-level boundaries as SBCL", 100 * found.share, 99.9, "%", at_least=True, note=counts)
    bound(run, GROUP, "files with other boundaries than SBCL's", len(found.different), 0, "files")
    unnoticed = f"in {len(found.silent):,} of them we found no fault"
    run.add(Row(GROUP, "files SBCL can't read", "–", f"{found.unreadable:,}", note=unnoticed))
    speed = sorted(lisp_corpus.megabytes_a_second(paths) for _ in range(3))
    spread = f"{speed[0]:.0f}–{speed[2]:.0f}"
    bound(run, GROUP, "the scanner", speed[1], 20, "MB/s", at_least=True, spread=spread, note="processor time")
    if not run.quick:
        seconds, memory = lisp_corpus.big_file(paths)
        bound(run, GROUP, "the view of a 10 MB file", seconds, 1.5, "s", note="processor time")
        bound(run, GROUP, "memory of the whole process for it", memory, 200, "MB")
    saved = lisp_corpus.savings(paths)
    tokens = f"{saved.view_tokens:,} of {saved.source_tokens:,} tokens, at four characters each"
    run.add(Row(GROUP, "a view, of the whole corpus", "–", f"{saved.total:.0%}", note=tokens, value=saved.total))
    run.add(Row(GROUP, "a view, of the median file", "–", f"{saved.median:.0%}", value=saved.median))
