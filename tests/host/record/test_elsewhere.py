"""The calls of other servers, as they are told in a store that others may write to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gripfast.host.record.calls import PathDelta, RecordedCall
from gripfast.host.record.elsewhere import calls_everywhere, line_for_others
from gripfast.host.record.states import ABSENT, PathState

ONE, TWO = "build1:8765 aaaa", "build2:8765 bbbb"
MADE = PathState("file", 0o644, "0" * 64, 3)


def told(number: int, time: float, server: str = ONE, **more: Any) -> bytes:
    return line_for_others(RecordedCall(number, time, "Edit", "{}", **more).to_json(), server)


def test_calls_of_several_servers_are_in_the_order_in_which_they_were_told() -> None:
    own = [RecordedCall(1, 10.0, "Read"), RecordedCall(2, 30.0, "Read")]
    lines = [told(1, 20.0), told(1, 5.0, TWO), told(2, 40.0)]  # a clock that is slow
    found, broken = calls_everywhere(own, lines)
    assert [one.key for one in found] == ["1", "1@build1:8765", "1@build2:8765", "2", "2@build1:8765"]
    assert broken == 0


def test_a_call_that_is_in_the_own_record_is_not_shown_twice() -> None:
    own = RecordedCall(7, 10.5, "Edit", "{}")
    found, _ = calls_everywhere([own], [line_for_others(own.to_json(), ONE), told(7, 11.0, TWO)])
    assert [one.key for one in found] == ["7", "7@build2:8765"]


def test_what_a_command_in_the_background_changed_later_belongs_to_its_call() -> None:
    delta = PathDelta("/w/a", ABSENT, MADE)
    added = line_for_others({"adds": 3, "changes": [delta.to_json()], "uncovered": ["/w/b: too large"]}, ONE)
    found, broken = calls_everywhere([], [told(3, 1.0), told(3, 1.0, TWO), added])
    assert [[change.path for change in one.call.changes] for one in found] == [["/w/a"], []]
    assert found[0].call.uncovered == ("/w/b: too large",)
    assert broken == 0


def test_a_server_that_lost_its_record_and_counts_anew_loses_no_call() -> None:
    found, _ = calls_everywhere([], [told(1, 1.0), told(1, 2.0, "build1:8765 cccc")])
    assert [one.key for one in found] == ["1@build1:8765", "1@build1:8765#cccc"]


def test_a_line_is_short_whatever_a_call_did() -> None:
    changes = tuple(PathDelta(f"/w/{number}/{'x' * 3000}", ABSENT, MADE) for number in range(5000))
    line = told(1, 1.0, changes=changes, uncovered=tuple(f"/w/{number}: why" for number in range(5000)))
    assert len(line) < 1 << 16
    found, broken = calls_everywhere([], [line])
    assert broken == 0
    assert "more paths" in found[0].call.uncovered[-1]


HOSTILE: dict[str, dict[str, Any]] = {
    "a time without an end": {"time": float("inf")},
    "a time that is no number": {"time": float("nan")},
    "a number below": {"call": -1},
    "a number beyond": {"call": 10**30},
    "a size beyond": {"answer_bytes": 1e300},
    "an error that is no text": {"error": {"x": 1}},
    "a ref that is no text": {"output_ref": ["x"]},
    "an answer that leads elsewhere": {"answer_sha256": "../../etc/passwd"},
    "changes that are none": {"changes": [1]},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_line_that_no_server_writes_is_left_out_and_counted(kind: str) -> None:
    good = json.loads(told(1, 1.0))
    found, broken = calls_everywhere([], [json.dumps({**good, **HOSTILE[kind]}).encode(), told(2, 2.0)])
    assert [one.call.number for one in found] == [2]
    assert broken == 1


@pytest.mark.parametrize("server", ["<img src=x>", "a\x1b[2J b", "é" * 200, "", " ", "x y\nz", "../../x"])
def test_the_name_of_a_server_is_harmless(server: str) -> None:
    (found,), _ = calls_everywhere([], [told(1, 1.0, server)])
    assert 0 < len(found.server) <= 80
    assert not set(found.server) & set("<>\x1b\n /\"'")


NAMES = st.sampled_from(["server", "call", "adds", "time", "changes", "x"])
VALUES = st.recursive(
    st.none() | st.floats() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
)


@given(st.lists(st.binary(max_size=60) | VALUES.map(lambda value: json.dumps(value).encode()), max_size=6))
@example([b'{"server": "x", "call": Infinity}', b'{"server": "x", "adds": NaN}', b"[" * 100_000])
def test_no_line_stops_the_reader(lines: list[bytes]) -> None:
    found, broken = calls_everywhere([], [*lines, told(1, 1.0)])
    assert found and broken <= len(lines)
