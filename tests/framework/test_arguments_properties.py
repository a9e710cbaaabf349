"""Rules of arguments that hold for every tool and every input."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import create_model

from framework.samples import TOOLS
from gripfast.errors import InvalidArgument
from gripfast.framework.arguments import Arguments
from gripfast.framework.definition import Tool
from gripfast.framework.schema import input_schema

NAMES = st.sampled_from(["a", "b", "path", "n", "json"])
TEXTS = st.text(max_size=8)
KEYS = st.text("abé1 _", max_size=4)  # pydantic's own schemas fail on a default with the key `$defs`
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FINITE | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | TEXTS, inner, max_size=3),
    max_leaves=8,
)

# A type, and JSON values of exactly that type.
Typed = tuple[Any, st.SearchStrategy[Any]]
SCALARS: list[Typed] = [(int, st.integers()), (float, FINITE), (bool, st.booleans()), (str, TEXTS)]


def larger(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return inner.map(lambda it: (list[it[0]], st.lists(it[1], max_size=3))) | inner.map(
        lambda it: (dict[str, it[0]], st.dictionaries(KEYS, it[1], max_size=3))
    )


Made = tuple[Arguments, dict[str, Any]]
# Each example builds a model.
made_slowly = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def calls(draw: st.DrawFn, *, nullable: bool = True) -> Made:
    """The arguments of a tool with some typed parameters, and an exactly typed call of it."""
    fields: dict[str, Any] = {}
    sent: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(["a", "b", "c", "d"]), unique=True)):
        kind, values = draw(st.recursive(st.sampled_from(SCALARS), larger, max_leaves=3))
        default = draw(values)
        choice = draw(st.sampled_from(["required", "default", "nullable"] if nullable else ["required", "default"]))
        fields[name] = (
            (kind | None, None) if choice == "nullable" else (kind, ... if choice == "required" else default)
        )
        if choice == "required" or draw(st.booleans()):
            sent[name] = draw(values)
    model = create_model("Made", **fields)
    return Arguments(model, input_schema(model)), sent


@made_slowly
@given(calls())
def test_an_exactly_typed_call_gives_exactly_what_was_sent(made: Made) -> None:
    arguments, sent = made
    read = arguments.parse(json.dumps(sent)).model_dump()
    assert {name: read[name] for name in sent} == sent
    assert arguments.parse(sent).model_dump() == read


@made_slowly
@given(calls(), st.data())
def test_arrays_and_objects_may_come_as_json_text(made: Made, data: st.DataObject) -> None:
    arguments, sent = made
    wrapped: dict[str, Any] = {
        name: json.dumps(value) if isinstance(value, (list, dict)) and data.draw(st.booleans()) else value
        for name, value in sent.items()
    }
    assert arguments.parse(wrapped) == arguments.parse(sent)


@made_slowly
@given(calls())
def test_numbers_and_booleans_may_come_as_text(made: Made) -> None:
    arguments, sent = made
    spoken = {name: json.dumps(value) if isinstance(value, (int, float)) else value for name, value in sent.items()}
    assert arguments.parse(spoken) == arguments.parse(sent)


@made_slowly
@given(calls())
def test_null_is_the_same_as_not_given_where_it_may_be_left_out(made: Made) -> None:
    arguments, sent = made
    optional = [name for name, field in arguments.model.model_fields.items() if not field.is_required()]
    assert arguments.parse(sent | {name: None for name in optional if name not in sent}) == arguments.parse(sent)


@made_slowly
@given(calls(nullable=False), JSON)
def test_a_value_of_another_kind_is_refused_or_means_the_same(made: Made, odd: Any) -> None:
    arguments, sent = made
    for name in sent:
        try:
            read = getattr(arguments.parse({**sent, name: odd}), name)
        except InvalidArgument:
            continue
        assert not isinstance(odd, bool) or isinstance(read, bool)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TOOLS), st.dictionaries(NAMES | TEXTS, JSON, max_size=4) | JSON)
def test_any_json_is_read_or_refused_shortly(one: Tool, anything: Any) -> None:
    for raw in (json.dumps(anything), json.dumps(dict.fromkeys(one.definition.parameters["properties"], anything))):
        try:
            one.arguments.parse(raw)
        except InvalidArgument as refused:
            assert len(refused.message) < 5000
            refused.message.encode()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(TOOLS), st.text() | st.binary())
def test_any_text_is_read_or_refused_shortly(one: Tool, raw: str | bytes) -> None:
    try:
        one.arguments.parse(raw)
    except InvalidArgument as refused:
        assert len(refused.message) < 5000
