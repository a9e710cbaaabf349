"""Bash: what a call costs compared with a plain shell, and how fast output is read."""

from __future__ import annotations

import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from benchmarks.harness import CACHE, ROOT, Run, bound, compare, in_turns, seconds
from benchmarks.inside import peak_mb, session_on
from gripfast.host.files.scope import Scope
from gripfast.host.shell.sandbox import choose
from gripfast.host.shell.shells import Shells

GROUP = "Bash"


def measure(run: Run) -> None:
    place = CACHE / "shell"
    place.mkdir(parents=True, exist_ok=True)
    _overhead(run, place, "off", 5.0, "files are compared before and after it, for undo")
    _sandboxed(run, place)
    run.step(GROUP, "draining output", lambda: _flood(run, place))
    run.step(GROUP, "nasty commands", lambda: _nasty(run, place))


def _sandboxed(run: Run, place: Path) -> None:
    """With bubblewrap, or the next best sandbox if that does not work."""
    found = choose("auto")
    if found.level != "bwrap":
        run.not_run(GROUP, "overhead of `true`, in bubblewrap", "≤ 8 ms", "; ".join(found.faults))
    if found.level != "none":
        _overhead(run, place, "auto", 8.0, f"by {found.level}; files are compared too")


def _overhead(run: Run, place: Path, sandbox: str, limit: float, note: str = "") -> None:
    with session_on(place, sandbox=sandbox) as call:
        sides = {
            "gripfast": partial(seconds, partial(call, "Bash", command="true")),
            "bare": partial(
                seconds, partial(subprocess.run, ["bash", "-c", "true"], check=True, capture_output=True)
            ),
        }
        times = in_turns(sides, 20 if run.quick else 100, warm=3).values
    over = [(ours - bare) * 1000 for ours, bare in zip(times["gripfast"], times["bare"], strict=True)]
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
                "gripfast": partial(call, "Bash", command=flood, timeout=600_000),
                "a reader that only counts": lambda: _count(flood),
            },
            at_most={"a reader that only counts": 2.0},
            rounds=3,
        )
    arguments: dict[str, Any] = {"command": flood, "timeout": 600_000}
    peak = peak_mb(place, [("Bash", arguments)], sandbox="off")
    bound(run, GROUP, f"memory of the whole process while draining {megabytes} MB", peak, 100, "MB")


def _nasty(run: Run, place: Path) -> None:
    """The same storm of commands as in scripts/torture, with the available sandbox."""
    sys.path.append(str(ROOT / "tests"))
    from attacks.shell import NASTY, fresh_mark, gone, kill_server, storm

    times, servers = (24, 2) if run.quick else (1_000, 20)

    async def play() -> list[str]:
        faults = ["a read hung"]
        async with Shells(Scope.workspace(place), sandbox="auto") as shells:
            with anyio.move_on_after(60 + times):
                faults = await storm(shells, times, seed=1)
        return faults

    faults = anyio.run(play)
    name = f"wrong answers, hung reads and survivors of {times:,} nasty commands"
    bound(run, GROUP, name, len(faults), 0, "in all", note="; ".join([f"{len(NASTY)} kinds", *faults[:2]]))
    left = 0
    for _ in range(servers):
        mark = fresh_mark()
        kill_server(str(place), "auto", mark, "setsid sleep 987.@ & echo x; sleep 987.@")
        left += len(anyio.run(partial(gone, mark, within=10)))
    bound(run, GROUP, f"survivors of {servers} servers killed in mid-command", left, 0, "processes")


def _count(command: str) -> int:
    total = 0
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        while chunk := process.stdout.read(1 << 18):
            total += len(chunk)
    return total
