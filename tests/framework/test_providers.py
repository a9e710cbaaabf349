"""One definition in every provider's form, checked against the providers' own types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from anthropic.types import ToolParam
from google.genai import types as google
from mcp_types import Tool as McpTool
from openai.types.chat import ChatCompletionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from framework.samples import TOOLS, by_hand, nested, nothing, odd, opened, plain, recursive
from gripfast.builtin.tools import TOOLS as BUILTIN
from gripfast.call.run import Session
from gripfast.framework.definition import Tool, tool
from gripfast.framework.providers import PROVIDER_FORMS, ProviderForm
from gripfast.framework.shape import nodes

each_tool = pytest.mark.parametrize("one", [*TOOLS, *BUILTIN], ids=lambda one: one.name)


def form_of(one: Tool, form: ProviderForm) -> dict[str, Any]:
    (shown,) = Session([one]).definitions(form)
    assert json.loads(json.dumps(shown)) == shown
    return shown


def test_a_session_gives_every_form_and_names_them_when_asked_for_another() -> None:
    session = Session(TOOLS)
    for form in ("mcp", "openai", "openai-responses", "openai-strict", "anthropic", "gemini"):
        assert len(session.definitions(form)) == len(TOOLS)
    with pytest.raises(ValueError, match="unknown form 'cohere'; use one of mcp, openai"):
        session.definitions("cohere")  # type: ignore[arg-type]
    assert session.definitions() == session.definitions("mcp")


@each_tool
def test_a_form_does_not_change_the_definition(one: Tool) -> None:
    before = json.dumps(one.definition.parameters)
    for form in PROVIDER_FORMS.values():
        form(one)
    assert json.dumps(one.definition.parameters) == before


@each_tool
def test_openai_chat_takes_it(one: Tool) -> None:
    shown = form_of(one, "openai")
    TypeAdapter(ChatCompletionToolParam).validate_python(shown, strict=True, extra="forbid")
    assert shown["function"]["parameters"] == one.definition.parameters


@each_tool
def test_openai_responses_takes_it(one: Tool) -> None:
    shown = form_of(one, "openai-responses")
    TypeAdapter(FunctionToolParam).validate_python(shown, strict=True, extra="forbid")
    assert (shown["name"], shown["strict"]) == (one.name, False)


@each_tool
def test_anthropic_takes_it(one: Tool) -> None:
    shown = form_of(one, "anthropic")
    TypeAdapter(ToolParam).validate_python(shown, strict=True, extra="forbid")
    assert shown["input_schema"]["type"] == "object"
    for node in nodes(shown["input_schema"]):
        assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in node.get("properties", {}))


@each_tool
def test_mcp_takes_it(one: Tool) -> None:
    shown = McpTool.model_validate(form_of(one, "mcp"), extra="forbid")
    assert (shown.name, shown.input_schema) == (one.name, one.definition.parameters)


def test_mcp_is_told_what_a_tool_declares() -> None:
    assert form_of(by_hand, "mcp")["title"] == "By hand"
    assert form_of(by_hand, "mcp")["annotations"] == {
        "readOnlyHint": False,
        "openWorldHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
    }
    assert "annotations" not in form_of(plain, "mcp")

    @tool(effect="read", open_world=True, output_schema=True)
    def looks(a: int) -> dict[str, int]:
        """Looks."""
        return {}

    shown = form_of(looks, "mcp")
    assert shown["annotations"] == {"readOnlyHint": True, "openWorldHint": True}
    assert shown["outputSchema"] == {"type": "object", "additionalProperties": {"type": "integer"}}


# OpenAI's strict mode, by its documentation: these keywords, these rules, all the way down.
STRICT_KEYWORDS = set("type description enum anyOf $ref $defs items properties required additionalProperties".split())
STRICT_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}


def strict_faults(schema: Any, root: Any = None, place: str = "#") -> Iterator[str]:
    root = root or schema
    if schema is root and schema.get("type") != "object":
        yield "the root is not an object"
    if extra := set(schema) - STRICT_KEYWORDS:
        yield f"{place}: keywords {extra}"
    if "$ref" in schema:
        if set(schema) != {"$ref"} or schema["$ref"].removeprefix("#/$defs/") not in root.get("$defs", {}):
            yield f"{place}: {schema}"
        return
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if not set(kinds) <= STRICT_TYPES or not (kinds or "anyOf" in schema or "enum" in schema):
        yield f"{place}: type {schema.get('type')}"
    if "object" in kinds or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            yield f"{place}: open"
        if schema.get("required") != list(schema.get("properties", {})):
            yield f"{place}: not every property is required"
    if "array" in kinds and not isinstance(schema.get("items"), dict):
        yield f"{place}: items"
    members: dict[str, Any] = {**schema.get("properties", {}), **schema.get("$defs", {})}
    members |= {str(n): one for n, one in enumerate(schema.get("anyOf", []))}
    members |= {"items": schema["items"]} if "items" in schema else {}
    for name, one in members.items():
        yield from strict_faults(one, root, f"{place}/{name}")


@each_tool
def test_openai_strict_takes_it(one: Tool) -> None:
    shown = form_of(one, "openai-strict")
    TypeAdapter(ChatCompletionToolParam).validate_python(shown, strict=True, extra="forbid")
    assert shown["function"]["strict"] is True
    assert list(strict_faults(shown["function"]["parameters"])) == []


def test_the_checker_of_strict_schemas_finds_faults() -> None:
    assert list(strict_faults(plain.definition.parameters))
    assert list(strict_faults({"type": "object", "properties": {"a": {}}, "required": ["a"]}))
    assert list(strict_faults({"type": "object", "properties": {}, "required": [], "additionalProperties": True}))


def strict_properties(one: Tool) -> dict[str, Any]:
    return form_of(one, "openai-strict")["function"]["parameters"]["properties"]


def test_strict_makes_optional_arguments_nullable_and_says_what_it_can_not_hold() -> None:
    shown = strict_properties(plain)
    assert shown["text"] == {"type": "string"}
    assert shown["n"] == {
        "type": ["integer", "null"],
        "description": "How many. (default 0, less than 10, at least 0)",
    }
    assert shown["ratio"]["description"] == "(default 0.5, more than 0, a multiple of 0.5)"
    assert shown["on"] == {"type": ["boolean", "null"], "description": "(default false)"}
    assert shown["maybe"] == {"type": ["string", "null"]}
    assert shown["must"] == {"type": ["integer", "null"]}
    assert strict_properties(odd)["code"]["description"] == '(default a, for example "abc", matches ^[a-z]+$)'


def test_strict_asks_for_free_objects_as_json_text() -> None:
    assert strict_properties(odd)["free"] == {"type": "string", "description": "(a JSON object as text)"}
    assert strict_properties(odd)["counts"]["type"] == ["string", "null"]


def test_strict_has_enums_with_null_and_references_that_may_be_null() -> None:
    assert strict_properties(odd)["only"]["enum"] == ["this", None]
    assert strict_properties(recursive)["other"] == {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
    assert {"type": "null"} in strict_properties(nested)["pet"]["anyOf"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("one", "sent"),
    [
        (nothing, {}),
        (plain, {"text": "a", "n": None, "ratio": None, "on": None, "maybe": None, "seven": None, "must": None}),
        (
            nested,
            {
                "items": [{"content": "a", "title": None, "level": None, "at": {"x": 1, "y": None}}],
                "item": {"content": "a", "title": None, "level": 2, "at": None},
                "same": None,
                "either": None,
                "pet": {"kind": "dog", "barks": None},
            },
        ),
        (
            odd,
            {
                "anything": 5,
                "free": '{"a": [1, {"b": null}]}',
                "counts": '{"a": 1}',
                "pair": [2, "b"],
                "maybe_pair": [1, 2],
                **dict.fromkeys(["unique", "untyped", "when", "day", "path", "id", "price", "pick", "only", "code"]),
                "raw": None,
            },
        ),
        (recursive, {"root": {"name": "a", "children": None, "parent": None}, "other": None}),
        (by_hand, {"a": None, "b": "bb", "c": None, "d": None}),
        (opened, {"a": None}),
    ],
    ids=lambda value: value.name if isinstance(value, Tool) else "",
)
async def test_what_a_strict_model_sends_fits_its_schema_and_is_taken(one: Tool, sent: dict[str, Any]) -> None:
    schema = form_of(one, "openai-strict")["function"]["parameters"]
    jsonschema.Draft7Validator(schema).validate(sent)  # type: ignore[reportUnknownMemberType]
    message = await Session([one]).call(one.name, json.dumps(sent))
    assert not message.is_error, message.content


@each_tool
def test_gemini_takes_it(one: Tool) -> None:
    shown = form_of(one, "gemini")
    google.FunctionDeclaration.model_validate(shown, extra="forbid")
    assert ("parameters" in shown) == bool(one.definition.parameters["properties"])


# Gemini's API: no reference, no empty object, items on every array, enums of text.
def gemini_faults(schema: Any, place: str = "#") -> Iterator[str]:
    if not ("type" in schema or "anyOf" in schema):
        yield f"{place}: no type"
    if schema.get("type") == "object" and not schema.get("properties"):
        yield f"{place}: empty object"
    if schema.get("type") == "array" and not schema.get("items"):
        yield f"{place}: no items"
    if "enum" in schema and (schema["type"] != "string" or not all(isinstance(one, str) for one in schema["enum"])):
        yield f"{place}: enum {schema['enum']}"
    if not set(schema.get("required", ())) <= set(schema.get("properties", {})):
        yield f"{place}: required"
    if not isinstance(schema.get("type", ""), str) or schema.get("type") == "null":
        yield f"{place}: type {schema['type']}"
    members: dict[str, Any] = {**schema.get("properties", {})}
    members |= {str(n): one for n, one in enumerate(schema.get("anyOf", []))}
    members |= {"items": schema["items"]} if "items" in schema else {}
    for name, one in members.items():
        yield from gemini_faults(one, f"{place}/{name}")


@each_tool
def test_gemini_gets_nothing_that_it_rejects(one: Tool) -> None:
    if one is not nothing:
        assert list(gemini_faults(form_of(one, "gemini")["parameters"])) == []


def test_gemini_is_told_what_may_be_null_and_gets_enums_as_text() -> None:
    shown = form_of(odd, "gemini")["parameters"]["properties"]
    assert shown["pick"] == {"type": "string", "enum": ["1", "two", "true"]}
    assert shown["day"] == {"type": "string"}
    assert shown["when"] == {"type": "string", "format": "date-time"}
    assert form_of(plain, "gemini")["parameters"]["properties"]["seven"] == {"type": "integer", "nullable": True}
    assert form_of(recursive, "gemini")["parameters"]["properties"]["root"] == {
        "type": "string",
        "description": "(a JSON object as text)",
    }


@pytest.mark.anyio
async def test_what_gemini_sends_in_place_of_what_it_can_not_hold_is_taken() -> None:
    session = Session([odd, recursive])
    sent: dict[str, Any] = {"anything": "a", "free": '{"a": 1}', "pick": "true"}
    assert not (await session.call("odd", sent)).is_error
    tree = '{"name": "a", "children": [{"name": "b"}]}'
    assert (await session.call("recursive", {"root": tree})).content == "a"
