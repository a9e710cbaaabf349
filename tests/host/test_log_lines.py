"""Lines of a log: in order, never in the way, and what is dropped is counted."""

from __future__ import annotations

import os
import select

from gripfast.host.program import log_lines
from gripfast.host.program.log_lines import LogLines


def test_lines_come_in_order_and_whole() -> None:
    reading, writing = os.pipe()
    lines = LogLines(writing)
    for number in range(300):
        lines.write(f"{number} é \ud800")
    lines.close()
    os.close(writing)
    with open(reading, encoding="utf-8") as file:
        assert file.read() == "".join(f"{number} é \\ud800\n" for number in range(300))


def test_what_nobody_reads_is_dropped_and_counted() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, True)
    lines = LogLines(writing)
    large = "x" * 70_000  # more than a pipe takes: the thread waits in its first write
    lines.write(large)
    select.select([reading], [], [], 60)  # it does now
    for _ in range(log_lines.MOST_WAITING * 2 + 9):
        lines.write("more")
    with open(reading, encoding="utf-8") as file:
        closing = LogLines.close
        found: list[str] = []
        while not found or "dropped" not in found[-1]:
            found.append(file.readline())
        closing(lines)
        os.close(writing)
    count = int(found[-1].split()[0])
    assert found[0] == large + "\n"
    assert count + len(found) - 1 == log_lines.MOST_WAITING * 2 + 10
