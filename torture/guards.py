"""Every guard is taken away once, by a patch, in a copy of the tree; a test must go red each time."""

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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from torture.call_guards import CALL_GUARDS
from torture.file_guards import FILE_GUARDS
from torture.keeper import HANGS
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
    """The tests must be green with every guard in place, or going red says nothing."""
    if len(chosen) < 20:
        return list(dict.fromkeys(guard.tests for guard in chosen))
    return [" ".join(sorted({word for guard in chosen for word in guard.tests.split() if word.endswith(".py")}))]


class _Copies:
    """Copies of the tree to break things in, one for each who works at once."""

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
        source = copy / "src" / "holdfast"
        if (count := guard.fits(source)) != 1:
            word = f"its text is {count} times in {guard.file}: mend the list"
        else:
            whole = (source / guard.file).read_text(encoding="utf-8")
            _put(source / guard.file, whole.replace(guard.guard, guard.without))
            word, _ = _ended(copy, guard.tests)
            _put(source / guard.file, whole)
    if word not in ("red", "skipped"):
        torment.say(f"    without `{guard.name}`: {word}")
    return guard.name, word


def _put(file: Path, text: str) -> None:
    """Replaces a module; the compiled one goes, as it may be of the same second and size."""
    file.write_text(text, encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def _ended(copy: Path, tests: str, patience: float = PATIENCE) -> tuple[str, str]:
    """How a run of the tests ended: in a word, and the last line they said. A broken import or a selection of nothing
    is not red."""
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(tests)]
    keeper = [sys.executable, "-m", "torture.keeper", str(copy), str(patience)]  # of this tree: its guards stand
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        # It hangs up, and ends all it started, when its input is closed: also when we are killed.
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
