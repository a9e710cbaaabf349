"""Writes a tool definition in the form that each provider's API takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, cast

from gripfast.framework.definition import Tool, ToolDefinition, Traits
from gripfast.framework.shape import Schema, reference_name

ProviderForm: TypeAlias = Literal["mcp", "openai", "openai-responses", "openai-strict", "anthropic", "gemini"]

# The keywords that OpenAI's strict mode accepts; the description mentions the others:
# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
_STRICT_KEYWORDS = frozenset(
    "type description enum anyOf $ref $defs items properties required additionalProperties".split()
)
_STRICT_WORDING = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "pattern": "matches {}",
    "format": "format {}",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "default": "default {}",
    "examples": "for example {}",
}
_STRICT_DROPPED = frozenset({"definitions", "additionalItems", "title", "$schema", "$id", "$comment", "deprecated"})
# The keywords that Gemini's function declarations accept; the others are left out:
# https://ai.google.dev/api/caching#Schema
_GEMINI_KEYWORDS = frozenset(
    "type format title description nullable enum items minItems maxItems properties required minimum maximum "
    "minLength maxLength pattern anyOf minProperties maxProperties".split()
)
_GEMINI_FORMATS = frozenset({"enum", "date-time", "int32", "int64", "float", "double"})
_AS_TEXT = "(a JSON {} as text)"


def definitions(tools: Iterable[Tool], form: ProviderForm) -> list[dict[str, Any]]:
    """The tool list, ready to pass to a provider's API."""
    if form not in PROVIDER_FORMS:
        raise ValueError(f"unknown form {form!r}; use one of {', '.join(PROVIDER_FORMS)}")
    return [PROVIDER_FORMS[form](tool) for tool in tools]


def mcp(tool: Tool) -> dict[str, Any]:
    traits, definition = tool.traits, tool.definition
    shown: dict[str, Any] = {"name": definition.name}
    if traits.title:
        shown["title"] = traits.title
    shown |= {"description": definition.description, "inputSchema": definition.parameters}
    if traits.output_schema is not None:
        shown["outputSchema"] = traits.output_schema
    if traits.effect is not None:
        shown["annotations"] = _hints(traits)
    return shown


def _hints(traits: Traits) -> dict[str, Any]:
    hints = {"readOnlyHint": traits.effect == "read", "openWorldHint": traits.open_world}
    if traits.effect != "read":
        hints |= {"destructiveHint": traits.destructive, "idempotentHint": traits.idempotent}
    return hints


def openai(tool: Tool) -> dict[str, Any]:
    """For the chat completions API."""
    return {"type": "function", "function": _plain(tool.definition)}


def openai_responses(tool: Tool) -> dict[str, Any]:
    return {"type": "function", **_plain(tool.definition), "strict": False}


def openai_strict(tool: Tool) -> dict[str, Any]:
    definition = tool.definition
    return {
        "type": "function",
        "function": {
            "name": definition.name,
            "description": definition.description,
            "parameters": _strict(definition.parameters),
            "strict": True,
        },
    }


def anthropic(tool: Tool) -> dict[str, Any]:
    definition = tool.definition
    return {"name": definition.name, "description": definition.description, "input_schema": definition.parameters}


def gemini(tool: Tool) -> dict[str, Any]:
    definition = tool.definition
    shown: dict[str, Any] = {"name": definition.name, "description": definition.description}
    if definition.parameters.get("properties"):
        shown["parameters"] = _gemini(definition.parameters)
    return shown


PROVIDER_FORMS: dict[str, Callable[[Tool], dict[str, Any]]] = {
    "mcp": mcp,
    "openai": openai,
    "openai-responses": openai_responses,
    "openai-strict": openai_strict,
    "anthropic": anthropic,
    "gemini": gemini,
}


def _plain(definition: ToolDefinition) -> dict[str, Any]:
    return {"name": definition.name, "description": definition.description, "parameters": definition.parameters}


def _strict(schema: Schema) -> dict[str, Any]:
    """A schema for strict mode: every property required, optional ones nullable, no others allowed."""
    out = _strict_node(schema)
    if schema.get("definitions"):
        out["$defs"] = {name: _strict_node(one) for name, one in schema["definitions"].items()}
    return out


def _strict_node(node: Schema) -> dict[str, Any]:
    node = _normalized(node)
    if "$ref" in node:
        return {"$ref": f"#/$defs/{reference_name(node)}"}
    if _is_free_form(node):
        return _strict_keywords({**_without_shape(node), "type": "string"}, _AS_TEXT.format("object"))
    if not node.keys() & {"type", "enum", "anyOf"}:
        types = ("string", "number", "boolean", "null")
        return _strict_keywords({**node, "anyOf": [{"type": kind} for kind in types]})
    out = _strict_keywords(node)
    if "anyOf" in out:
        out["anyOf"] = [_strict_node(one) for one in out["anyOf"]]
    if "array" in _type_list(node):
        out["items"] = _strict_node(_one_item(node))
    if "properties" in node or "object" in _type_list(node):
        out |= _strict_object(node)
    return out


