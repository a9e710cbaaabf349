"""Runs a command and ends everything that came of it: what it started, and what that started and left behind.

A process may leave its group, its session and its environment, but not its ancestors: orphans fall to the nearest
subreaper, which is this. Usage: python -m torture.keeper FOLDER SECONDS PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from holdfast.host.broker import become_subreaper, reap, sweep

HANGS = 124  # the exit code when the time was up


def main() -> None:
    folder, seconds, *command = sys.argv[1:]
    become_subreaper()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # who asked ends it by hanging up
    os.chdir(folder)
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    normal = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    environment = {**os.environ, "PYTHONPATH": os.path.join(folder, "src")}
    child = os.posix_spawn(
        command[0], command, environment, file_actions=actions, setsid=True, setsigdef=normal, setsigmask=[]
    )
    code = _ended(child, time.monotonic() + float(seconds))
    if left := sweep():
        print(f"could not be ended: {left}", file=sys.stderr)
    sys.exit(code)


def _ended(child: int, until: float) -> int:
    """The exit code of the child; it has until then, or until whoever asked hangs up."""
    while time.monotonic() < until:
        ended = reap()
        if child in ended:
            code = os.waitstatus_to_exitcode(ended[child])
            return code if code >= 0 else 128 - code
        hung_up, _, _ = select.select([0], [], [], 0.02)
        if hung_up:
            break
    return HANGS


if __name__ == "__main__":
    main()
