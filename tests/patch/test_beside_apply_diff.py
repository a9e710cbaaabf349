"""Random diffs, applied by us and by `apply_diff` of openai-agents: the same bytes wherever both apply one.

The framework is not a dependency: its function runs in the environment that `scripts/peers` made, as a process that
takes a line of JSON for each diff.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gripfast.errors import ToolError
from gripfast.patch.grammar import parse
from gripfast.patch.plan import plan

PYTHON = Path(__file__).parents[2] / ".cache" / "peers" / "adapters" / "openai-agents" / "bin" / "python"
THEIRS = """
import json, sys
from agents import apply_diff
for line in sys.stdin:
    before, diff = json.loads(line)
    try:
        answer = apply_diff(before, diff)
    except ValueError:
        answer = None
    print(json.dumps(answer), flush=True)
"""

Apply = Callable[[str, str], str | None]


@pytest.fixture(scope="module")
def theirs() -> Iterator[Apply]:
    if not PYTHON.exists():
        pytest.skip("scripts/peers has made no environment for openai-agents")
    process = subprocess.Popen(
        [PYTHON, "-c", THEIRS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def apply(before: str, diff: str) -> str | None:
        stdin.write(json.dumps([before, diff]) + "\n")
        stdin.flush()
        return json.loads(stdout.readline())

    yield apply
    stdin.close()
    process.wait()
    stdout.close()


class _File:
    def __init__(self, text: str) -> None:
        self._text = text

    def body(self) -> bytes:
        return self._text.encode()


def ours(before: str, diff: str) -> str | None:
    patch = parse(f"*** Begin Patch\n*** Update File: f\n{diff}\n*** End Patch")
    planned = plan(patch, {"f": "f"}, lambda _: _File(before))
    return None if planned.failures else planned.files["f"].text().decode()


LINE = st.sampled_from(["a", "b", "  a", "def f():", "}", "", "é “x”", "x = 1", "@@", "+", "-"])


@st.composite
def diffs(draw: st.DrawFn) -> tuple[str, str]:
    """A text, and a diff of it in chunks, each with some lines of context around it."""
    lines = draw(st.lists(LINE, min_size=1, max_size=20))
    rows: list[str] = []
    at = 0
    while at < len(lines) and (not rows or draw(st.booleans())):
        start = draw(st.integers(at, len(lines) - 1))
        stop = draw(st.integers(start, min(len(lines), start + 3)))
        context = draw(st.integers(1, 3))
        new = draw(st.lists(LINE, max_size=3))
        rows.append("@@")
        rows += [f" {line}" for line in lines[max(at, start - context) : start]]
        rows += [f"-{line}" for line in lines[start:stop]] + [f"+{line}" for line in new]
        rows += [f" {line}" for line in lines[stop : stop + context]]
        at = stop + context
    return "\n".join(lines) + draw(st.sampled_from(["\n", "\n", ""])), "\n".join(rows)


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(diffs())
def test_both_give_the_same_bytes_where_both_apply_a_diff(theirs: Apply, case: tuple[str, str]) -> None:
    before, diff = case
    try:
        mine = ours(before, diff)
    except ToolError:  # a chunk of nothing but blank context
        return
    if mine is None:
        return
    other = theirs(before, diff)
    assert other is None or other == mine
