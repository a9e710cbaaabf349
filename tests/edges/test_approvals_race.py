"""A small count of what `scripts/torture --only approvals` tries a thousand times."""

from __future__ import annotations

from pathlib import Path

from torture import approvals
from torture.trial import Torment


def said_nowhere(_: str) -> None:
    return None


def test_no_call_runs_twice_or_unapproved_whatever_races_or_crashes(tmp_path: Path) -> None:
    torment = Torment(tmp_path, 7, quick=True, say=said_nowhere)
    approvals.run(torment)
    assert [outcome for outcome in torment.outcomes if outcome.verdict != "held"] == []
