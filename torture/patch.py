"""Patches: processes that are killed in mid-commit, system calls that fail, and patches that meet."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gripfast import Scope, ScopedFs
from gripfast.builtin.patching import PatchText, apply_patch_text
from gripfast.errors import Conflict, NoMatch, ToolError
from gripfast.host.files.guard import ReadLog
from gripfast.host.record.together import recover_changes
from torture.failing import CALLS, ERRNOS, failing, tried_uses
from torture.trial import Outcome, Torment

_FILES = 20
_EVENTS = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.chmod", "open"})
_PROCESSES = 4
_HANGS = 120.0  # seconds after which processes that wait for each other count as a deadlock

Tree = dict[str, bytes]


def run(torment: Torment) -> None:
    _kills(torment)
    _failures(torment)
    _races(torment)


def _workspace(root: Path) -> None:
    for number in range(_FILES):
        path = root / f"d{number % 5}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"head\nold\ntail {number}\n")


def _patch(old: str, new: str, *, more: bool = True) -> str:
    """Changes all files; with `more` it also adds, moves and deletes some."""
    hunks: list[str] = []
    for number in range(_FILES):
        name = f"d{number % 5}/f{number}"
        if more and number % 7 == 3:
            hunks.append(f"*** Delete File: {name}")
            continue
        moved = f"\n*** Move to: new{number}/f" if more and number % 7 == 5 else ""
        hunks.append(f"*** Update File: {name}{moved}\n@@\n head\n-{old}\n+{new}")
    if more:
        hunks.append("*** Add File: added/deep/file\n+hello")
    return "\n".join(["*** Begin Patch", *hunks, "*** End Patch"])


def _apply(root: Path, text: str) -> None:
    fs = ScopedFs(Scope.workspace(root))
    apply_patch_text(fs, PatchText.parse(text), reads=ReadLog(required=False))


def tree_of(root: Path) -> Tree:
    found = {str(path.relative_to(root)): path for path in root.rglob("*")}
    return {name: path.read_bytes() if path.is_file() else b"/" for name, path in found.items()}


def _in_a_child(work: Callable[[], object]) -> int:
    """Runs it in a process of its own; gives that."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


# --- kill -9 ---


def _kills(torment: Torment) -> None:
    dice, tried = torment.dice("patch kills"), torment.times(2_000, 12)
    model = torment.room("patched")
    _workspace(model)
    before = tree_of(model)
    _apply(model, _patch("old", "new"))
    after, steps = tree_of(model), _steps(torment)
    half = killed = done = 0
    for number in range(tried):
        root = torment.room(f"patch{number}")
        _workspace(root)
        nth = dice.randint(1, steps)
        status = os.waitpid(_in_a_child(lambda root=root, nth=nth: _apply_until(root, nth)), 0)[1] & 0x7F
        killed += status == signal.SIGKILL
        recover_changes(ScopedFs(Scope.workspace(root)))
        now = tree_of(root)
        done += now == after
        half += now not in (before, after)
        shutil.rmtree(root)
    note = f"{killed} were killed before the end, {done} found it done"
    promise = "the next start finds all of the patch or nothing of it"
    torment.tell(Outcome(f"kill -9 in mid-commit of a patch of {_FILES} files", promise, tried, half, note))


def _steps(torment: Torment) -> int:
    """How many steps a whole patch takes."""
    root = torment.room("counted")
    _workspace(root)
    told, tell = os.pipe()
    os.waitpid(_in_a_child(lambda: os.write(tell, str(_apply_until(root, -1)).encode())), 0)
    count = int(os.read(told, 20))
    os.close(told)
    os.close(tell)
    return count


def _apply_until(root: Path, nth: int) -> int:
    """Applies the patch and is killed at its nth step; gives how many there were."""
    count = 0

    def step(event: str, _: object) -> None:
        nonlocal count
        if event in _EVENTS:
            count += 1
            if count == nth:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(step)
    _apply(root, _patch("old", "new"))
    return count


# --- every system call fails ---


def _failures(torment: Torment) -> None:
    dice, share = torment.dice("patch failures"), 0.05 if torment.quick else min(1.0, torment.scale)
    tried = broken = 0
    first = ""
    root = torment.room("failing")
    _workspace(root)
    before = tree_of(root)
    for name in CALLS:
        for code in ERRNOS:
            for nth in tried_uses(dice, share):
                told = _with_failure(root, name, nth, code)
                if told is None:  # it was used less often, or nothing minded: the patch was applied
                    shutil.rmtree(root)
                    _workspace(root)
                    break
                tried += 1
                recover_changes(ScopedFs(Scope.workspace(root)))
                if tree_of(root) != before or not told:
                    broken += 1
                    first = first or f"{name} {errno.errorcode[code]} at use {nth}: {told or 'not told'}"
                    shutil.rmtree(root)
                    _workspace(root)
    promise = "an error is told, nothing is changed and nothing is left"
    torment.tell(Outcome("a system call of a patch fails", promise, tried, broken, first))


def _with_failure(root: Path, name: str, nth: int, code: int) -> str | None:
    """The error that was told when the nth use of a call fails; None for no error. A session tells any exception."""
    try:
        with failing(name, nth, code):
            _apply(root, _patch("old", "new"))
    except ToolError as error:
        return error.message
    except OSError as error:
        return str(error)
    return None


# --- patches that meet ---


def _races(torment: Torment) -> None:
    rounds = torment.times(50, 2)
    root = torment.room("raced")
    _workspace(root)
    children = [
        _in_a_child(lambda mine=mine: _patch_again_and_again(root, mine, rounds)) for mine in range(_PROCESSES)
    ]
    end, left, bad = time.monotonic() + _HANGS + rounds * 4, set(children), 0
    while left and time.monotonic() < end:
        for child in list(left):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                left.discard(child)
                bad += status != 0
        time.sleep(0.05)
    for child in left:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    marks = {data.split(b"\n")[1] for data in tree_of(root).values() if data != b"/"}
    note = f"{len(left)} processes hung, {bad} failed, {len(marks)} version of the files"
    failed = len(left) + bad + (len(marks) != 1)
    promise = "no deadlock, and all files are of one patch"
    name = f"{_PROCESSES} processes patch the same {_FILES} files"
    torment.tell(Outcome(name, promise, rounds * _PROCESSES, failed, note))


def _patch_again_and_again(root: Path, mine: int, rounds: int) -> None:
    for number in range(rounds):
        while True:
            old = (root / "d0" / "f0").read_text().split("\n")[1]
            try:
                _apply(root, _patch(old, f"process {mine} round {number}", more=False))
                break
            except (Conflict, NoMatch):
                continue
