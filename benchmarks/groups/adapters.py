"""A call through each adapter beside Session.call, in the environments that scripts/peers makes for them."""

from __future__ import annotations

import json
import os
import subprocess

from benchmarks.adapters_inside import SIDES
from benchmarks.harness import ROOT, Row, Run, quartiles

GROUP = "A call through an adapter"
LIMIT = 1.3
ENVIRONMENTS = ROOT / ".cache" / "peers" / "adapters"


def measure(run: Run) -> None:
    for framework in SIDES:
        name, figure = f"Read of a small file through {framework}, against Session.call", f"≤ {LIMIT}×"
        python = ENVIRONMENTS / framework / "bin" / "python"
        if not python.exists():
            run.not_run(GROUP, name, figure, "scripts/peers has made no environment for it")
            continue
        done = subprocess.run(
            [str(python), "-m", "benchmarks.adapters_inside", framework],
            cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )  # fmt: skip
        if done.returncode != 0:
            run.not_run(GROUP, name, figure, (done.stderr.strip().splitlines() or ["it failed"])[-1])
            continue
        low, middle, high = quartiles(json.loads(done.stdout.splitlines()[-1]))
        spread = f"{low:.2f}–{high:.2f}"
        run.add(Row(GROUP, name, figure, f"{middle:.2f}×", spread, middle <= LIMIT, "", middle))
