"""scripts/economy: every task is really done by our tools, and the page compares only what both can do."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.economy import OURS, Bill, Spent, page, play, served
from benchmarks.economy_tasks import make_workspace, tasks


def test_our_tools_do_every_task(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    make_workspace(root)
    with served(OURS, root, tmp_path) as server:
        for task in tasks(root):
            arguments, answers = play(server, task, OURS, root)
            assert arguments and all(answers), task.goal


def test_a_task_that_was_not_done_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    make_workspace(root)
    rename = next(task for task in tasks(root) if task.goal == "a file's name")  # of a file that is not there yet
    with served(OURS, root, tmp_path) as server, pytest.raises(RuntimeError, match="has not done it"):
        play(server, rename, OURS, root)


def test_the_page_compares_what_both_can_do() -> None:
    count = len(tasks(Path("/w")))
    assert count == 20
    ours, theirs = Bill(100, [Spent(1, 9)] * count), Bill(300, [Spent(5, 15), *[None] * (count - 1)])
    text = page({OURS: ours, "filesystem": theirs})
    assert "1 tasks that both can do cost 10 with ours and 20 with theirs (0.50×)" in text
    assert "with the definitions 110 and 320 (0.34×)" in text
    assert text.count("| – |") == count - 1
