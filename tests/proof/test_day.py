"""A small part of the day that `scripts/torture --only day` walks."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from torture.day import STEPS, prepared, walked

from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.sandbox import Sandbox, choose

PART = ("git commit", "git branch", "git merge", "git worktree", "git clone", "venv", "make")


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_a_part_of_a_day_works_and_changes_nothing_of_the_users_own(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = choose("auto") if level == "bwrap" else Sandbox("landlock")
    if sandbox.level != level or (level == "landlock" and landlock_version() == 0):
        pytest.skip(f"{level} does not work here")
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # /tmp is private to commands, a home in it hidden
        room = Path(os.path.realpath(folder))
        monkeypatch.setenv("HOME", str(room / "home"))
        prepared(room)
        found = walked(room, sandbox, tuple(step for step in STEPS if step[0] in PART))
    assert found["failed"] == {}
    assert found["tried"] > len(PART)
