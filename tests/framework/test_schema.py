"""Schemas: draft-07, nothing by reference where it can be written out, no noise."""

from __future__ import annotations

from typing import Any, cast

import jsonschema
import pytest

from framework.samples import TOOLS, nested, odd, opened, plain, recursive, self_named
from gripfast.builtin.tools import TOOLS as BUILTIN
from gripfast.framework.definition import Tool
from gripfast.framework.shape import nodes

each_tool = pytest.mark.parametrize("one", [*TOOLS, *BUILTIN], ids=lambda one: one.name)


def accepts(schema: Any, value: Any) -> bool:
    return not list(cast("Any", jsonschema.Draft7Validator(schema)).iter_errors(value))


def keywords(schema: Any) -> set[str]:
    return {key for node in nodes(schema) for key in node}


@each_tool
def test_every_schema_is_valid_draft_07(one: Tool) -> None:
    jsonschema.Draft7Validator.check_schema(one.definition.parameters)
    assert one.definition.parameters["type"] == "object"


@each_tool
def test_no_titles_no_later_keywords_and_no_dangling_references(one: Tool) -> None:
    schema = one.definition.parameters
    assert not keywords(schema) & {"title", "$defs", "discriminator", "prefixItems", "dependentRequired"}
    for node in nodes(schema):
        if "$ref" in node:
            assert node["$ref"].removeprefix("#/definitions/") in schema["definitions"]


@pytest.mark.parametrize("one", [plain, nested, odd], ids=lambda one: one.name)
def test_simple_models_have_no_references(one: Tool) -> None:
    assert not keywords(one.definition.parameters) & {"$ref", "definitions"}


def test_a_property_may_be_called_title() -> None:
    item = nested.definition.parameters["properties"]["item"]
    assert item["properties"]["title"] == {"type": "string", "default": "untitled", "maxLength": 9}


def test_every_object_refuses_unknown_names() -> None:
    for one in (plain, nested, odd, recursive, self_named):
        for node in nodes(one.definition.parameters):
            if "properties" in node:
                assert node["additionalProperties"] is False
    assert opened.definition.parameters["additionalProperties"] is True


def test_an_optional_argument_is_spelled_shortly() -> None:
    properties = plain.definition.parameters["properties"]
    assert properties["maybe"] == {"type": "string"}
    assert properties["seven"] == {"type": ["integer", "null"], "default": 7}
    assert properties["must"] == {"type": ["integer", "null"]}
    assert plain.definition.parameters["required"] == ["text", "must"]


def test_injected_parameters_are_not_in_the_schema() -> None:
    assert list(plain.definition.parameters["properties"]) == ["text", "n", "ratio", "on", "maybe", "seven", "must"]


def test_what_it_is_and_means_stands_first_and_what_is_ruled_out_last() -> None:
    item = nested.definition.parameters["properties"]["item"]
    assert list(item) == ["type", "description", "properties", "required", "additionalProperties"]


def test_the_words_beside_a_reference_win() -> None:
    node = recursive.definition.parameters["definitions"]["Node"]
    assert node["properties"]["parent"] == {"$ref": "#/definitions/Node", "description": "The one above."}
    assert nested.definition.parameters["properties"]["pet"]["description"] == "A pet."


def test_a_recursive_model_stays_by_reference_and_still_validates() -> None:
    schema = recursive.definition.parameters
    tree = {"root": {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}}
    assert accepts(schema, tree)
    tree["root"]["children"][0]["children"][0]["name"] = 5  # type: ignore[index]
    assert not accepts(schema, tree)


def test_a_model_that_names_itself_still_has_its_shape_at_the_top() -> None:
    schema = self_named.definition.parameters
    assert list(schema["properties"]) == ["name", "children", "parent"]
    assert accepts(schema, {"name": "a", "children": [{"name": "b"}]})
    assert not accepts(schema, {"name": "a", "children": [{"nam": "b"}]})


def test_a_tuple_is_written_as_draft_07_knows_it() -> None:
    pair = odd.definition.parameters["properties"]["pair"]
    assert pair["items"] == [{"type": "integer"}, {"type": "string"}]
    assert accepts(pair, [1, "a"])
    assert not accepts(pair, ["a", 1])
    assert not accepts(pair, [1, "a", 2])
