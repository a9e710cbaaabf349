"""Undo: random work of an agent with a second writer beside it, and processes that are killed in mid-undo."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import anyio

from gripfast import OutputCache, Scope, ScopedFs, WorkspaceSession, open_session
from gripfast.errors import ToolError
from gripfast.host.record.record import Record
from gripfast.host.record.shelf import workspace_directory
from gripfast.host.record.undo import undo
from torture.failing import CALLS, ERRNOS, failing, tried_uses
from torture.trial import Outcome, Torment

_NAMES = ("a", "b", "c", "d/a", "d/b", "d/e/a", "f")
_COMMANDS = (
    "rm -rf {0}",
    "mv -f {0} {1}",
    "sed -i s/e/E/ {0}",
    "tar cf t.tar {0}; rm -rf {0}; tar xf t.tar",
    "chmod 600 {0}; chmod 755 {1}",
    "ln -sfn {0} {1}",
    "truncate -s 3 {0}",
    "git checkout -q -- {0}",
    "mkdir -p {0}/x/y; touch {0}/x/z",
    "touch {0} {1}",
    "echo {2} >> {0}",
    "cp -r {0} {1}",
    "rm -rf d; echo {2} > d",
    "mv d z; ln -sfn z d; echo {2} > d/e/a",
    "rm -rf d; mkdir -p z/e; ln -s z d; echo {2} > z/e/a; echo {2} > z/b",
    "mv {0} t; mv {1} {0}; mv t {1}",
    "ln -f {0} {1}; echo {2} >> {1}",
    "rm -rf {0} {1}; ln -s {0} {1}; ln -s {1} {0}",
    "chmod 0 {0}; chmod 111 d",
    "sed -i 's/$/\\r/' {0}; mv {0} $'o\\nd\\xff'",
)
_EVENTS = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod"})

Tree = dict[str, tuple[int, bytes]]


def run(torment: Torment) -> None:
    _sequences(torment)
    _kills(torment)
    _failures(torment)
    anyio.run(_many, torment)


# --- sequences ---


def _sequences(torment: Torment) -> None:
    dice, tried = torment.dice("undo"), torment.times(2_000, 12)
    changed = lost = 0
    first = ""
    for number in range(tried):
        room = torment.room(f"undo{number}")
        wrong, gone = anyio.run(_sequence, room, random.Random(f"{dice.random()}"), number % 2 == 0)
        first = first or (f"sequence {number}: {sorted(wrong | gone)[0]}" if wrong or gone else "")
        changed, lost = changed + bool(wrong), lost + bool(gone)
        shutil.rmtree(room)
    promise = "a path that the agent alone touched is what it was before"
    torment.tell(Outcome("random work, then undo of all of it", promise, tried, changed, first))
    promise = "what the second writer wrote is on the disk or in the record"
    torment.tell(Outcome("a second writer between the calls", promise, tried, lost, first))


async def _sequence(room: Path, dice: random.Random, with_git: bool) -> tuple[set[str], set[str]]:
    """The paths that differ though nobody else touched them, and those whose foreign content is gone."""
    root = _workspace(room, with_git)
    before, foreign = tree_of(root), dict[str, bytes]()
    async with open_session(Scope.workspace(root), record=True, sandbox="off", cache=OutputCache()) as session:
        for _ in range(dice.randint(2, 7)):
            await _agent(session, dice)
            if dice.random() < 0.3:
                _second_writer(root, dice, foreign)
        calls = [call.number for call in session.record.calls() if call.changes]
        if calls:
            await session.undo(calls=calls)
        after = tree_of(root)
        touched = {*foreign, *(above for path in foreign for above in _above(path))}
        wrong = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        gone = {path for path, data in foreign.items() if not _is_kept(after.get(path), data, session.record)}
    return {path for path in wrong if not _is_near(path, touched)}, gone


def _workspace(room: Path, with_git: bool) -> Path:
    root = room / "ws"
    (root / "d" / "e").mkdir(parents=True)
    for name in _NAMES:
        (root / name).write_text(f"the old text of {name}\n" * 3)
    if with_git:
        subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
        subprocess.run(["git", "add", "."], cwd=root, check=True)
        (root / "b").write_text("dirty\n")
    return root


async def _agent(session: WorkspaceSession, dice: random.Random) -> None:
    one, two, word = dice.choice(_NAMES), dice.choice(_NAMES), f"{dice.random()}"
    kind = dice.random()
    if kind < 0.15:
        await session.call("Read", {"file_path": one})
        await session.call("Write", {"file_path": one, "content": word})
    elif kind < 0.3:
        await session.call("Read", {"file_path": one})
        await session.call("Edit", {"file_path": one, "old_string": "old", "new_string": word, "replace_all": True})
    elif kind < 0.45:
        for name in (one, two):
            await session.call("Read", {"file_path": name})
        await session.call("apply_patch", {"patch": _patch(dice, one, two, word)})
    else:
        lines = "; ".join(dice.choice(_COMMANDS).format(one, two, word) for _ in range(dice.randint(1, 3)))
        await session.call("Bash", {"command": f"exec 2>/dev/null; {lines}"})


def _patch(dice: random.Random, one: str, two: str, word: str) -> str:
    """A patch of one to three files: some fit, some are refused, as an agent's do."""
    change = "@@\n" + f"-the old text of {one}\n" * 3 + f"+{word}"
    hunks = [
        f"*** Update File: {one}\n{change}",
        f"*** Update File: {one}\n*** Move to: moved/{word}\n{change}",
        f"*** Delete File: {two}",
        f"*** Add File: new/{word}\n+{word}",
    ]
    return "\n".join(["*** Begin Patch", *dice.sample(hunks, dice.randint(1, 3)), "*** End Patch"])


