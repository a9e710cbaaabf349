"""How cost grows: the same work at 1, 10 and 100 times the size, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import data
from benchmarks.harness import Row, Run, processor_seconds, seconds
from benchmarks.inside import session_on
from gripfast import OutputCache, ToolMessage
from gripfast.lisp.view import collapse

GROUP = "How cost grows"


def measure(run: Run) -> None:
    scale = 1 if run.quick else 4
    _told(run, "Grep, files in the tree", [_grep(200 * scale * times) for times in (1, 10, 100)])
    _told(run, "Glob, files in the tree", [_glob(200 * scale * times) for times in (1, 10, 100)])
    _told(run, "tree, entries in one directory", [_tree(200 * scale * times) for times in (1, 10, 100)])
    _told(run, "Read of the last 200 lines by offset, bytes", [_window(10**6 * scale * t) for t in (1, 10, 100)])
    _told(run, "Edit of one line, bytes", [_edit(10**5 * scale * times) for times in (1, 10, 100)])
    _told(run, "lisp-read-file, bytes", [_lisp(2 * 10**4 * scale * times) for times in (1, 10, 100)])
    _told(run, "trimming a history, messages", [_trim(50 * scale * times) for times in (1, 10, 100)])


def _told(run: Run, name: str, costs: list[float]) -> None:
    """Relative to the smallest size; a fixed cost makes the first step look better than linear, never worse."""
    first, second = costs[1] / costs[0], costs[2] / costs[1]
    verdict = "linear or better" if second <= 13 else "worse than linear"
    measured = f"×{first:.1f}, then ×{second:.1f}"
    run.add(Row(GROUP, name, "≤ ×13 for ×10", measured, "", second <= 13, verdict, second))


def _median(work: Callable[[], Any], rounds: int = 3, clock: Callable[[Callable[[], Any]], float] = seconds) -> float:
    work()
    return statistics.median(clock(work) for _ in range(rounds))


def _grep(files: int) -> float:
    with session_on(data.tree(files)) as call:
        return _median(partial(call, "Grep", pattern="mutex", output_mode="count"))


def _glob(files: int) -> float:
    with session_on(data.tree(files)) as call:
        return _median(partial(call, "Glob", pattern="**/*.h"))


def _tree(entries: int) -> float:
    with session_on(data.flat(entries)) as call:
        return _median(partial(call, "tree", path=".", entry_kind="all"))


def _window(size: int) -> float:
    path = data.text(size)
    lines = path.read_bytes().count(b"\n")
    with session_on(path.parent) as call:
        return _median(partial(call, "Read", file_path=path.name, offset=lines - 200, limit=200))


def _edit(size: int) -> float:
    path = data.text(size)
    copy = path.with_name(f"edited-{size}.txt")
    content = path.read_bytes()
    middle = content.index(b"\n", size // 2) + 1
    copy.write_bytes(content[:middle] + b"line 0 here\n" + content[middle:])
    with session_on(copy.parent) as call:
        call("Read", file_path=copy.name, limit=1)
        state = {"n": 0}

        def edit() -> None:
            state["n"] += 1
            old, new = f"line {state['n'] - 1} here", f"line {state['n']} here"
            call("Edit", file_path=copy.name, old_string=old, new_string=new)

        cost = _median(edit, 5)
    copy.unlink()
    return cost


def _lisp(size: int) -> float:
    form = '(defun name-of-it (a b) "Docs of it." (let ((x (list a b))) (format nil "~a" x)))\n\n'
    return _median(partial(collapse, form * (size // len(form))), clock=processor_seconds)


def _trim(messages: int) -> float:
    history = [ToolMessage(f"c{n}", "Read", "x" * 4000) for n in range(messages)]
    return _median(partial(OutputCache().trim, history, budget=0), clock=processor_seconds)
