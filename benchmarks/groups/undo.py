"""The record: what it costs a call, and how long an undo takes."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio

from benchmarks.harness import Run, Turns, bound, in_turns, seconds, tell
from benchmarks.inside import session_on
from gripfast import OutputCache, Scope, ScopedFs, open_session
from gripfast.host.files.watch import Watch
from gripfast.host.questions.queue import Asking, QuestionQueue
from gripfast.host.record.contents import Contents
from gripfast.host.record.cover import Cover
from gripfast.host.record.shelf import RecordOptions

GROUP = "Record"


def measure(run: Run) -> None:
    with _own_state() as place:
        run.step(GROUP, "Write with the record", lambda: _write(run, place))
        for count in (80, 8_000) if run.quick else (80, 8_000, 80_000):
            run.step(GROUP, f"a command in {count:,} files", partial(_command, run, place, count))
        for with_git in (True, False):
            run.step(GROUP, "coverage", partial(_coverage, run, place, with_git))
        run.step(GROUP, "a question in the queue", lambda: _question(run))
        run.step(GROUP, "undo", lambda: anyio.run(_undo, run, place))


@contextmanager
def _own_state() -> Iterator[Path]:
    """A scratch directory, and the records in it."""
    before = os.environ.get("XDG_STATE_HOME")
    with tempfile.TemporaryDirectory(prefix="gripfast-bench-") as place:
        os.environ["XDG_STATE_HOME"] = f"{place}/state"
        try:
            yield Path(place)
        finally:
            os.environ.pop("XDG_STATE_HOME") if before is None else os.environ.update(XDG_STATE_HOME=before)


def _tree(place: Path, count: int, *, with_git: bool) -> Path:
    root = place / f"tree{count}{with_git}"
    for number in range(count // 16):
        directory = root / f"d{number % 50}" / f"{number}"
        directory.mkdir(parents=True)
        for name in range(16):
            (directory / f"{name}.py").write_text(f"print({number}, {name})\n" * 20)
    if with_git:
        subprocess.run(["bash", "-c", "git init -q . && git add ."], cwd=root, check=True)
        os.utime(root / ".git" / "index", (time.time() + 1, time.time() + 1))
    return root


def _over(sides: dict[str, partial[float]], rounds: int) -> tuple[float, str]:
    """The median of how much longer the first side takes, in milliseconds, and its quartiles."""
    times = in_turns(sides, rounds, warm=3).values
    first, second = (times[name] for name in sides)
    low, middle, high = statistics.quantiles([(a - b) * 1000 for a, b in zip(first, second, strict=True)], n=4)
    return middle, f"{low:.2f} to {high:.2f}"


def _write(run: Run, place: Path) -> None:
    roots = [place / name for name in ("with", "without")]
    for root in roots:
        root.mkdir()
    with session_on(roots[0], record=True) as recorded, session_on(roots[1]) as plain:
        for name, work, most in (("Write", _written, 1.0), ("Read", _read, 0.5)):
            sides = {
                side: partial(seconds, partial(work, call)) for side, call in (("with", recorded), ("without", plain))
            }
            middle, spread = _over(sides, 50 if run.quick else 300)
            bound(run, GROUP, f"{name}, with the record over without", middle, most, "ms", spread=spread)


def _written(call: partial[object]) -> None:
    call("Write", file_path="f", content=f"{time.monotonic()}\n" * 40)


def _read(call: partial[object]) -> None:
    """A call that changes nothing: what is left is its two lines, and its answer, which is another each time."""
    call("Read", file_path="f", limit=1 + int(time.monotonic() * 1000) % 39)


def _question(run: Run) -> None:
    """What the queue adds to a call that asks, besides the time until somebody answers: the question is put there,
    and its answer taken. The file for the next question is made in between, as `Approvals` does."""
    queue, took = QuestionQueue(), list[float]()
    for number in range(100 if run.quick else 1_000):
        asking = Asking("bench", "/", "Bash", "no rule is about it", f"command: make {number}\n" * 20)
        start = time.perf_counter()
        asked = queue.ask(asking)
        put = time.perf_counter()
        queue.prepare()
        QuestionQueue().answer(asked.id, "yes", by="terminal")
        answered = time.perf_counter()
        queue.answered(asked.id)
        took.append((time.perf_counter() - answered + put - start) * 1000)
    queue.close()
    low, middle, high = statistics.quantiles(took, n=4)
    bound(run, GROUP, "a question in the queue", middle, 0.5, "ms", spread=f"{low:.2f} to {high:.2f}")


def _command(run: Run, place: Path, count: int) -> None:
    root = _tree(place, count, with_git=True)
    with session_on(root, sandbox="off", record=True) as recorded, session_on(root, sandbox="off") as plain:
        for call in (recorded, plain):
            call("Bash", command="sleep 1; true")
            call("Bash", command="sleep 1; true")
        command = "echo x >> d0/0/0.py; echo y > new"
        sides = {
            "with": partial(seconds, partial(recorded, "Bash", command=command)),
            "without": partial(seconds, partial(plain, "Bash", command=command)),
        }
        middle, spread = _over(sides, 15 if run.quick else 60)
    bound(run, GROUP, f"a command in {count:,} files, over without the record", middle, 10.0, "ms", spread=spread)
    shutil.rmtree(root)


def _coverage(run: Run, place: Path, with_git: bool) -> None:
    root = _tree(place, 7_008, with_git=with_git)
    started = time.monotonic()
    watch = Watch([str(root)])
    cover = Cover(Contents(place / f"contents{with_git}", 1 << 40), RecordOptions(), [str(root)])
    cover.start(watch)
    cover.wait(600)
    took = time.monotonic() - started
    cover.close()
    watch.close()
    where = "in git" if with_git else "without git"
    bound(run, GROUP, f"coverage of 7,000 files {where}", took, 0.3 if with_git else 3.0, "s")


async def _undo(run: Run, place: Path) -> None:
    """Beside git, which can do it only for files it tracks, and syncs nothing to the disk."""
    root, tracked = place / "undo", place / "restore"
    for directory in (root, tracked):
        directory.mkdir()
        for number in range(1_000):
            (directory / f"{number}").write_text(f"{number}\n" * 50)
    subprocess.run(["bash", "-c", "git init -q . && git add ."], cwd=tracked, check=True)
    fs, change = ScopedFs(Scope.workspace(root)), "sed -i 's/^/x/' *"
    ours: list[float] = []
    theirs: list[float] = []
    async with open_session(fs, record=True, sandbox="off", cache=OutputCache()) as session:
        for _ in range(3 if run.quick else 7):
            await session.call("Bash", {"command": change})
            started = time.monotonic()
            result = await session.undo()
            ours.append(time.monotonic() - started)
            assert len(result.restored) == 1_000, result.refused[:3]
            subprocess.run(["bash", "-c", change], cwd=tracked, check=True)
            theirs.append(seconds(lambda: subprocess.run(["git", "restore", "."], cwd=tracked, check=True)))
    name = "undo of 1,000 changed files"
    bound(run, GROUP, name, statistics.median(ours), 0.7, "s")
    note = "only what is tracked; neither synced nor kept"
    tell(run, GROUP, name, Turns({"gripfast": ours, "git restore": theirs}, {}), {}, note=note)
