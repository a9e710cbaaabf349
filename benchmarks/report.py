"""Writes RESULTS.md: the machine, the versions, the commands, every row, met or missed; and the charts."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import charts, peers
from benchmarks.harness import ROOT, Row, Run
from holdfast.errors import ToolError
from holdfast.host.search import find_rg

RESULTS = ROOT / "benchmarks" / "RESULTS.md"
INTRO = """# Results

Written by `scripts/bench`; nobody edits it by hand. Both sides of a row are measured in one run, in turns, several
rounds. A ratio is our time over theirs: below 1× we are faster. The spread is the middle half of the rounds. A figure
that is missed is shown as missed, a row that could not be run says why. Absolute times of this machine mean nothing
on yours: run it yourself.
"""


def write(run: Run, *, minutes: float, load: float, results: Path = RESULTS) -> None:
    results.write_text(page(run, minutes=minutes, load=load), encoding="utf-8")
    folder = results.parent / "charts"
    folder.mkdir(exist_ok=True)
    for name, chart in charts.of(run.rows).items():
        (folder / f"{name}.svg").write_text(chart, encoding="utf-8")
    print(f"wrote {results.name} and {folder.name}/")


def page(run: Run, *, minutes: float, load: float) -> str:
    groups = dict.fromkeys(row.group for row in run.rows)
    tables = [_table(name, [row for row in run.rows if row.group == name]) for name in groups]
    return "\n".join([INTRO, _machine(run, minutes, load), *tables])


def _machine(run: Run, minutes: float, load: float) -> str:
    missed = sum(row.met is False for row in run.rows)
    met = sum(row.met is True for row in run.rows)
    absent = sum(row.measured == "not run" for row in run.rows)
    cores = os.cpu_count() or 1
    lines = [
        f"- **{met} figures met, {missed} missed, {absent} not run**",
        f"- `scripts/bench{' --quick' if run.quick else ''}`, {minutes:.0f} minutes, on {platform.system()} "
        f"{platform.release().split('-')[0]}, {cores} cores, Python {platform.python_version()}",
        "- " + ", ".join(_versions()),
        f"- the machine's load when it began: {load:.1f}"
        + ("" if load < cores / 2 else ": others were at work, so the spreads are wide"),
    ]
    return "\n".join(lines) + "\n"


def _versions() -> list[str]:
    names = ("holdfast", "pydantic", "mcp", "anyio", "regex", "fastmcp", "pydantic-ai-slim")
    found = [f"{name} {_package(name)}" for name in names]
    found += [f"{name.rpartition('/')[2]} {_node_package(name)}" for name in peers.NODE_PEERS]
    found += [f"ripgrep {_said(_rg(), '--version', 1)}", f"node {_said(shutil.which('node'), '--version', 0)}"]
    return found + [f"{name} {_said(shutil.which(name), '--version', 1)}" for name in ("bwrap", "sbcl")]


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _node_package(name: str) -> str:
    file = peers.NPM / "node_modules" / name / "package.json"
    return json.loads(file.read_text(encoding="utf-8"))["version"] if file.is_file() else "absent"


def _rg() -> str | None:
    try:
        return find_rg()
    except ToolError:
        return None


def _said(program: str | None, option: str, word: int) -> str:
    if program is None:
        return "absent"
    words = subprocess.run([program, option], capture_output=True, text=True, check=False).stdout.split()
    return words[word] if len(words) > word else "unknown"


def _table(name: str, rows: list[Row]) -> str:
    lines = [f"## {name}", "", "| what | figure | measured | spread | | |", "|---|---|---|---|---|---|"]
    lines += [
        f"| {row.name} | {row.figure} | {row.measured} | {row.spread} | {row.verdict} | {row.note} |" for row in rows
    ]
    return "\n".join(lines) + "\n"
