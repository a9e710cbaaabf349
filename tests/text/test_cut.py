"""Cutting encoded text between characters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gripfast.text.cut import character_start, unfinished, whole_characters


@given(st.text(max_size=30), st.data())
def test_text_cut_anywhere_is_whole_characters(text: str, data: st.DataObject) -> None:
    encoded = text.encode()
    at = data.draw(st.integers(0, len(encoded)))
    start = character_start(encoded, at)
    assert start <= at < start + 4 and text.startswith(encoded[:start].decode())
    head = encoded[:at]
    assert head[: len(head) - unfinished(head)] == encoded[:start] == whole_characters(head, None)


@given(st.binary(max_size=30), st.integers(0, 30))
def test_bytes_that_are_not_text_are_cut_where_they_are(data: bytes, position: int) -> None:
    at = min(position, len(data))
    assert at - 3 <= character_start(data, at) <= at
    assert 0 <= unfinished(data) <= 3
    assert whole_characters(data, "latin-1") in (data, data[: len(data) - unfinished(data)])


def test_a_text_in_another_encoding_is_cut_between_its_characters() -> None:
    assert whole_characters("日本".encode("shift_jis")[:3], "shift_jis") == "日".encode("shift_jis")
