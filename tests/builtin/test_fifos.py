"""A FIFO in the place of a file that git keeps holds up no call, and no server that wants to end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = """
import sys, anyio
from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope

async def main():
    async with open_session(Scope.workspace(sys.argv[1]), record=True) as session:
        for name, arguments in (
            ("Grep", {"pattern": "needle", "output_mode": "content"}),
            ("Glob", {"pattern": "**/*.py"}),
            ("Bash", {"command": "echo ok; echo x > a.py"}),
            ("Bash", {"command": "echo again"}),
        ):
            print((await session.call(name, arguments)).text)
        await session.undo()

anyio.run(main)
"""
SETUP = (
    "git init -q .; mkdir -p sub .github/workflows; echo needle > sub/x.py; echo old > a.py; "
    "echo x > .github/workflows/w.yml; git add -A; git -c user.name=a -c user.email=b commit -qm one"
)


@pytest.mark.parametrize(
    "place", [".git/info/exclude", ".git/index", ".git/commondir", ".git/packed-refs", ".git/config"]
)
def test_no_call_waits_for_a_fifo_of_git(place: str, tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    environment |= {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("STATE", "CACHE", "CONFIG")}
    subprocess.run(["bash", "-ec", SETUP], cwd=root, env=environment, check=True)
    (root / place).unlink(missing_ok=True)
    os.mkfifo(root / place)
    done = subprocess.run(
        [sys.executable, "-c", CALLS, str(root)], env=environment, capture_output=True, timeout=100, check=False
    )
    said = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    assert "sub/x.py:1:needle" in said and "ok" in said and "again" in said