def _strict_object(node: Schema) -> dict[str, Any]:
    members = {name: _strict_node(one) for name, one in node.get("properties", {}).items()}
    needed = node.get("required", ())
    return {
        "properties": {name: one if name in needed else _nullable(one) for name, one in members.items()},
        "required": list(members),
        "additionalProperties": False,
    }


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    if "enum" in node and None not in node["enum"]:
        node = {**node, "enum": [*node["enum"], None]}
    types = _type_list(node)
    if types:
        return node if "null" in types else {**node, "type": [*types, "null"]}
    if "anyOf" in node:
        options = cast("list[Any]", node["anyOf"])
        return node if {"type": "null"} in options else {**node, "anyOf": [*options, {"type": "null"}]}
    return {"anyOf": [node, {"type": "null"}]} if "$ref" in node else node


def _strict_keywords(node: Schema, note: str = "") -> dict[str, Any]:
    """The node with only the keywords that strict mode accepts; the others are added to the description in words."""
    out = {key: value for key, value in node.items() if key in _STRICT_KEYWORDS}
    limits = [_in_words(key, value) for key, value in node.items() if key not in _STRICT_KEYWORDS | _STRICT_DROPPED]
    original = cast("str", node.get("description", ""))
    if len(limits) == 1 and "default" in node and "default" in original.lower():
        limits = []
    in_brackets = f"({', '.join(limits)})" if limits else ""
    description = " ".join(text for text in (original, note, in_brackets) if text)
    return {**out, "description": description} if description else out


def _in_words(key: str, value: Any) -> str:
    if key == "examples":
        value = ", ".join(_json(one) for one in value)
    return _STRICT_WORDING.get(key, key + " {}").format(value if isinstance(value, str) else _json(value))


def _json(value: Any) -> str:
    from pydantic_core import to_json  # noqa: PLC0415 - loaded with the first tool that is built

    return to_json(value).decode()


def _gemini(node: Schema) -> dict[str, Any]:
    """A schema in Gemini's subset of OpenAPI: no references, no free-form objects, string enums, few keywords."""
    node = _normalized(node)
    if "$ref" in node or _is_free_form(node):
        description = f"{node.get('description', '')} {_AS_TEXT.format('object')}".strip()
        return {"type": "string", "description": description}
    types = [kind for kind in _type_list(node) if kind != "null"]
    if len(types) > 1 and "enum" not in node:
        beside = {key: value for key, value in node.items() if key != "type"}
        return _gemini({**beside, "anyOf": [{"type": kind} for kind in _type_list(node)]})
    out = {key: value for key, value in node.items() if key in _GEMINI_KEYWORDS}
    out |= {"type": types[0]} if types else {}
    if "null" in _type_list(node):
        out["nullable"] = True
    return _gemini_union(out) if "anyOf" in out else _gemini_plain(out, node)


def _gemini_union(out: dict[str, Any]) -> dict[str, Any]:
    options = cast("list[Schema]", out.pop("anyOf"))
    rest = [_gemini(option) for option in options if option != {"type": "null"}]
    if len(rest) < len(options):
        out["nullable"] = True
    return {**rest[0], **out} if len(rest) == 1 else {**out, "anyOf": rest}


def _gemini_plain(out: dict[str, Any], node: Schema) -> dict[str, Any]:
    out.setdefault("type", "string")
    if "enum" in node:
        members = [one for one in node["enum"] if one is not None]
        out |= {"type": "string", "enum": [one if isinstance(one, str) else _json(one) for one in members]}
    if out.get("format") not in _GEMINI_FORMATS:
        out.pop("format", None)
    if "properties" in out:
        out["properties"] = {name: _gemini(one) for name, one in out["properties"].items()}
    if out["type"] == "array":
        out["items"] = _gemini(_one_item(node))
    return out


# Shared by the strict and the Gemini form.


def _normalized(node: Schema) -> dict[str, Any]:
    """One spelling where JSON Schema has several: anyOf for oneOf, enum for const, a single schema for allOf."""
    out = dict(node)
    for part in out.pop("allOf", ()):
        out = {**_normalized(part), **out}
    if "oneOf" in out:
        out["anyOf"] = out.pop("oneOf")
    if "const" in out:
        out["enum"] = [out.pop("const")]
    return out


def _type_list(node: Schema) -> list[str]:
    types = node.get("type", [])
    return [types] if isinstance(types, str) else list(cast("list[str]", types))


def _is_free_form(node: Schema) -> bool:
    """Whether this is an object with arbitrary names; both providers accept only declared ones."""
    closed = "properties" in node or node.get("additionalProperties") is False
    return "object" in _type_list(node) and not closed


def _without_shape(node: Schema) -> Schema:
    return {key: value for key, value in node.items() if key not in ("additionalProperties", "patternProperties")}


def _one_item(node: Schema) -> Schema:
    """One schema for all items, even if each position of a tuple has its own."""
    items = node.get("items", {})
    if not isinstance(items, list):
        return cast("Schema", items)
    each = [one for place, one in enumerate(cast("list[Any]", items)) if one not in items[:place]]
    return each[0] if len(each) == 1 else {"anyOf": each}
