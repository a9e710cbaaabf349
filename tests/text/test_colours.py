"""The colours of a terminal as styles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.text.colours import MOST_CHANGES, Run, coloured, has_colours
from gripfast.text.escape import visible

ESC = "\x1b"


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (f"{ESC}[1;32mok{ESC}[0m done", [Run("ok", "bold green"), Run(" done")]),
        (f"{ESC}[97;41mw{ESC}[49mx{ESC}[39my", [Run("w", "bright-white on-red"), Run("x", "bright-white"), Run("y")]),
        (f"{ESC}[38;5;196mred{ESC}[m", [Run("red", "bright-red")]),
        (f"{ESC}[48;2;10;200;30mgreen", [Run("green", "on-green")]),
        (f"{ESC}[38:2:90:90:90mgrey{ESC}[38mnone", [Run("grey", "bright-black"), Run("none")]),
        (f"{ESC}[1;2mboth{ESC}[22mneither", [Run("both", "bold dim"), Run("neither")]),
        ("10%\r20%\r\nnext\r", [Run("20%\nnext")]),
        (f"{ESC}]0;a title\x07{ESC}[2J{ESC}[1;1Hshown", [Run("shown")]),
        ("<b>\u202e\x07", [Run("<b>\\u202e\\x07")]),
        (f"{ESC}[{'1;' * 200}m{ESC}[999999999999mx", [Run("x")]),
    ],
)
def test_colours_become_styles_and_nothing_else_acts(text: str, runs: list[Run]) -> None:
    assert coloured(text) == runs


@given(st.text(alphabet=st.sampled_from(f"{ESC}[]m;:0134578 9abc\r\n\x9b\x07\u202e<"), max_size=200))
def test_no_text_leaves_something_that_acts(text: str) -> None:
    for run in coloured(text):
        assert run.text == visible(run.text)
        assert ESC not in run.text
        assert set(run.style) <= set("abcdefghijklmnopqrstuvwxyz- ")


@given(st.text(max_size=200))
def test_text_without_escapes_is_shown_as_it_is(text: str) -> None:
    text = "".join(char for char in text if char not in "\r\x1b\x9b\x90\x98\x9d\x9e\x9f")
    assert "".join(run.text for run in coloured(text)) == visible(text)


def test_a_flood_of_colours_is_bounded() -> None:
    runs = coloured("".join(f"{ESC}[3{at % 7 + 1}mx" for at in range(20_000)))
    assert len(runs) <= MOST_CHANGES + 1
    assert sum(len(run.text) for run in runs) == 20_000


def test_whether_a_text_has_colours() -> None:
    assert has_colours(f"a{ESC}[31mb")
    assert not has_colours(f"a{ESC}[2Jb")
