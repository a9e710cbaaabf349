"""Attacks that tests run briefly and scripts/torture runs for longer: swap races, kill -9, many editors."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from gripfast.errors import ToolError
from gripfast.host.files.beneath import Strategy
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope

SECRET = "outside: must never be seen\n"

# Swaps a directory and a link that leads outside, as fast as possible, until its parent process is gone.
_SWAPPER = """
import ctypes, os, sys
root, parent = sys.argv[1].encode(), int(sys.argv[2])
libc = ctypes.CDLL(None)
print("ready", flush=True)
while os.getppid() == parent:
    for _ in range(500):
        if hasattr(libc, "renameat2"):
            libc.renameat2(-100, root + b"/d", -100, root + b"/l", 2)
        else:
            for old, new in ((b"/d", b"/t"), (b"/l", b"/d"), (b"/t", b"/l")):
                os.rename(root + old, root + new)
"""


@contextlib.contextmanager
def swapped_directory(top: Path) -> Generator[Path]:
    """A workspace in which `d` alternates between a directory and a link to a directory outside. Returns its root."""
    root, out = top / "ws", top / "out"
    (root / "d").mkdir(parents=True)
    out.mkdir()
    for name in ("f.txt", "g.txt"):
        (root / "d" / name).write_text("inside\n", encoding="utf-8")
        (out / name).write_text(SECRET, encoding="utf-8")
    (out / "only-outside").write_text("", encoding="utf-8")
    os.symlink("../out", root / "l")
    swapper = subprocess.Popen(
        [sys.executable, "-c", _SWAPPER, str(root), str(os.getpid())], stdout=subprocess.PIPE, text=True
    )
    try:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        yield root
    finally:
        swapper.kill()
        swapper.communicate()


@dataclass
class RaceCount:
    inside: int = 0
    refused: int = 0
    out: int = 0


def race(top: Path, attempt: Callable[[ScopedFs, int], str], times: int, strategy: Strategy) -> RaceCount:
    """Repeats `attempt` while the directory is swapped. It returns "inside" or what else it saw."""
    count = RaceCount()
    with swapped_directory(top) as root:
        fs = ScopedFs(Scope.workspace(root), strategy=strategy)
        for number in itertools.takewhile(
            lambda number: number < times or _too_quiet(count, number, times), range(10**9)
        ):
            try:
                seen = attempt(fs, number)
            except ToolError:
                count.refused += 1
                continue
            if seen == "inside":
                count.inside += 1
            else:
                count.out += 1
    count.out += sum((top / "out" / name).read_text(encoding="utf-8") != SECRET for name in ("f.txt", "g.txt"))
    count.out += set(os.listdir(top / "out")) != {"f.txt", "g.txt", "only-outside"}
    return count


def _too_quiet(count: RaceCount, number: int, times: int) -> bool:
    """Continues until both states of the directory were seen: on a busy machine the swapper may hardly run."""
    return not (count.inside and count.refused) and number < 20 * times


def race_read(fs: ScopedFs, _: int) -> str:
    return fs.read(WorkPath("d/f.txt")).strip()


def race_list(fs: ScopedFs, _: int) -> str:
    with fs.open_dir(WorkPath("d")) as directory:
        return "outside" if "only-outside" in os.listdir(directory.fd) else "inside"


def race_write(fs: ScopedFs, number: int) -> str:
    fs.write(WorkPath("d/g.txt"), f"written {number}\n")
    return "inside"


def race_create(fs: ScopedFs, number: int) -> str:
    fs.write(WorkPath(f"d/new{number % 50}/deep.txt"), "new\n")
    return "inside"


def race_edit(fs: ScopedFs, number: int) -> str:
    fs.change(WorkPath("d/f.txt"), lambda before: b"edited %d\n" % number)
    return "inside"


RACES: dict[str, Callable[[ScopedFs, int], str]] = {
    "read": race_read,
    "list": race_list,
    "write": race_write,
    "create": race_create,
    "edit": race_edit,
}


def check_then_open(top: Path, times: int) -> int:
    """How often the usual code (realpath, compare, open) is led outside by the same race."""
    out = 0
    with swapped_directory(top) as root:
        for _ in range(times):
            path = str(root / "d" / "f.txt")
            with contextlib.suppress(OSError):
                if os.path.realpath(path).startswith(f"{root}/"):
                    out += Path(path).read_text(encoding="utf-8") == SECRET
    return out


# --- kill -9 ---

_WRITER = """
import sys
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope
fs, size = ScopedFs(Scope.workspace(sys.argv[1])), int(sys.argv[2])
print("ready", flush=True)
while True:
    for letter in "ab":
        fs.write(WorkPath("f.txt"), letter * size)
"""


@dataclass
class KillCount:
    whole: int = 0
    torn: int = 0
    strays: int = 0


def kill_writers(top: Path, times: int, *, size: int, seed: int) -> KillCount:
    """Kills a process that rewrites a file, at random moments, and checks the file each time."""
    count, moments = KillCount(), random.Random(seed)
    (top / "f.txt").write_text("a" * size, encoding="utf-8")
    for _ in range(times):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(top), str(size)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(moments.uniform(0.0, 0.03))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        text = (top / "f.txt").read_text(encoding="utf-8")
        if len(text) == size and text in ("a" * size, "b" * size):
            count.whole += 1
        else:
            count.torn += 1
        count.strays += len(os.listdir(top)) - 1
    return count


# --- many editors ---


def _edit_many(root: str, times: int, guarded: bool) -> None:
    fs, path = ScopedFs(Scope.workspace(root)), WorkPath("counter.txt")
    for _ in range(times):
        if guarded:
            _edit_guarded(fs, path)
        else:
            fs.change(path, lambda before: b"%d\n" % (int(before or b"0") + 1))


def _edit_guarded(fs: ScopedFs, path: WorkPath) -> None:
    """Counts up as a session does: read, then write the number plus one; on a conflict read again."""
    while True:
        reads = ReadLog()
        with fs.open_read(path) as file:
            number = int(file.content())
            file.record(reads)
        try:
            fs.write(path, f"{number + 1}\n", reads=reads)
        except ToolError as error:
            if error.code != "CONFLICT":
                raise
        else:
            return


def count_together(root: Path, processes: int, times: int, *, guarded: bool) -> int:
    """Lets many processes add one to the number in a file, many times each; returns the final number."""
    (root / "counter.txt").write_text("0\n", encoding="utf-8")
    context = multiprocessing.get_context("spawn")
    editors = [context.Process(target=_edit_many, args=(str(root), times, guarded)) for _ in range(processes)]
    for editor in editors:
        editor.start()
    for editor in editors:
        editor.join(120)
        if editor.is_alive():
            editor.kill()
    assert [editor.exitcode for editor in editors] == [0] * processes
    return int((root / "counter.txt").read_text(encoding="utf-8"))