def _second_writer(root: Path, dice: random.Random, foreign: dict[str, bytes]) -> None:
    name, data = dice.choice((*_NAMES, "theirs", "d/theirs")), f"theirs {dice.random()}\n".encode()
    path = root / name
    try:
        if os.path.realpath(path) != str(path) or (path.exists() and path.stat().st_nlink > 1):
            return  # by a link it would write another path, too
        path.write_bytes(data)
        foreign[name] = data
    except OSError:
        return  # a directory, or none above it


def _above(path: str) -> list[str]:
    return [str(above) for above in Path(path).parents if str(above) != "."]


def _is_near(path: str, touched: set[str]) -> bool:
    """A path that somebody else touched, or one below or above it that can't be put back because of that."""
    return path in touched or any(path.startswith(f"{one}/") for one in touched)


def _is_kept(now: tuple[int, bytes] | None, data: bytes, record: Record) -> bool:
    return (now is not None and now[1] == data) or record.contents.has(hashlib.sha256(data).hexdigest())


def tree_of(root: Path) -> Tree:
    """Mode and content of everything but git's own files."""
    found: Tree = {}
    for above, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name != ".git"]
        for name in (*directories, *files):
            path = os.path.join(above, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[os.path.relpath(path, root)] = (0, os.fsencode(os.readlink(path)))
            else:
                data = Path(path).read_bytes() if stat.S_ISREG(mode) else b"/"
                found[os.path.relpath(path, root)] = (stat.S_IMODE(mode), data)
    return found


# --- kill -9 ---


def _kills(torment: Torment) -> None:
    dice, tried = torment.dice("kills"), torment.times(500, 15)
    half = killed = done = 0
    for number in range(tried):
        root = _workspace(torment.room(f"killed{number}"), with_git=False)
        after = anyio.run(_some_work, root, f"killed{number}")
        worked = tree_of(root)
        status = _undo_in_a_child(root, f"killed{number}", dice.randint(1, 60))
        killed += status == signal.SIGKILL
        Record(ScopedFs(Scope.workspace(root)), f"killed{number}").close()
        now = tree_of(root)
        done += now == after
        half += now not in (worked, after)
        shutil.rmtree(root.parent)
    note = f"{killed} were killed before the end, {done} found it done"
    torment.tell(Outcome("kill -9 in mid-undo", "the next start finds the tree before or after", tried, half, note))


async def _some_work(root: Path, id: str) -> Tree:
    """An agent's work; gives the tree before it."""
    before = tree_of(root)
    given = open_session(Scope.workspace(root), record=True, sandbox="off", cache=OutputCache(), id=id)
    async with given as session:
        script = "rm -r d; echo x > d; mv a z; mkdir -p n/m; for i in 1 2 3 4 5 6; do echo $i > n/m/$i; done"
        await session.call("Bash", {"command": f"{script}; chmod 600 b; ln -s b l; echo y >> c"})
    return before


def _undo_in_a_child(root: Path, id: str, nth: int) -> int:
    """Undoes everything in a process that is killed at its nth step; gives the signal, or 0."""
    child = os.fork()
    if child == 0:
        count = 0

        def step(event: str, _: object) -> None:
            nonlocal count
            if event in _EVENTS:
                count += 1
                if count == nth:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            record = Record(ScopedFs(Scope.workspace(root)), id)
            sys.addaudithook(step)
            undo(record, all=True)
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] & 0x7F


