"""Nasty commands with the expected answer to each, and loops of them for tests and for scripts/torture."""

from __future__ import annotations

import os
import random
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import anyio

from gripfast.host.kernel.features import may_use
from gripfast.host.shell.ended import Ended, Reason
from gripfast.host.shell.shells import Shells

TERMINATED = (-signal.SIGTERM, -signal.SIGKILL, None)


@dataclass(frozen=True)
class Nasty:
    """A command and its expected end. `codes` are exit codes, or the negative signal; None means not known."""

    name: str
    command: str  # @ stands for a mark that the processes carry in their command line
    codes: tuple[int | None, ...] = (0,)
    reason: Reason = "exited"
    says: bytes | None = None
    leaves: bool = False
    timeout_ms: int = 20_000


def late(name: str, command: str, says: bytes | None = None) -> Nasty:
    """A command that must be ended by its time limit. How its shell dies depends on what it did to itself."""
    codes = (*TERMINATED, 143, 137, 0, 1)
    return Nasty(name, command, codes, "timeout", says, timeout_ms=700)


def left(name: str, command: str, says: bytes | None = None) -> Nasty:
    return Nasty(name, command, (0,), "exited", says, leaves=True)


PYTHON = sys.executable
_ALL: tuple[Nasty, ...] = (
    Nasty("succeeds", "echo out; echo err >&2", says=b"out\nerr\n"),
    Nasty("fails", "false", (1,)),
    Nasty("exits with a code", "exit 42", (42,)),
    Nasty("exits with 255", "exit -1", (255,)),
    Nasty("does not exist", "no-such-program-@", (127,), says=b"not found"),
    Nasty("is no shell syntax", "if then (", (1, 2), says=b"syntax error"),
    Nasty("has an unclosed quote", "echo 'abc", (1, 2), says=b"unexpected EOF"),
    Nasty("stops at its first failure", "set -e; false; echo not reached", (1,), says=b""),
    Nasty("uses an unset variable", "set -u; echo $nothing_here", (1, 127), says=b"unbound"),
    Nasty("kills itself with KILL", "kill -9 $$", (-signal.SIGKILL,)),
    Nasty("kills itself with TERM", "kill -TERM $$; sleep 9", (-signal.SIGTERM,)),
    Nasty("crashes", "kill -SEGV $$; sleep 9", (-signal.SIGSEGV,)),
    Nasty("has a child that crashes", "bash -c 'kill -SEGV $$'", (139,)),
    Nasty("reads its input", "cat", says=b""),
    Nasty("asks a question", "read -p 'name? ' name", (1,)),
    Nasty("closes its input", "exec 0<&-; cat", (0, 1)),
    Nasty("closes its outputs", "exec >&- 2>&-; sleep 0.1; exit 5", (5,)),
    Nasty("replaces its shell", "exec bash -c 'echo replaced; exit 7'", (7,), says=b"replaced"),
    Nasty("sets its own exit trap", "trap 'echo bye; exit 9' EXIT; exit 3", (9,), says=b"bye"),
    Nasty("closes the report descriptor", "exec 199>&-; cd /", (0,)),
    Nasty("traces itself", "set -x; true", says=b"+ true\n"),
    Nasty("floods and is cut off", "yes | head -c 30000000 | tail -c 2", says=b"y\n"),
    Nasty("prints one line of 32 MB", "head -c 33554432 /dev/zero | tr '\\0' x"),
    Nasty("prints noise", "head -c 1000000 /dev/urandom"),
    Nasty("writes to a closed pipe", "yes | true", (0,)),
    Nasty("removes its directory", 'd=$(mktemp -d) && cd "$d" && rmdir "$d"'),
    Nasty("kills its children", "sleep 987.@ & kill -9 $!; wait", (0, 137)),
    Nasty("kills its supervisor", "kill -9 $PPID; sleep 987.@", (None, 0), "lost"),
    Nasty("kills its supervisor and stays", "setsid sleep 987.@ & kill -9 $PPID; sleep 5", (None,), "lost"),
    left("leaves a child with the pipe", "sleep 987.@ & echo done", b"done\n"),
    left("leaves one that survives hangups", "nohup sleep 987.@ >/dev/null 2>&1 &"),
    left("leaves one in a session of its own", "setsid sleep 987.@ & sleep 0.2"),
    left("forks twice", "( ( sleep 987.@ & ) & )"),
    left("becomes a daemon", "( setsid env -i sleep 987.@ </dev/null >/dev/null 2>&1 & ) & sleep 0.2"),
    left("disowns a child", "sleep 987.@ & disown -a"),
    left("starts a coprocess", "coproc sleep 987.@"),
    left("leaves a process substitution", "echo x > >(sleep 987.@)"),
    left("leaves a stopped child", "setsid sleep 987.@ & sleep 0.2; kill -STOP $!"),
    left("leaves a crowd", "for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 987.@ &); done"),
    left("leaves one that keeps printing", "(while sleep 0.05; do echo @; done) & echo done", b"done\n"),
    left("leaves one that ignores TERM", "bash -c 'trap \"\" TERM; while :; do sleep 0.1; done; : @' & sleep 0.1"),
    left("leaves a runner that forks on and on", "bash -c 'r() { sleep 0.02; ( r & ) ; }; r; : @' & sleep 0.1"),
    left(
        "daemonizes by the book",
        f"{PYTHON} -S -c 'import os,time,sys\n"
        "if os.fork(): os._exit(0)\nos.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "os.chdir(\"/\"); time.sleep(987)' @",
    ),
    late("sleeps", "echo before; sleep 987.@", b"before\n"),
    late("says goodbye when it is asked to end", "trap 'echo bye; exit 0' TERM; sleep 987.@ & wait", b"bye\n"),
    late("becomes a sleeper", "exec sleep 987.@"),
    late("floods", "yes @"),
    late("ignores TERM", "trap '' TERM; while :; do sleep 0.1; done; : @"),
    late("ignores every signal", "for s in {1..64}; do trap '' $s 2>/dev/null; done; sleep 987.@; sleep 987.@"),
    late("stops itself", "kill -STOP $$; : @"),
    late("stops its children", "sleep 987.@ & kill -STOP $!; wait"),
    late("waits for a child in a session of its own", "setsid -w bash -c 'trap \"\" TERM; sleep 987.@; sleep 987.@'"),
    late("waits with a pipeline", "sleep 987.@ | sleep 987.@ | cat"),
    late("spins", "while :; do :; done; : @"),
    late("waits on a queue nobody writes", "d=$(mktemp -u) && mkfifo $d && cat $d"),
    late(
        "runs behind a terminal of its own",
        f"{PYTHON} -c 'import pty; pty.spawn([\"sleep\", \"987.@\"])'",
    ),
    late("restarts what is killed", "while :; do sleep 987.@; done"),
)  # fmt: skip
# Where orphans are not adopted, as on macOS, these get away.
_GETS_AWAY = re.compile("setsid|a runner that forks")
NASTY = tuple(one for one in _ALL if may_use("subreaper") or not _GETS_AWAY.search(f"{one.name} {one.command}"))


def fresh_mark() -> str:
    return f"{secrets.randbelow(10**12):012d}"


def survivors(*marks: str) -> list[str]:
    """Living processes that carry a mark in their command line or environment."""
    wanted = [mark.encode() for mark in marks]
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _carries(entry, wanted):
            found.append(f"{entry.name} {_bytes(entry / 'cmdline')[:80]!r}")
    return found


def _carries(entry: Path, wanted: Iterable[bytes]) -> bool:
    if _bytes(entry / "stat").rpartition(b")")[2].split()[:1] in ([b"Z"], [b"X"], []):
        return False
    words = _bytes(entry / "cmdline") + b"\0" + _bytes(entry / "environ")
    return any(mark in words for mark in wanted)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


async def gone(*marks: str, within: float = 5.0) -> list[str]:
    """The marked processes that are left after a moment for reaping."""
    until = time.monotonic() + within
    while (left := survivors(*marks)) and time.monotonic() < until:
        await anyio.sleep(0.02)
    return left


async def attack(shells: Shells, nasty: Nasty, mark: str) -> tuple[Ended, bytes]:
    """Runs one command; returns its end and the first 64 KiB of its output."""
    kept = bytearray()

    async def feed(data: bytes) -> None:
        if len(kept) < 65536:
            kept.extend(data)

    command = nasty.command.replace("@", mark)
    return await shells.run(command, feed, timeout_ms=nasty.timeout_ms), bytes(kept)


def fault(nasty: Nasty, ended: Ended, said: bytes) -> str | None:
    """What is wrong with an answer; None if it is as expected."""
    code = -ended.signal if ended.signal else ended.exit_code
    if ended.reason != nasty.reason:
        return f"{nasty.name}: {ended.reason}, not {nasty.reason}"
    if code not in nasty.codes:
        return f"{nasty.name}: ended with {code}, not one of {nasty.codes}"
    if nasty.says is not None and (nasty.says not in said or (not nasty.says and said)):
        return f"{nasty.name}: printed {said[:200]!r}, not {nasty.says!r}"
    if bool(ended.left_running) != nasty.leaves:
        return f"{nasty.name}: left {ended.left_running} running {ended.left_names}"
    return None


async def storm(shells: Shells, rounds: int, *, seed: int = 0, at_once: int = 8) -> list[str]:
    """Runs random nasty commands, several at once. Returns the faults; the caller closes and counts survivors."""
    chooser = random.Random(seed)
    chosen = [chooser.choice(NASTY) for _ in range(rounds)]
    faults: list[str] = []
    gate = anyio.CapacityLimiter(at_once)

    async def one(nasty: Nasty) -> None:
        async with gate:
            mark = fresh_mark()
            if nasty.leaves:  # in its own session, so that leftovers do not pile up
                async with Shells(shells.scope, sandbox=shells.sandbox) as own:
                    ended, said = await attack(own, nasty, mark)
                alive = await gone(mark, own.mark)
            else:
                ended, said = await attack(shells, nasty, mark)
                alive = await gone(mark)
            found = fault(nasty, ended, said)
            faults.extend([found] if found else [])
            faults.extend(f"{nasty.name}: survived: {process}" for process in alive)

    async with anyio.create_task_group() as group:
        for nasty in chosen:
            group.start_soon(one, nasty)
    return faults


# A separate server, to be killed during a command.
VICTIM = """
import sys, anyio
from gripfast.host.shell.shells import Shells
from gripfast.host.files.scope import Scope

async def main():
    shells = Shells(Scope.workspace(sys.argv[1]), sandbox=sys.argv[2])
    async def feed(data):
        sys.stdout.write(data.decode(errors="replace")); sys.stdout.flush()
    await shells.start(sys.argv[3])
    await shells.run(sys.argv[4], feed)

anyio.run(main)
"""


def kill_server(root: str, mode: str, mark: str, command: str) -> None:
    """Starts a server with a background shell and a command, and kills it with SIGKILL once the command prints."""
    background = f"setsid sleep 987.{mark}"
    server = subprocess.Popen(
        [sys.executable, "-c", VICTIM, root, mode, background, command.replace("@", mark)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert server.stdout is not None
    with server.stdout:
        server.stdout.read(1)
        server.kill()
    server.wait()
