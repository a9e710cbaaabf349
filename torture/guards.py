"""Every guard is taken away once, by a patch, in a copy of the tree; a test must go red each time."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from torture.call_guards import CALL_GUARDS
from torture.file_guards import FILE_GUARDS
from torture.machine_guards import MACHINE_GUARDS
from torture.trial import Outcome, Torment

ROOT = Path(__file__).parent.parent
LEFT_OUT = (".git", ".venv", ".cache", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis")
PATIENCE = 120.0  # seconds; tests that have not ended by then hang


@dataclass(frozen=True)
class Guard:
    """What is taken away: a piece of a file, replaced; and the tests that must notice."""

    name: str
    file: str
    guard: str
    without: str
    tests: str

    def fits(self, source: Path) -> int:
        """How often the guard stands in its file: once, or this list is out of date."""
        return (source / self.file).read_text(encoding="utf-8").count(self.guard)


GUARDS: tuple[Guard, ...] = tuple(Guard(*row) for row in (*FILE_GUARDS, *CALL_GUARDS, *MACHINE_GUARDS))


def run(torment: Torment) -> None:
    chosen = GUARDS if not torment.quick else GUARDS[:: len(GUARDS) // 10]
    copies = _Copies(torment, at_once=min(2, os.cpu_count() or 1))
    with ThreadPoolExecutor(copies.count) as pool:
        told = dict(pool.map(partial(_tried, copies), dict.fromkeys(guard.tests for guard in chosen)))
        green = {tests for tests, word in told.items() if word == "green"}
        found = list(pool.map(partial(_taken_away, copies), [guard for guard in chosen if guard.tests in green]))
    sick = {tests: word for tests, word in told.items() if word not in ("green", "skipped")}
    unnoticed = [(guard, word) for guard, word in found if word not in ("red", "hangs")]
    for guard, word in unnoticed:
        torment.say(f"    {guard.name}: {word}")
    for tests, word in sick.items():
        torment.say(f"    {tests}: {word} with every guard in place")
    skipped = sum(told[guard.tests] == "skipped" for guard in chosen)
    hung = [guard.name for guard, word in found if word == "hangs"]
    notes = [f"{len(hung)} of them by a test that never ended ({', '.join(hung)})"] if hung else []
    notes += [f"{skipped} left out: their tests are skipped on this machine"] if skipped else []
    promise = "with a guard taken away, its tests go red"
    failed = len(unnoticed) + sum(guard.tests in sick for guard in chosen)
    tried = len(chosen) - skipped
    torment.tell(Outcome("guards taken away, one at a time", promise, tried, failed, "; ".join(notes)))


class _Copies:
    """Copies of the tree to break things in, one for each who works at once."""

    def __init__(self, torment: Torment, at_once: int) -> None:
        self.count = at_once
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(at_once):
            place = torment.room(f"copy-{number}") / "tree"
            shutil.copytree(ROOT, place, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
            self._free.put(place)

    def take(self) -> Path:
        return self._free.get()

    def give_back(self, place: Path) -> None:
        self._free.put(place)


def _tried(copies: _Copies, tests: str) -> tuple[str, str]:
    """The tests must be green with the guard, or going red without it says nothing."""
    copy = copies.take()
    try:
        return tests, _ended(copy, tests)
    finally:
        copies.give_back(copy)


def _taken_away(copies: _Copies, guard: Guard) -> tuple[Guard, str]:
    copy = copies.take()
    source = copy / "src" / "holdfast"
    try:
        if (count := guard.fits(source)) != 1:
            return guard, f"the guard's text is {count} times in {guard.file}: mend the list"
        whole = (source / guard.file).read_text(encoding="utf-8")
        _put(source / guard.file, whole.replace(guard.guard, guard.without))
        word = _ended(copy, guard.tests)
        _put(source / guard.file, whole)
        return guard, "its tests stay green" if word == "green" else word
    finally:
        copies.give_back(copy)


def _put(file: Path, text: str) -> None:
    """Replaces a module; the compiled one goes, as it may be of the same second and size."""
    file.write_text(text, encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def _ended(copy: Path, tests: str) -> str:
    """How a run of the tests ended, in a word; a broken import or a selection of nothing is not red."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(tests)]
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, cwd=copy, env=environment, text=True, start_new_session=True, **pipes)
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "hangs"
    last = said.strip().splitlines()[-1:]
    if process.returncode == 0:
        return "green" if "passed" in last[0] else "skipped"
    return "red" if process.returncode == 1 else f"pytest ended with {process.returncode}: {last}"
