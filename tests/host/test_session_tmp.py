"""The session's temporary directory goes with all it holds, and what is around it stays as it was."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gripfast.host.files.session_tmp import SessionTmp
from plain_user import environment, give, plain_python


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary files that everybody may write, as `/tmp` is."""
    around = tmp_path / "tmp"
    around.mkdir()
    around.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(around))
    return around


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_directory_around_it_keeps_its_mode(around: Path) -> None:
    place = SessionTmp()
    Path(place.path(), "a").write_text("x")
    place.remove()
    assert list(around.iterdir()) == []
    assert mode(around) == 0o1777
    place.path()
    os.rmdir(place.real)  # somebody was faster
    place.remove()
    assert mode(around) == 0o1777


CLOSED = """
import os, sys, tempfile
tempfile.tempdir = sys.argv[1]
from gripfast.host.files.session_tmp import SessionTmp
place = SessionTmp()
for name, mode in (("unreadable", 0), ("unwritable", 0o500)):
    os.makedirs(f"{place.path()}/{name}/in")
    open(f"{place.path()}/{name}/in/file", "w").close()
    os.chmod(f"{place.path()}/{name}/in", mode)
    os.chmod(f"{place.path()}/{name}", mode)
os.chmod(place.path(), int(sys.argv[2], 8))
place.remove()
print(os.listdir(sys.argv[1]))
"""


@pytest.mark.parametrize("own", ["700", "0"])
def test_directories_that_are_closed_to_their_owner_go_too(own: str) -> None:
    with tempfile.TemporaryDirectory(prefix="gripfast-closed-", dir="/var/tmp") as name:
        around = Path(name)
        give(around)
        words = [*plain_python(), "-c", CLOSED, str(around), own]
        done = subprocess.run(words, env=environment(around), capture_output=True, text=True, timeout=120)
        assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("killed", [False, True])
def test_a_server_leaves_the_directory_around_it_as_it_was(killed: bool, around: Path, tmp_path: Path) -> None:
    """Also a killed one, whose warden removes it."""
    (tmp_path / "work").mkdir()
    line = "echo started > mark; sleep 60" if killed else "true"
    call = [sys.executable, "-m", "gripfast", "call", "Bash", "--root", str(tmp_path / "work"), line]
    variables = {**os.environ, "TMPDIR": str(around), "XDG_STATE_HOME": str(tmp_path / "state")}
    with subprocess.Popen(call, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        if killed:
            until((tmp_path / "work" / "mark").exists)
            process.kill()
        process.wait(60)
    until(lambda: not list(around.iterdir()))
    assert mode(around) == 0o1777


def until(said: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not said():
        assert time.monotonic() < deadline
        time.sleep(0.05)
