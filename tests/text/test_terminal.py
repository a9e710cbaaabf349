"""Program output as plain text."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from gripfast.text.escape import visible
from gripfast.text.terminal import plain


def test_escape_sequences_leave_only_the_text() -> None:
    noisy = "\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x1b(B\x1b[?25l\x9b2Jend\x1b"
    assert plain(noisy) == "red link end"


def test_an_unfinished_string_sequence_hides_no_later_line() -> None:
    assert plain("a\x1b]0;title without end\nb") == "a\nb"


def test_plain_text_tabs_and_other_scripts_are_kept() -> None:
    text = "a\tb\nさ\U0001f600 é e\u0301\n"
    assert plain(text) == text


@given(st.text(alphabet=st.sampled_from("ab\x1b[]0;m\x07\\\r\n\t\x9b\x9d\u202e\u2066é"), max_size=60))
def test_no_control_is_ever_left(text: str) -> None:
    shown = plain(text)
    assert not any(
        (unicodedata.category(char) in ("Cc",) and char not in "\t\n") or char in "\u202e\u2066" for char in shown
    )
    assert plain(shown) == shown


def test_a_long_line_costs_little() -> None:
    assert len(plain("x" * 1_000_000 + "\r" + "y" * 1_000_000)) == 1_000_000
    assert plain("\x1b[" * 200_000 + "\n") == "\n"


def test_visible_text_loses_nothing_and_acts_on_nothing() -> None:
    assert visible("a\x1b[31mb\rc\x9b\u202e\n\tさ") == "a\\x1b[31mb\\rc\\x9b\\u202e\n\tさ"
