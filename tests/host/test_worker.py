"""Workers: what hangs, crashes or eats memory costs one answer and nothing else."""

from __future__ import annotations

import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gripfast.errors import Cancelled
from gripfast.host.program import worker
from gripfast.host.program.worker import WorkerFault, Workers

MODULE = """
import ctypes, os, sys, time

def work(order, data):
    if order["do"] == "hang":
        time.sleep(1000)
    if order["do"] == "crash":
        ctypes.string_at(0)
    if order["do"] == "eat":
        return {"size": len(bytearray(3 << 30))}
    if order["do"] == "raise":
        raise ValueError("no")
    if order["do"] == "print":
        print("x" * 100_000)
        os.write(1, b"noise")
    return {"size": len(data), "pid": os.getpid(), "environment": len(os.environ)}
"""


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Workers]:
    (tmp_path / "hostile_work.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(worker, "_OWN", str(tmp_path))
    with Workers("hostile_work:work", seconds=20) as opened:
        yield opened


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_process_answers_one_order_after_the_other(workers: Workers) -> None:
    first = workers.ask({"do": "count"}, b"abc")
    second = workers.ask({"do": "count"}, b"x" * 5_000_000)
    assert (first["size"], second["size"]) == (3, 5_000_000)
    assert first["pid"] == second["pid"]
    assert first["environment"] <= 1  # nothing of ours; Python itself may set LC_CTYPE


@pytest.mark.parametrize(("do", "said"), [("crash", "crashed"), ("eat", "too much memory"), ("raise", "ValueError")])
def test_what_goes_wrong_is_said_and_the_next_order_is_answered(workers: Workers, do: str, said: str) -> None:
    with pytest.raises(WorkerFault, match=said):
        workers.ask({"do": do}, b"")
    assert workers.ask({"do": "count"}, b"abc")["size"] == 3


def test_what_takes_too_long_is_ended(workers: Workers) -> None:
    pid = workers.ask({"do": "count"}, b"")["pid"]
    workers._seconds = 0.3  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(WorkerFault, match="took too long"):
        workers.ask({"do": "hang"}, b"")
    assert not is_running(pid)


def test_a_cancelled_order_ends_its_process(workers: Workers) -> None:
    pid = workers.ask({"do": "count"}, b"")["pid"]
    with pytest.raises(Cancelled):
        workers.ask({"do": "hang"}, b"", is_cancelled=lambda: True)
    assert not is_running(pid)


def test_what_a_library_prints_is_no_answer(workers: Workers) -> None:
    assert workers.ask({"do": "print"}, b"abc")["size"] == 3


def test_a_process_that_ended_while_idle_is_replaced(workers: Workers) -> None:
    first = workers.ask({"do": "count"}, b"")["pid"]
    os.kill(first, 9)
    assert workers.ask({"do": "count"}, b"")["pid"] != first


def test_closing_leaves_no_process_behind(workers: Workers) -> None:
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(workers.ask, {"do": "count"}, b"x") for _ in range(20)]
        pids = {each.result()["pid"] for each in asked}
    workers.close()
    assert not any(map(is_running, pids))
