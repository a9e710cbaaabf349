"""Removes every guard once, in a copy of the tree; each time a test must fail."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from torture.call_guards import CALL_GUARDS
from torture.cuts import Guard, LostPlace
from torture.file_guards import FILE_GUARDS
from torture.keeper import HANGS
from torture.machine_guards import MACHINE_GUARDS
from torture.record_guards import RECORD_GUARDS
from torture.trial import Outcome, Torment

ROOT = Path(__file__).parent.parent
LEFT_OUT = (".git", ".venv", ".cache", "__pycache__", ".pytest_cache", ".ruff_cache", ".hypothesis")
PATIENCE = 120.0  # seconds after which the tests count as hanging


GUARDS: tuple[Guard, ...] = (*FILE_GUARDS, *RECORD_GUARDS, *CALL_GUARDS, *MACHINE_GUARDS)


def run(torment: Torment) -> None:
    chosen = GUARDS if not torment.quick else GUARDS[:: len(GUARDS) // 8]
    copies = _Copies(torment, at_once=min(2, os.cpu_count() or 1))
    with ThreadPoolExecutor(copies.count) as pool:
        sick = [word for word in pool.map(copies.try_whole, _whole_runs(chosen)) if word not in ("green", "skipped")]
        found = {} if sick else dict(pool.map(partial(_taken_away, copies, torment), chosen))
    name, promise = "guards taken away, one at a time", "with a guard taken away, its tests go red"
    if sick:
        torment.tell(Outcome(name, promise, len(chosen), len(chosen), f"red with every guard in place: {sick[0]}"))
        return
    words = list(found.values())
    failed = len(words) - sum(words.count(word) for word in ("red", "hangs", "skipped"))
    notes = [f"{words.count('hangs')} of them by a test that never ended"] if "hangs" in words else []
    notes += [f"{words.count('skipped')} more not tried: their tests are skipped here"] if "skipped" in words else []
    torment.tell(Outcome(name, promise, len(words) - words.count("skipped"), failed, "; ".join(notes)))


def _whole_runs(chosen: Sequence[Guard]) -> list[str]:
    """The tests to run with every guard in place: they must pass, or a failure proves nothing."""
    if len(chosen) < 20:
        return list(dict.fromkeys(guard.tests for guard in chosen))
    return [" ".join(sorted({word for guard in chosen for word in guard.tests.split() if word.endswith(".py")}))]


class _Copies:
    """Copies of the tree to remove guards in, one for each worker."""

    def __init__(self, torment: Torment, at_once: int) -> None:
        self.count = at_once
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(at_once):
            place = torment.room(f"copy-{number}") / "tree"
            shutil.copytree(ROOT, place, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
            self._free.put(place)

    @contextmanager
    def one(self) -> Generator[Path]:
        place = self._free.get()
        try:
            yield place
        finally:
            self._free.put(place)

    def try_whole(self, tests: str) -> str:
        with self.one() as copy:
            word, said = _ended(copy, tests, patience=10 * PATIENCE)
            return word if word in ("green", "skipped") else f"{word}: {said}"


def _taken_away(copies: _Copies, torment: Torment, guard: Guard) -> tuple[str, str]:
    with copies.one() as copy:
        source = copy / "src" / "gripfast"
        try:
            without = guard.taken_from(source)
        except LostPlace as fault:
            word = str(fault)
        else:
            whole = (source / guard.file).read_text(encoding="utf-8")
            _put(source / guard.file, without)
            word, _ = _ended(copy, guard.tests)
            _put(source / guard.file, whole)
    if word not in ("red", "skipped"):
        torment.say(f"    without `{guard.name}`: {word}")
    return guard.name, word


def _put(file: Path, text: str) -> None:
    """Replaces a module and deletes its .pyc, which would look current if size and second are the same."""
    file.write_text(text, encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def _ended(copy: Path, tests: str, patience: float = PATIENCE) -> tuple[str, str]:
    """How a run of the tests ended, in a word, and its last line of output. A broken import or an empty selection
    does not count as red."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(tests)]
    keeper = [
        sys.executable,
        "-m",
        "torture.keeper",
        str(copy),
        str(patience),
    ]  # from this tree, whose guards are in place
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        # The keeper ends everything it started when its input is closed, which also happens when we are killed.
        with subprocess.Popen(
            [*keeper, *pytest], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=said, stderr=said
        ) as process:
            code = process.wait()
        if code == HANGS:
            return "hangs", ""
        said.seek(0)
        lines = [line for line in said.read().splitlines() if line.strip()]
    if code == 0:
        return ("green" if "passed" in lines[-1] else "skipped"), lines[-1]
    faults = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return ("red" if code == 1 else f"pytest ended with {code}"), (faults or lines)[-1]
