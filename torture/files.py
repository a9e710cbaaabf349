"""Swap races, kill -9 during a write, failing system calls, many editors at once."""

from __future__ import annotations

import errno

from gripfast.errors import ToolError
from gripfast.host.files.beneath import strategy_works
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope
from host.attacks import RACES, check_then_open, count_together, kill_writers, race
from host.test_writing import failing
from torture.trial import Outcome, Torment


def run(torment: Torment) -> None:
    swap_races(torment)
    killed_writers(torment)
    failing_calls(torment)
    many_editors(torment)


def swap_races(torment: Torment) -> None:
    naive_tries = torment.times(60_000, 10_000)
    led_out = check_then_open(torment.room("naive"), naive_tries)
    beside = f"; beside it, checking the real path and then opening was led out {led_out:,} of {naive_tries:,} times"
    for strategy in ("openat2", "walk"):
        for kind, attempt in RACES.items():
            name = f"swap race, {kind}, {strategy}"
            promise = "a directory swapped for a link that leads out never leads out"
            if not strategy_works(strategy):
                torment.tell(Outcome(name, promise, why=f"{strategy} does not work on this system"))
                continue
            times = torment.times(400_000 if strategy == "openat2" else 50_000, 1_000)
            count = race(torment.room(name.replace(" ", "-")), attempt, times, strategy)
            # A refusal takes microseconds and a write milliseconds, so the successes show how much was tried.
            note = f"{count.inside:,} went through, {count.refused:,} refused{beside}"
            beside = ""
            torment.tell(Outcome(name, promise, count.inside + count.refused, count.out, note))


def killed_writers(torment: Torment) -> None:
    times = torment.times(2_000, 25)
    count = kill_writers(torment.room("kill"), times, size=2_000_000, seed=torment.seed)
    promise = "a file is the old one or the new one"
    torment.tell(
        Outcome("kill -9 in mid-write, 2 MB", promise, times, count.torn, f"{count.strays} strays, swept later")
    )


def failing_calls(torment: Torment) -> None:
    """Makes each system call of a write fail once, with each of three errors."""
    tried = failed = 0
    for code in (errno.ENOSPC, errno.EIO, errno.EACCES):
        root = torment.room(f"faults-{code}")
        fs, target = ScopedFs(Scope.workspace(root)), root / "deep" / "f.txt"
        for at in range(1, 500):
            target.parent.mkdir(exist_ok=True)
            target.write_text("old\n", encoding="utf-8")
            told = False
            with failing(at, code) as system:
                try:
                    fs.write(WorkPath("deep/f.txt"), "new\n")
                except ToolError:
                    told = True
            if system.calls < at:
                break
            tried += 1
            text = target.read_text(encoding="utf-8")
            left = sorted(path.name for path in target.parent.iterdir())
            failed += text not in ("old\n", "new\n") or left != ["f.txt"] or (text == "old\n" and not told)
    torment.tell(
        Outcome("every system call of a write fails once", "old or new, always told, nothing left", tried, failed)
    )


def many_editors(torment: Torment) -> None:
    for guarded in (False, True):
        processes, times = 8, torment.times(1_000, 25)
        how = "as sessions do" if guarded else "in one step"
        end = count_together(torment.room(f"editors-{guarded}"), processes, times, guarded=guarded)
        lost = processes * times - end
        torment.tell(
            Outcome(f"{processes} processes edit one file, {how}", "no update is lost", processes * times, lost)
        )
