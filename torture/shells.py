"""Nasty commands, a server killed during a command, and the recogniser compared with bash."""

from __future__ import annotations

import anyio

from attacks.shell import NASTY, fresh_mark, gone, kill_server, storm
from call.bash_oracle import BASH, differences
from gripfast.host.files.scope import Scope
from gripfast.host.shell.shells import Shells
from torture.trial import Outcome, Torment


def run(torment: Torment) -> None:
    nasty_commands(torment)
    killed_servers(torment)
    against_bash(torment)


def nasty_commands(torment: Torment) -> None:
    times = torment.times(1_000, 40)
    root = torment.room("nasty")

    async def play() -> list[str]:
        shells = Shells(Scope.workspace(root), sandbox="auto")
        try:
            return await storm(shells, times, seed=torment.seed)
        finally:
            await shells.close()

    faults = anyio.run(play)
    for fault in faults[:5]:
        torment.say(f"    {fault}")
    promise = "the expected answer, and no survivor"
    torment.tell(Outcome(f"nasty commands, {len(NASTY)} kinds, 8 at once", promise, times, len(faults)))


def killed_servers(torment: Torment) -> None:
    times, left = torment.times(100, 5), 0
    root = torment.room("killed")
    for _ in range(times):
        mark = fresh_mark()
        kill_server(str(root), "auto", mark, "setsid sleep 987.@ & echo x; sleep 987.@")
        left += len(anyio.run(lambda mark=mark: gone(mark, within=10)))
    torment.tell(Outcome("the server dies by kill -9 in mid-command", "no process survives", times, left))


def against_bash(torment: Torment) -> None:
    promise = "bash runs exactly what was proved"
    if BASH is None:
        torment.tell(Outcome("strings against real bash", promise, why="no bash on this machine"))
        return
    times = torment.times(20_000, 1_000)
    wrong = differences(times, seed=torment.seed)
    torment.tell(Outcome("strings against real bash", promise, times, len(wrong)))
