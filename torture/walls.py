"""Every way round the walls of commands that was ever found, at each level that works here, as each kind of user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio

from attacks.walls import ATTACKS, Attack, faults
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import SCOPES_FROM, landlock_version
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells
from torture.trial import Outcome, Torment

_NOBODY = 65534
_PROMISE = "nothing protected changed, nothing secret shown"
_HERE = Path(__file__).parent.parent


def run(torment: Torment) -> None:
    for name, sandbox in _levels().items():
        _tried(torment, f"{name}, {_user()}", sandbox)
    _background(torment)
    if os.geteuid() == 0:
        _as_plain_user(torment)


def _user() -> str:
    return "as root" if os.geteuid() == 0 else "as a plain user"


def _levels() -> dict[str, Sandbox | None]:
    best, landlock = choose("auto"), landlock_version()
    bwrap = best if best.level == "bwrap" else None
    reduced = Sandbox("bwrap", best.program, ("--unshare-ipc",)) if bwrap and landlock >= SCOPES_FROM else None
    return {"bwrap": bwrap, "bwrap, reduced": reduced, "landlock": Sandbox("landlock") if landlock else None}


def _tried(torment: Torment, name: str, sandbox: Sandbox | None) -> None:
    what = f"ways round the walls, {name}"
    if sandbox is None:
        torment.tell(Outcome(what, _PROMISE, why="not on this machine"))
        return
    attacks = [attack for attack in ATTACKS if sandbox.level in attack.levels]
    times = torment.times(10, 1)
    broken = sum(_broken(torment, attack, sandbox, f"{name}-{time}") for time in range(times) for attack in attacks)
    torment.tell(Outcome(what, _PROMISE, times * len(attacks), broken, f"{len(attacks)} kinds"))


def _broken(torment: Torment, attack: Attack, sandbox: Sandbox, room: str) -> bool:
    found = list(faults(attack, torment.room(f"{room}-{attack.finding}".replace(" ", "-")), sandbox))
    for fault in found:
        torment.say(f"    {attack.finding}: {fault}")
    return bool(found)


# ---- background commands ----


def _background(torment: Torment) -> None:
    """Background commands, many of them: what is left when they have ended, while the session is still open."""
    times = torment.times(1_000, 50)
    left = anyio.run(_left, torment.room("background"), times)
    what, promise = "background commands that ended", "leave no descriptor, process or file"
    torment.tell(Outcome(what, promise, times, len(left), "; ".join(left)))


async def _left(root: Path, times: int) -> list[str]:
    async with Shells(Scope.workspace(root)) as shells:
        await _in_background(shells, 1)
        before = _held(shells)
        await _in_background(shells, times)
        await shells.run("true", _unheard)
        for _ in range(500):  # a supervisor ends a moment after its report
            if _held(shells) == before:
                return []
            await anyio.sleep(0.02)
        return [
            f"{name}: {was} before, {now} after" for (name, was), (_, now) in zip(before, _held(shells), strict=True)
        ]


async def _in_background(shells: Shells, times: int) -> None:
    for _ in range(times):
        started = await shells.start("echo printed; touch $TMPDIR/f; rm $TMPDIR/f")
        while shells.is_running(started):
            await anyio.sleep(0.002)


def _held(shells: Shells) -> list[tuple[str, int]]:
    files = sum(len(names) for _, _, names in os.walk(shells.temporary))
    return [
        ("descriptors", len(os.listdir("/proc/self/fd"))),
        ("processes", len(_below(os.getpid()))),
        ("files", files),
    ]


def _below(pid: int) -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != pid and _parent(name) == pid:
            found += [int(name), *_below(int(name))]
    return found


def _parent(pid: str) -> int:
    try:
        return int(
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1]
        )
    except OSError:
        return 0


async def _unheard(_: bytes) -> None:
    """The output is not looked at."""


# ---- as a plain user ----


def _as_plain_user(torment: Torment) -> None:
    """The same, in a process of a user without any rights."""
    what = "ways round the walls, as a plain user"
    python, place = _interpreter(), _common_directory()
    if python is None or place is None:
        why = "no interpreter" if python is None else "no temporary directory"
        torment.tell(Outcome(what, _PROMISE, why=f"{why} that another user can get to"))
        return
    try:
        command = [*_unprivileged(), python, "-m", "torture.walls", str(place), str(torment.times(10, 1))]
        done = subprocess.run(
            command, cwd=_HERE, env=_environment(place), capture_output=True, text=True, check=False
        )
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        for line in done.stdout.splitlines():
            if line.startswith("    "):
                torment.say(line)
        for row in rows:
            torment.tell(Outcome(**row))
        if not rows:
            torment.tell(Outcome(what, _PROMISE, 1, 1, done.stderr[-200:]))
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _unprivileged() -> list[str]:
    return ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]


def _environment(place: Path) -> dict[str, str]:
    path = [_HERE, _HERE / "src", _HERE / "tests", *filter(None, sys.path)]
    home = {name: str(place) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME")}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": ":".join(map(str, path)), **home}


def _interpreter() -> str | None:
    """An interpreter of this version that another user can run, with what we import."""
    if shutil.which("setpriv") is None:
        return None
    words = (
        "import os, sys; from gripfast.host.program.programs import interpreter; "
        "print(sys.version_info[:2] if os.access(interpreter(), os.X_OK) else 0)"
    )
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        command = [*_unprivileged(), python, "-c", words]
        done = subprocess.run(command, env=_environment(Path("/")), capture_output=True, text=True, check=False)
        if done.stdout.strip() == str(sys.version_info[:2]):
            return python
    return None


def _common_directory() -> Path | None:
    for above in (Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/dev/shm")):
        if above.is_dir() and all(place.stat().st_mode & 0o001 for place in (above, *above.parents)):
            place = Path(tempfile.mkdtemp(prefix="gripfast-torture-", dir=above))
            os.chown(place, _NOBODY, _NOBODY)
            return place
    return None


def main(place: str, times: str) -> None:
    scale = int(times) / 10
    torment = Torment(Path(place) / "rooms", 1, scale=scale, say=lambda line: print(line, flush=True))
    for name, sandbox in _levels().items():
        _tried(torment, f"{name}, {_user()}", sandbox)
    for outcome in torment.outcomes:
        print(
            json.dumps(
                {name: getattr(outcome, name) for name in ("name", "promise", "tried", "failed", "note", "why")}
            )
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
