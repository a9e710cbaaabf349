"""Results: text, parts, or JSON that keeps its order and its letters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_serializer

from gripfast.errors import valid_unicode
from gripfast.framework.render import NotJson, render
from gripfast.messages import DocumentPart, ImagePart, JsonResult, OutputRef, PartsResult, TextPart, TextResult


class Color(StrEnum):
    red = "red"


class Old(str, Enum):  # noqa: UP042 - the older kind is what this is about
    a = "b"


class Model(BaseModel):
    zebra: int = 1
    apple: str = "ä"
    renamed: int = Field(default=2, serialization_alias="as")


@dataclass
class Point:
    y: int
    x: int


def json_of(value: Any) -> str:
    result = render(value)
    assert isinstance(result, JsonResult)
    assert result.value is value
    return result.text


def test_text_is_text() -> None:
    assert render("grüße") == TextResult("grüße")
    assert render("") == TextResult("")
    for word in (Color.red, Old.a):
        result = render(word)
        assert isinstance(result, TextResult)
        assert (type(result.text), result.text) == (str, word.value)


def test_parts_are_parts() -> None:
    text, image = TextPart("a"), ImagePart(b"\x89PNG", "image/png")
    document = DocumentPart(b"%PDF", "application/pdf", "a.pdf")
    assert render([text, image, document]) == PartsResult((text, image, document))
    assert render((text,)) == PartsResult((text,))
    assert render(image) == PartsResult((image,))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ([], "[]"),
        ({}, "{}"),
        ({"zebra": 1, "apple": [1, 2]}, '{"zebra":1,"apple":[1,2]}'),
        ({"ключ": "значение", "絵": "🙂"}, '{"ключ":"значение","絵":"🙂"}'),
        (datetime(2024, 2, 29, 12, tzinfo=UTC), '"2024-02-29T12:00:00Z"'),
        (date(2024, 2, 29), '"2024-02-29"'),
        (Path("/a/b"), '"/a/b"'),
        (UUID(int=0), '"00000000-0000-0000-0000-000000000000"'),
        (Model(), '{"zebra":1,"apple":"ä","as":2}'),
        ([Model()], '[{"zebra":1,"apple":"ä","as":2}]'),
        (Point(1, 2), '{"y":1,"x":2}'),
        ({"color": Color.red, "many": (1, 2)}, '{"color":"red","many":[1,2]}'),
        ({1: "a", date(2024, 1, 1): "b"}, '{"1":"a","2024-01-01":"b"}'),
        ([float("nan"), float("inf")], "[null,null]"),
        (10**30, str(10**30)),
    ],
    ids=str,
)
def test_anything_else_is_compact_json_in_its_own_order(value: Any, text: str) -> None:
    assert json_of(value) == text
    json.loads(text)


class Awkward(BaseModel):
    a: int = 1

    @field_serializer("a")
    def fail(self, _: int) -> int:
        raise FileNotFoundError("/home/somebody/secret")


def looped() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def deep() -> Any:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [object(), {"a": object()}, b"\xff", looped(), deep(), Awkward(), {"a": "\ud800"}, [TextPart("a"), 1, b"\xff"]],
    ids=lambda value: type(value).__name__,
)
def test_what_json_can_not_hold_is_an_error_that_names_only_the_type(value: Any) -> None:
    with pytest.raises(NotJson) as caught:
        render(value)
    assert str(caught.value) == type(value).__name__


def test_results_made_by_a_tool_pass_as_they_are() -> None:
    ref = OutputRef("r", 1, 1)
    for made in (TextResult("a", ref), JsonResult({}, "{}"), PartsResult((TextPart("a"),))):
        assert render(made) == made


def test_half_surrogates_in_text_become_the_replacement_character() -> None:
    assert render("a\ud800b") == TextResult("a\ufffdb")
    assert render(TextResult("\udcff")) == TextResult("\ufffd")
    assert render([TextPart("\udcff")]) == PartsResult((TextPart("\ufffd"),))
    assert valid_unicode("\ud83d\ude42") == "🙂"


@settings(deadline=None)
@given(st.text(st.characters(codec=None)))
def test_valid_unicode_can_be_encoded_and_keeps_what_could(text: str) -> None:
    spoken = valid_unicode(text)
    assert spoken.encode().decode() == spoken
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert spoken == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(), json_values) | st.lists(json_values))
def test_json_data_comes_back_as_it_was(value: Any) -> None:
    text = json_of(value)
    assert json.loads(text) == value
    if isinstance(value, dict):
        assert list(json.loads(text)) == list(cast("dict[str, Any]", value))


def test_a_json_result_of_ones_own_is_serialized_as_json() -> None:
    assert render(JsonResult(value={"a": [1, "é"]})) == JsonResult({"a": [1, "é"]}, '{"a":[1,"é"]}')
    assert render(JsonResult("abc")) == JsonResult("abc", '"abc"')
    assert render(JsonResult(None)) == JsonResult(None, "null")
