"""Names that were probably meant."""

from __future__ import annotations

from gripfast.text.near import did_you_mean, near


def test_the_likest_names_come_first_whatever_the_case() -> None:
    assert near("reed", ["Write", "Read", "Red"]) == ["Red", "Read"]
    assert near("zzz", ["Read"]) == []


def test_the_hint_offers_what_was_meant_else_all_there_are() -> None:
    assert did_you_mean("Raed", ["Read", "Write"]) == "did you mean `Read`?"
    assert did_you_mean("Raed", ["Read", "Reed"], 2) == "did you mean `Read` or `Reed`?"
    assert did_you_mean("zzz", ["Read", "Write"]) == "use one of Read, Write"
    assert did_you_mean("zzz", [], none="it takes none") == "it takes none"


def test_a_hint_hides_nothing() -> None:
    assert did_you_mean("ab", ["a\u202eb"]) == "did you mean `a\\u202eb`?"


def test_a_name_as_long_as_a_file_is_compared_in_no_time() -> None:
    assert near("x" * 1_000_000, ["y" * 1_000_000] * 100) == []
