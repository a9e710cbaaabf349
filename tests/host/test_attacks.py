"""The attacks of attacks.py, briefly. A torture script may run the same ones for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from gripfast.host.files.beneath import Strategy
from host.attacks import RACES, check_then_open, count_together, kill_writers, race


@pytest.mark.parametrize("kind", sorted(RACES))
def test_no_swap_of_a_directory_for_a_link_gets_out(tmp_path: Path, strategy: Strategy, kind: str) -> None:
    times = 3_000 if kind in ("read", "list") else 300
    count = race(tmp_path, RACES[kind], times, strategy)
    assert count.out == 0, count
    if not (count.inside and count.refused):
        pytest.skip(f"the machine is too busy for a race, only one state was met: {count}")


def test_the_same_race_leads_check_then_open_out(tmp_path: Path) -> None:
    for attempt in range(20):
        if check_then_open(tmp_path / str(attempt), 5_000):
            return
    pytest.fail("the attack never works, so it proves nothing")


def test_a_writer_killed_at_any_moment_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    count = kill_writers(tmp_path, 12, size=1_000_000, seed=3)
    assert count.torn == 0
    assert count.whole == 12
    assert count.strays <= 12


@pytest.mark.parametrize("guarded", [True, False])
def test_many_processes_that_edit_one_file_lose_no_update(tmp_path: Path, guarded: bool) -> None:
    assert count_together(tmp_path, 4, 40, guarded=guarded) == 160
