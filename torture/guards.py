"""Every guard is taken away once, by a patch, in a copy of the tree; a test must go red each time."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from torture.file_guards import FILE_GUARDS
from torture.trial import Outcome, Torment

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Guard:
    """What is taken away: a piece of a file, replaced; and the tests that must notice."""

    name: str
    file: str
    guard: str
    without: str
    tests: str


GUARDS: tuple[Guard, ...] = tuple(Guard(*row) for row in FILE_GUARDS)


def run(torment: Torment) -> None:
    unnoticed: list[str] = []
    chosen = GUARDS if not torment.quick else GUARDS[:: max(1, len(GUARDS) // 6)]
    for number, guard in enumerate(chosen):
        fault = _taken_away(guard, torment.room(f"guard-{number}"))
        if fault:
            unnoticed.append(guard.name)
            torment.say(f"    {guard.name}: {fault}")
    promise = "with a guard taken away, its tests go red"
    torment.tell(Outcome("guards taken away, one at a time", promise, len(chosen), len(unnoticed)))


def _taken_away(guard: Guard, copy: Path) -> str | None:
    """What is wrong: the tests stay green without the guard, or the patch no longer fits."""
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    file = copy / "src" / "holdfast" / guard.file
    text = file.read_text(encoding="utf-8")
    if text.count(guard.guard) != 1:
        return f"the guard's text is {text.count(guard.guard)} times in {guard.file}: mend this list"
    file.write_text(text.replace(guard.guard, guard.without), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(guard.tests)]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    done = subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode == 1:
        return None
    return f"pytest ended with {done.returncode}: {done.stdout.strip().splitlines()[-1:]}"
