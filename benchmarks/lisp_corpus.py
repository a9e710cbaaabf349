"""The Lisp scanner on real source: the same boundaries as SBCL's reader, how fast, and what a view saves.

Run by `scripts/lisp-corpus`; the corpus tests and `scripts/bench` call the functions.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gripfast.lisp.scanner import PREAMBLE, scan
from gripfast.lisp.view import collapse

READER = Path(__file__).with_name("lisp_boundaries.lisp")
SUFFIXES = {".lisp", ".asd"}


@dataclass(frozen=True)
class Comparison:
    """In how many files our units are the same as SBCL's."""

    files: int
    unreadable: int  # by SBCL
    identical: int
    different: tuple[str, ...]
    silent: tuple[str, ...]  # unreadable files in which our scanner found no fault

    @property
    def share(self) -> float:
        return self.identical / max(1, self.files - self.unreadable)


@dataclass(frozen=True)
class Savings:
    """The sizes of files and of their collapsed views, in characters."""

    total: float
    median: float
    source_tokens: int
    view_tokens: int


def folder() -> Path:
    """The folder of the corpus, whether or not it exists."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("GRIPFAST_LISP_CORPUS") or Path(cache) / "gripfast" / "lisp-corpus")


def missing() -> str:
    """Why a comparison is not possible on this machine; empty if it is."""
    if not shutil.which("sbcl"):
        return "sbcl is not installed"
    return "" if (folder() / "complete").exists() else "no corpus: run scripts/lisp-corpus fetch"


def files() -> list[Path]:
    return sorted(path for path in folder().rglob("*") if path.suffix in SUFFIXES and path.is_file())


def decoded(path: Path) -> str:
    """The text of a file: UTF-8, else latin-1; newlines unchanged; without a byte order mark or `#!` line."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return PREAMBLE.sub("", text, count=1)


def sbcl_boundaries(texts: Sequence[str]) -> list[list[int] | None]:
    """Start and end of every unit in each text, by SBCL's reader; None where it signals an error."""
    lines = "".join(f"{len(text)}\n{text}" for text in texts).encode()
    command = ["sbcl", "--noinform", "--control-stack-size", "64MB", "--script", str(READER)]
    answer = subprocess.run(command, input=lines, capture_output=True, check=True, timeout=600).stdout.decode()
    return [None if line == "error" else [int(at) for at in line.split()] for line in answer.splitlines()]


def boundaries(text: str) -> tuple[list[int], bool]:
    """Start and end of every unit by our scanner, and whether it found a fault."""
    units = list(scan(text))
    return [at for unit in units for at in (unit.start, unit.end)], any(unit.fault for unit in units)


def compare(paths: Sequence[Path]) -> Comparison:
    texts = [decoded(path) for path in paths]
    different, silent, unreadable, identical = list[str](), list[str](), 0, 0
    for path, text, truth in zip(paths, texts, sbcl_boundaries(texts), strict=True):
        ours, faulty = boundaries(text)
        if truth is None:
            unreadable += 1
            silent += [] if faulty else [path.name]
        elif truth == ours and not faulty:
            identical += 1
        else:
            different.append(path.name)
    return Comparison(len(paths), unreadable, identical, tuple(different), tuple(silent))


def megabytes_a_second(paths: Sequence[Path]) -> float:
    """The speed of the scanner alone, by processor time."""
    texts = [decoded(path) for path in paths]
    start = time.process_time()
    for text in texts:
        for _ in scan(text):
            pass
    return sum(len(text.encode()) for text in texts) / 1e6 / (time.process_time() - start)


def savings(paths: Sequence[Path]) -> Savings:
    """The size of collapsed views relative to their files, with line numbers. A token counts as four characters."""
    sizes = [(len(text), len(collapse(text, limit=10**9).content)) for text in map(decoded, paths) if text.strip()]
    source, views = sum(size for size, _ in sizes), sum(view for _, view in sizes)
    median = statistics.median(view / size for size, view in sizes)
    return Savings(views / source, median, source // 4, views // 4)


BIG = """
import re, sys, time
from gripfast.lisp.view import collapse
start = time.process_time()
collapse(sys.stdin.buffer.read().decode())
spent = time.process_time() - start
peak = re.search("VmHWM: *([0-9]+)", open("/proc/self/status").read().replace(chr(9), " "))
print(spent, int(peak[1]) // 1024)
"""


def big_file(paths: Sequence[Path], size: int = 10_000_000) -> tuple[float, int]:
    """Processor seconds and peak memory in MB for the view of a file of that size, made of real forms."""
    text = "\n".join(map(decoded, paths))[:size]
    text = text[: text.rfind("\n(")]
    answer = subprocess.run(
        [sys.executable, "-c", BIG], input=text.encode(), capture_output=True, check=True, timeout=300
    )
    seconds, memory = answer.stdout.split()
    return float(seconds), int(memory)


def main() -> int:
    if reason := missing():
        print(reason, file=sys.stderr)
        return 1
    paths = files()
    found = compare(paths)
    saved = savings(paths)
    seconds, memory = big_file(paths)
    print(f"{found.files} files, {found.unreadable} of them unreadable for SBCL")
    print(f"same boundaries as SBCL: {found.identical} ({found.share:.3%}); different: {found.different or 'none'}")
    print(f"unreadable for SBCL and no fault noticed: {found.silent or 'none'}")
    print(f"scanner: {megabytes_a_second(paths):.1f} MB/s of processor time")
    print(f"view of a 10 MB file: {seconds:.2f} s of processor time, {memory} MB at most")
    print(f"views leave {saved.total:.1%} of all characters, {saved.median:.1%} of the median file")
    print(f"in tokens: {saved.view_tokens:,} of {saved.source_tokens:,}")
    return 0 if found.share >= 0.999 and not found.silent else 1


if __name__ == "__main__":
    sys.exit(main())
