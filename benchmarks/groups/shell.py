"""Bash: what a call costs over a bare shell, and draining a flood."""

from __future__ import annotations

import statistics
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import CACHE, Run, bound, compare, in_turns, seconds
from benchmarks.inside import peak_mb, session_on
from holdfast.host.sandbox import choose

GROUP = "Bash"


def measure(run: Run) -> None:
    place = CACHE / "shell"
    place.mkdir(parents=True, exist_ok=True)
    _overhead(run, place, "off", 5.0)
    level = choose("auto").level
    if level == "none":
        run.not_run(GROUP, "overhead of a call in the sandbox", "≤ 10 ms", "neither bubblewrap nor Landlock here")
    else:
        _overhead(run, place, "auto", 10.0, f"by {level}")
    _flood(run, place)


def _overhead(run: Run, place: Path, sandbox: str, limit: float, note: str = "") -> None:
    with session_on(place, sandbox=sandbox) as call:
        sides = {
            "holdfast": partial(seconds, partial(call, "Bash", command="true")),
            "bare": partial(
                seconds, partial(subprocess.run, ["bash", "-c", "true"], check=True, capture_output=True)
            ),
        }
        times = in_turns(sides, 20 if run.quick else 100, warm=3).values
    over = [(ours - bare) * 1000 for ours, bare in zip(times["holdfast"], times["bare"], strict=True)]
    low, middle, high = statistics.quantiles(over, n=4)
    name = f"overhead of `true` over subprocess.run, sandbox {sandbox}"
    bound(run, GROUP, name, middle, limit, "ms", spread=f"{low:.1f}–{high:.1f}", note=note)


def _flood(run: Run, place: Path) -> None:
    megabytes = 30 if run.quick else 1000
    flood = f"head -c {megabytes}M /dev/zero | tr '\\0' 'x' | fold -w 99"
    with session_on(place, sandbox="off") as call:
        compare(
            run,
            GROUP,
            f"draining {megabytes} MB of output",
            {
                "holdfast": partial(call, "Bash", command=flood, timeout=600_000),
                "a reader that only counts": lambda: _count(flood),
            },
            at_most={"a reader that only counts": 2.0},
            rounds=3,
        )
    arguments: dict[str, Any] = {"command": flood, "timeout": 600_000}
    peak = peak_mb(place, [("Bash", arguments)], sandbox="off")
    bound(run, GROUP, f"memory of the whole process while draining {megabytes} MB", peak, 100, "MB")


def _count(command: str) -> int:
    total = 0
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        while chunk := process.stdout.read(1 << 18):
            total += len(chunk)
    return total
