"""Runs a command and ends all of its descendants, including orphans.

A process may leave its process group, its session and its environment, but an orphan always goes to the nearest
subreaper, which is this process. Usage: python -m torture.keeper FOLDER SECONDS PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from gripfast.host.shell.broker import become_subreaper, reap, sweep

HANGS = 124  # the exit code after a timeout


def main() -> None:
    folder, seconds, *command = sys.argv[1:]
    become_subreaper()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the caller ends it by closing its input
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
    """The exit code of the child, which may run until the deadline or until the caller closes our input."""
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