# --- every system call fails ---


def _failures(torment: Torment) -> None:
    dice, share = torment.dice("undo failures"), 0.05 if torment.quick else min(1.0, torment.scale)
    model, room = torment.room("undo failing"), torment.scratch / "undo tried"
    before = anyio.run(_some_work, _workspace(model, with_git=False), "failing")
    fs = ScopedFs(Scope.workspace(model / "ws"))
    recorded, worked = workspace_directory(fs.roots[0]), tree_of(model / "ws")
    shutil.copytree(recorded, room / "record")
    shutil.copytree(model / "ws", room / "ws", symlinks=True)
    tried = broken = 0
    first = ""
    for name in CALLS:
        for code in ERRNOS:
            for nth in tried_uses(dice, share):
                has_failed, fault = _undo_with_failure(fs, name, nth, code, before, worked)
                _copied(room / "record", recorded)
                _copied(room / "ws", model / "ws")
                if not has_failed:
                    break
                tried += 1
                broken += bool(fault)
                first = first or (f"{name} {errno.errorcode[code]} at use {nth}: {fault}" if fault else "")
    promise = "an error means that nothing is changed; otherwise every path is back, or named as refused"
    torment.tell(Outcome("a system call of an undo fails", promise, tried, broken, first))


def _copied(source: Path, target: Path) -> None:
    shutil.rmtree(target)
    shutil.copytree(source, target, symlinks=True)


def _undo_with_failure(
    fs: ScopedFs, name: str, nth: int, code: int, before: Tree, worked: Tree
) -> tuple[bool, str | None]:
    """Whether the call was used so often, and what is wrong afterwards, if anything."""
    root = Path(fs.roots[0])
    record = Record(fs, "failing")
    result = None
    with failing(name, nth, code) as failed, contextlib.suppress(ToolError, OSError):
        result = undo(record, all=True)
    record.close()
    Record(fs, "failing").close()
    now = tree_of(root)
    if result is None:
        return bool(failed), None if now == worked else "an error, and the tree is not as it was"
    refused = {one.path for one in result.refused}
    wrong = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
    silent = sorted(path for path in wrong if not _is_near(path, refused))
    return bool(failed), f"no error, and {silent[0]} is not back" if silent else None


# --- one command that changes a great many files ---


async def _many(torment: Torment) -> None:
    count = torment.times(100_000, 3_000)
    root = torment.room("many") / "ws"
    for number in range(count // 2):
        path = root / f"d{number % 200}" / f"{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
    before = tree_of(root)
    async with open_session(Scope.workspace(root), record=True, sandbox="off", cache=OutputCache()) as session:
        session.prepare()
        session.record.cover.wait(600)
        script = "for d in d*; do sed -i s/^/x/ $d/*; for f in $d/*; do : > $f.new; done; done"
        await session.call("Bash", {"command": script, "timeout": 600_000})
        done = await session.undo()
    after = tree_of(root)
    wrong = sum(before.get(path) != after.get(path) for path in before.keys() | after.keys())
    note = f"{len(done.restored):,} restored, {len(done.refused):,} refused"
    promise = "every one is as it was before"
    torment.tell(Outcome("undo of a command that changed a great many files", promise, count, wrong, note))
    shutil.rmtree(root)
