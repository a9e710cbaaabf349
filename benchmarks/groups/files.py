"""Grep, Glob and windows of big files: whole calls, compared with the plain tools."""

from __future__ import annotations

import glob
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.harness import Run, bound, compare
from benchmarks.inside import Calls, peak_mb, session_on
from gripfast.host.search.ripgrep import find_rg

GROUP = "Files and search"
QUERIES = {
    "a rare literal": "the needle is",
    "a common literal": "mutex",
    "an alternation": "probe remove|goto out err",
}


def measure(run: Run) -> None:
    files = 8_000 if run.quick else 80_000
    tree = data.tree(files)
    with session_on(tree) as call:
        run.step(GROUP, "Grep, against bare rg into a pipe", lambda: _grep(run, tree, call, files))
        run.step(GROUP, "Glob, against pathlib and glob", lambda: _glob(run, tree, call, files))
    _window(run)


def _grep(run: Run, tree: Path, call: Calls, files: int) -> None:
    for name, pattern in QUERIES.items():
        lines = _bare_rg(tree, pattern)
        told = call("Grep", pattern=pattern, output_mode="content").text.rpartition("\n")[2]
        if not re.search(rf"\b{lines:,}\b|\b{lines}\b", told):
            raise RuntimeError(f"rg finds {lines} lines, Grep says: {told}")
        compare(
            run,
            GROUP,
            f"Grep of {name} in {files:,} files",
            {
                "gripfast": lambda pattern=pattern: call("Grep", pattern=pattern, output_mode="content"),
                "bare rg into a pipe": lambda pattern=pattern: _bare_rg(tree, pattern),
            },
            at_most={"bare rg into a pipe": 1.3},
            note="stable order, true total",
        )
    few = peak_mb(tree, [("Grep", {"pattern": "the needle is", "output_mode": "content"})])
    many = peak_mb(tree, [("Grep", {"pattern": "e", "output_mode": "content"})])
    bound(run, GROUP, "memory of Grep with a match on nearly every line, over one with few", many - few, 64, "MB")


def _bare_rg(tree: Path, pattern: str) -> int:
    """Reads all output of rg; returns the number of lines."""
    command = [find_rg(), "--no-config", "--hidden", "--null", "-n", "-H", "--no-heading", "-e", pattern, "--", "."]
    with subprocess.Popen(command, cwd=tree, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = 0
        while piece := process.stdout.read(1 << 18):
            lines += piece.count(b"\n")
    return lines


def _glob(run: Run, tree: Path, call: Calls, files: int) -> None:
    def newest(paths: list[Path]) -> list[Path]:
        return sorted(paths, key=lambda path: path.stat().st_mtime, reverse=True)

    sides: dict[str, Callable[[], Any]] = {
        "gripfast": lambda: call("Glob", pattern="**/*.h"),
        "pathlib": lambda: newest(list(tree.rglob("*.h"))),
        "glob": lambda: newest([Path(name) for name in glob.glob(f"{tree}/**/*.h", recursive=True)]),
    }
    compare(
        run,
        GROUP,
        f"Glob `**/*.h` by mtime in {files:,} files",
        sides,
        at_most={}
        if run.quick
        else {"pathlib": 1 / 3, "glob": 1 / 3},  # in a small tree, starting rg is half of the time
        rounds=5,
        note="of 80,000 files, in a full run: ≤ 0.333×" if run.quick else "",
    )


def _window(run: Run) -> None:
    size = 30_000_000 if run.quick else 1_000_000_000
    path = data.text(size)
    with session_on(path.parent) as call:
        lines = int(
            call("Read", file_path=path.name, offset=10**9, limit=1)
            .text.split(" lines")[0]
            .split()[-1]
            .replace(",", "")
        )
        last = lines - 200
        compare(
            run,
            GROUP,
            f"the last 200 lines of {size // 1_000_000:,} MB by their offset",
            {
                "gripfast": lambda: call("Read", file_path=path.name, offset=last, limit=200),
                "a bare scan for newlines": lambda: _scan(path),
            },
            at_most={"a bare scan for newlines": 1.5},
            rounds=3 if run.quick else 5,
        )
    peak = peak_mb(path.parent, [("Read", {"file_path": path.name, "offset": last, "limit": 200})])
    bound(run, GROUP, "memory of the whole process for that window", peak, 64, "MB")


def _scan(path: Path) -> int:
    count = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(1 << 18):
            count += chunk.count(b"\n")
    return count
