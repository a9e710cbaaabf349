"""Every way round the walls of commands that was ever found, at each level that works here."""

from __future__ import annotations

from attacks.walls import ATTACKS, Attack, faults
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.sandbox import Sandbox, choose
from torture.trial import Outcome, Torment

_KEEPS_SIGNALS = 6  # the Landlock ABI that keeps signals inside


def run(torment: Torment) -> None:
    for name, sandbox in _levels().items():
        _tried(torment, name, sandbox)


def _levels() -> dict[str, Sandbox | None]:
    best, landlock = choose("auto"), landlock_version()
    bwrap = best if best.level == "bwrap" else None
    reduced = Sandbox("bwrap", best.program, ("--unshare-ipc",)) if bwrap and landlock >= _KEEPS_SIGNALS else None
    return {"bwrap": bwrap, "bwrap, reduced": reduced, "landlock": Sandbox("landlock") if landlock else None}


def _tried(torment: Torment, name: str, sandbox: Sandbox | None) -> None:
    what, promise = f"ways round the walls, {name}", "nothing protected changed, nothing secret shown"
    if sandbox is None:
        torment.tell(Outcome(what, promise, why="not on this machine"))
        return
    attacks = [attack for attack in ATTACKS if sandbox.level in attack.levels]
    times = torment.times(10, 1)
    broken = sum(_broken(torment, attack, sandbox, f"{name}-{time}") for time in range(times) for attack in attacks)
    torment.tell(Outcome(what, promise, times * len(attacks), broken, f"{len(attacks)} kinds"))


def _broken(torment: Torment, attack: Attack, sandbox: Sandbox, room: str) -> bool:
    found = list(faults(attack, torment.room(f"{room}-{attack.finding}".replace(" ", "-")), sandbox))
    for fault in found:
        torment.say(f"    {attack.finding}: {fault}")
    return bool(found)
