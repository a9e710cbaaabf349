"""A Session on its own event loop, called from plain functions; and the peak memory of some calls."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import start_blocking_portal

from benchmarks.harness import ROOT
from gripfast import Scope, ToolMessage, open_session


class Calls:
    """A blocking session.call. A failed call fails the benchmark."""

    def __init__(self, portal: Any, session: Any) -> None:
        self._portal = portal
        self.session = session

    def __call__(self, name: str, **arguments: Any) -> ToolMessage:
        message = self._portal.call(self.session.call, name, json.dumps(arguments))
        if message.is_error:
            raise RuntimeError(message.text)
        return message


@contextmanager
def session_on(root: Path, **options: Any) -> Iterator[Calls]:
    with start_blocking_portal() as portal:
        session = open_session(Scope.workspace(root), **options)
        with portal.wrap_async_context_manager(session):
            yield Calls(portal, session)


# VmHWM rather than ru_maxrss, because a child's ru_maxrss starts at its parent's size (proc_pid_status(5)).
PEAK = """
import json, re, sys
from pathlib import Path
from benchmarks.inside import session_on
work = json.loads(sys.argv[1])
with session_on(Path(work["root"]), **work["options"]) as call:
    for name, arguments in work["calls"]:
        call(name, **arguments)
print(int(re.search("VmHWM:[^0-9]*([0-9]+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""


def peak_mb(root: Path, calls: list[tuple[str, dict[str, Any]]], **options: Any) -> float:
    """The peak resident memory of a new process that makes these calls."""
    work = json.dumps({"root": str(root), "calls": calls, "options": options})
    done = subprocess.run(
        [sys.executable, "-c", PEAK, work], cwd=ROOT, check=True, capture_output=True, text=True, timeout=600
    )
    return float(done.stdout)
