"""What may not be shown, over every code point: names and messages hide nothing; emoji and scripts survive."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.text.escape import escaped, visible, visible_json
from gripfast.text.terminal import plain
from gripfast.text.unseen import is_invisible, is_unshown

EVERY = [chr(code) for code in range(sys.maxunicode + 1)]
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=60)
TAGS = "".join(chr(0xE0000 + ord(char)) for char in "run rm")
SELECTORS = "".join(chr(0xE0100 + byte) for byte in b"secret")


def test_every_control_format_private_unassigned_and_separating_character_is_unshown() -> None:
    by_category = {char for char in EVERY if unicodedata.category(char)[0] in "CZ" and char != " "}
    blank = {char for char in EVERY if is_unshown(char)} - by_category
    assert by_category <= {char for char in EVERY if is_unshown(char)}
    assert {"\u3164", "\ufe0f", "\u2800", "\U000e0100"} <= blank and len(blank) < 300


def test_no_single_character_gets_through_any_of_the_functions() -> None:
    for char in filter(is_unshown, EVERY):
        assert escaped(f"a{char}b").isprintable() and char not in escaped(f"a{char}b")
        if char not in "\n\t":
            assert char not in visible(f"a{char}b")
            assert char not in plain(f"a{char}b")


def test_a_character_that_may_be_shown_is_never_changed() -> None:
    text = "".join(char for char in EVERY if not is_unshown(char))
    assert escaped(text) == visible(text) == plain(text) == text


def test_what_is_drawn_as_nothing_is_never_shown() -> None:
    assert [char for char in EVERY if is_invisible(char) and not is_unshown(char)] == []


@pytest.mark.parametrize(
    "text",
    [
        "❤️ 👨‍👩‍👧 1️⃣ ✈️ 🏳️‍🌈 👍🏽",
        "می‌خواهم",
        "क्‍ष",
        "שלום עולם",
        "مرحبا",
        "ไทย",
        "e\u0301 日本",
    ],
)
def test_emoji_and_scripts_that_need_joiners_stay_as_they_are(text: str) -> None:
    assert escaped(text) == plain(text) == text


@pytest.mark.parametrize("hidden", [TAGS, SELECTORS, "\u200d\u200d", "\ufe0f\ufe0f", "\u202e", "\u2066", "\u200b"])
def test_a_message_hidden_behind_an_emoji_does_not_get_through(hidden: str) -> None:
    told = escaped(f"a😀{hidden}.txt")
    assert told.startswith("a😀") and told.endswith(".txt") and "\\" in told
    assert len(plain(f"a😀{hidden}.txt")) <= len("a😀.txt") + 1


@given(ANY_TEXT)
def test_an_escaped_name_is_one_line_that_can_be_sent(name: str) -> None:
    told = escaped(name)
    told.encode("utf-8")
    assert len(told.splitlines()) <= 1 and "\x1b" not in told
    assert escaped(told) == told


@given(ANY_TEXT)
def test_json_that_is_made_visible_means_the_same(text: str) -> None:
    assert json.loads(visible_json(json.dumps({"x": text}, ensure_ascii=False))) == {"x": text}


def test_odd_spaces_in_output_still_part_words() -> None:
    assert plain("a\u00a0b\u3000c\u2028d") == "a b c\nd"
