"""Programs that run as a user who is not root, for tests of what only such a user meets."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gripfast

USER = 31337
SOURCE = str(Path(gripfast.__file__).parents[1])
_TRIAL = """
import anyio, subprocess, gripfast.host.shell.shells
from gripfast.host.program.programs import interpreter
subprocess.run([interpreter(), "-c", ""], check=True)
"""


def environment(home: Path | str) -> dict[str, str]:
    """The variables of a program in that home, which finds this package and what it needs."""
    packages = [place for place in sys.path if place.endswith("site-packages")]
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": os.pathsep.join([SOURCE, *packages])}


def plain_python() -> list[str]:
    """How to start an interpreter as a user that is not root. Skips the test where there is none."""
    found = _found()
    if found is None:
        pytest.skip("no interpreter here that a plain user can run")
    return found


@functools.cache
def _found() -> list[str] | None:
    if os.geteuid() != 0:
        return [sys.executable]
    drop = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    for python in (sys.executable, "/usr/bin/python3") if shutil.which("setpriv") else ():
        done = subprocess.run([*drop, python, "-c", _TRIAL], env=environment("/"), cwd="/", capture_output=True)
        if done.returncode == 0:
            return [*drop, python]
    return None


def give(*places: Path) -> None:
    """Gives places to that user."""
    if os.geteuid() == 0:
        for place in places:
            os.chown(place, USER, USER)
