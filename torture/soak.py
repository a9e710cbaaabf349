"""A session that runs for a long time: memory and file descriptors must not grow."""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from pathlib import Path

import anyio

from gripfast import Scope, Session, open_session
from torture.trial import Outcome, Torment


def run(torment: Torment) -> None:
    seconds = max(15, torment.times(20 * 60, 15))
    root = torment.room("soak")
    for number in range(200):
        (root / f"f{number}.txt").write_text("".join(f"line {n} of {number}\n" for n in range(300)), encoding="utf-8")
    samples, calls, wrong = anyio.run(_work, root, seconds, torment.dice("soak"))
    early, late = samples[len(samples) // 4 : len(samples) // 2], samples[3 * len(samples) // 4 :]
    memory = [statistics.median(kb for kb, _ in part) for part in (early, late)]
    descriptors = [max(fds for _, fds in part) for part in (early, late)]
    grown = memory[1] > memory[0] * 1.15 + 4096 or descriptors[1] > descriptors[0] + 5
    note = (
        f"{calls:,} calls; memory {memory[0] / 1024:.0f} to {memory[1] / 1024:.0f} MB, "
        f"descriptors {descriptors[0]} to {descriptors[1]}"
    )
    promise = "memory and descriptors don't grow; every answer is as expected"
    torment.tell(Outcome(f"soak of {_spoken(seconds)}", promise, calls, wrong + grown, note))


def _spoken(seconds: int) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds} seconds"


async def _work(root: Path, seconds: float, dice: random.Random) -> tuple[list[tuple[int, int]], int, int]:
    samples: list[tuple[int, int]] = []
    calls = wrong = 0
    until = time.monotonic() + seconds
    async with open_session(Scope.workspace(root)) as session:
        while time.monotonic() < until:
            for _ in range(20):
                wrong += not await _one(session, dice)
                calls += 1
            samples.append(_size())
    return samples, calls, wrong


async def _one(session: Session, dice: random.Random) -> bool:
    """Makes one random call; True if the answer is the expected one."""
    number = dice.randrange(200)
    path, kind = f"f{number}.txt", dice.randrange(8)
    if kind == 0:
        await session.call("Read", {"file_path": path, "limit": 5})
        old = (await session.call("Read", {"file_path": path, "limit": 1})).text.split("\n")[0].partition("\t")[2]
        edit = {"file_path": path, "old_string": old, "new_string": f"edited {dice.random()}"}
        return not (await session.call("Edit", edit)).is_error
    if kind == 1:
        return not (await session.call("Grep", {"pattern": f"of {number}$", "output_mode": "count"})).is_error
    if kind == 2:
        return not (await session.call("Glob", {"pattern": "*1*.txt"})).is_error
    if kind == 3:
        return "hello" in (await session.call("Bash", {"command": "echo hello"})).text
    if kind == 4:
        return not (await session.call("tree", {"path": ".", "entry_kind": "all"})).is_error
    if kind == 5:
        return (await session.call("Read", {"file_path": "missing.txt"})).is_error
    if kind == 6:
        return (await session.call("Read", json.dumps({"file_path": 1, "x": "y" * 1000}))).is_error
    return not (await session.call("read_file", {"path": path})).is_error


def _size() -> tuple[int, int]:
    """Resident kilobytes and open descriptors of this process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return resident, len(os.listdir("/proc/self/fd"))
