"""WorkPath and how names are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from gripfast.errors import InvalidArgument
from gripfast.host.files.paths import WorkPath
from gripfast.text.below import after, is_below
from gripfast.text.escape import escaped


class Arguments(BaseModel):
    path: WorkPath


@pytest.mark.parametrize(
    ("text", "word"),
    [("", "empty"), ("a\0b", "NUL"), ("a\ud800", "surrogate"), ("a/" * 3000, "6000 bytes"), ("x" * 256, "256 bytes")],
)
def test_a_path_that_can_not_be_one_is_refused_with_the_reason(text: str, word: str) -> None:
    with pytest.raises(InvalidArgument, match=word):
        WorkPath.parse(text)
    with pytest.raises(ValidationError):
        Arguments.model_validate({"path": text})


@pytest.mark.parametrize("text", ["a", "..foo", "x" * 255, "é" * 127, "a\nb", " ", "/", "~"])
def test_any_other_text_is_a_path(text: str) -> None:
    assert WorkPath.parse(text).text == text
    assert Arguments.model_validate({"path": text}).path == WorkPath(text)


def test_names_are_measured_in_bytes() -> None:
    with pytest.raises(InvalidArgument, match="256 bytes"):
        WorkPath.parse("é" * 128)


def test_in_a_schema_it_is_a_string() -> None:
    assert TypeAdapter(WorkPath).json_schema() == {"type": "string"}
    assert Arguments(path=WorkPath("a")).model_dump_json() == '{"path":"a"}'


def test_a_number_is_no_path() -> None:
    with pytest.raises(ValidationError):
        Arguments.model_validate({"path": 3})


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", "a\\nb"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\udcffb", "a\\xffb"),
        ("a\u2028b", "a\\u2028b"),
        ("日本 é.txt", "日本 é.txt"),
    ],
)
def test_odd_characters_in_a_name_are_written_out(name: str, shown: str) -> None:
    assert escaped(name) == shown


@given(st.text(st.characters(exclude_categories=[]), max_size=40))
def test_a_shown_name_is_always_one_printable_line(name: str) -> None:
    shown = escaped(name)
    assert len(shown.splitlines()) <= 1
    assert "\x1b" not in shown
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("path", "base", "rest"),
    [
        ("/a", "/a", ""),
        ("/a/b", "/a", "b"),
        ("/ab", "/a", None),
        ("/", "/", ""),
        ("/a", "/", "a"),
        ("/a", "/a/b", None),
    ],
)
def test_what_lies_below_a_directory(path: str, base: str, rest: str | None) -> None:
    assert after(base, path) == rest
    assert is_below(path, base) == (rest is not None)
    assert is_below(path, "/elsewhere", base) == (rest is not None)
    assert not is_below(path)
