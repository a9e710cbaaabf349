"""One definition in the form each provider wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, cast

from pydantic_core import to_json

from holdfast.tool.definition import Tool, ToolDefinition, Traits
from holdfast.tool.shape import Schema, name_of

Form: TypeAlias = Literal["mcp", "openai", "openai-responses", "openai-strict", "anthropic", "gemini"]

# What OpenAI's strict mode takes; all else is said in the description instead.
_STRICT_TAKES = frozenset(
    "type description enum anyOf $ref $defs items properties required additionalProperties".split()
)
_STRICT_SAYS = {
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
_UNSAID = frozenset({"definitions", "additionalItems", "title", "$schema", "$id", "$comment", "deprecated"})
# What Gemini's function declarations take; all else is left out.
_GEMINI_TAKES = frozenset(
    "type format title description nullable enum items minItems maxItems properties required minimum maximum "
    "minLength maxLength pattern anyOf minProperties maxProperties".split()
)
_GEMINI_FORMATS = frozenset({"enum", "date-time", "int32", "int64", "float", "double"})
_AS_TEXT = "(a JSON {} as text)"


def definitions(tools: Iterable[Tool], form: Form) -> list[dict[str, Any]]:
    """The tool list to hand to a provider's API as it is."""
    if form not in FORMS:
        raise ValueError(f"unknown form {form!r}; use one of {', '.join(FORMS)}")
    return [FORMS[form](tool) for tool in tools]


def mcp(tool: Tool) -> dict[str, Any]:
    traits, it = tool.traits, tool.definition
    shown: dict[str, Any] = {"name": it.name}
    if traits.title:
        shown["title"] = traits.title
    shown |= {"description": it.description, "inputSchema": it.parameters}
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
    it = tool.definition
    return {
        "type": "function",
        "function": {
            "name": it.name,
            "description": it.description,
            "parameters": _strict(it.parameters),
            "strict": True,
        },
    }


def anthropic(tool: Tool) -> dict[str, Any]:
    it = tool.definition
    return {"name": it.name, "description": it.description, "input_schema": it.parameters}


def gemini(tool: Tool) -> dict[str, Any]:
    it = tool.definition
    shown: dict[str, Any] = {"name": it.name, "description": it.description}
    if it.parameters.get("properties"):
        shown["parameters"] = _gemini(it.parameters)
    return shown


FORMS: dict[str, Callable[[Tool], dict[str, Any]]] = {
    "mcp": mcp,
    "openai": openai,
    "openai-responses": openai_responses,
    "openai-strict": openai_strict,
    "anthropic": anthropic,
    "gemini": gemini,
}


def _plain(it: ToolDefinition) -> dict[str, Any]:
    return {"name": it.name, "description": it.description, "parameters": it.parameters}


def _strict(schema: Schema) -> dict[str, Any]:
    """Every property required, the optional ones nullable, nothing more allowed, in OpenAI's few keywords."""
    out = _strict_node(schema)
    if schema.get("definitions"):
        out["$defs"] = {name: _strict_node(one) for name, one in schema["definitions"].items()}
    return out


def _strict_node(node: Schema) -> dict[str, Any]:
    node = _settled(node)
    if "$ref" in node:
        return {"$ref": f"#/$defs/{name_of(node)}"}
    if _is_free(node):
        return _said({**_without_shape(node), "type": "string"}, _AS_TEXT.format("object"))
    if not node.keys() & {"type", "enum", "anyOf"}:
        kinds = ("string", "number", "boolean", "null")
        return _said({**node, "anyOf": [{"type": kind} for kind in kinds]})
    out = _said(node)
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
    kinds = _type_list(node)
    if kinds:
        return node if "null" in kinds else {**node, "type": [*kinds, "null"]}
    if "anyOf" in node:
        options = cast("list[Any]", node["anyOf"])
        return node if {"type": "null"} in options else {**node, "anyOf": [*options, {"type": "null"}]}
    return {"anyOf": [node, {"type": "null"}]} if "$ref" in node else node


def _said(node: Schema, note: str = "") -> dict[str, Any]:
    """Only the keywords that strict mode takes; the others told in the description."""
    out = {key: value for key, value in node.items() if key in _STRICT_TAKES}
    words = [_words(key, value) for key, value in node.items() if key not in _STRICT_TAKES | _UNSAID]
    said = cast("str", node.get("description", ""))
    if len(words) == 1 and "default" in node and "default" in said.lower():
        words = []
    notes = f"({', '.join(words)})" if words else ""
    description = " ".join(text for text in (said, note, notes) if text)
    return {**out, "description": description} if description else out


def _words(key: str, value: Any) -> str:
    if key == "examples":
        value = ", ".join(_json(one) for one in value)
    return _STRICT_SAYS.get(key, key + " {}").format(value if isinstance(value, str) else _json(value))


def _json(value: Any) -> str:
    return to_json(value).decode()


def _gemini(node: Schema) -> dict[str, Any]:
    """Gemini's subset of OpenAPI: no references, no free objects, no keyword beyond its list, enums of text."""
    node = _settled(node)
    if "$ref" in node or _is_free(node):
        said = f"{node.get('description', '')} {_AS_TEXT.format('object')}".strip()
        return {"type": "string", "description": said}
    kinds = [kind for kind in _type_list(node) if kind != "null"]
    if len(kinds) > 1 and "enum" not in node:
        beside = {key: value for key, value in node.items() if key != "type"}
        return _gemini({**beside, "anyOf": [{"type": kind} for kind in _type_list(node)]})
    out = {key: value for key, value in node.items() if key in _GEMINI_TAKES}
    out |= {"type": kinds[0]} if kinds else {}
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


# What both read the same way.


def _settled(node: Schema) -> dict[str, Any]:
    """One spelling where JSON Schema has several: anyOf for oneOf, enum for const, a single schema for allOf."""
    out = dict(node)
    for part in out.pop("allOf", ()):
        out = {**_settled(part), **out}
    if "oneOf" in out:
        out["anyOf"] = out.pop("oneOf")
    if "const" in out:
        out["enum"] = [out.pop("const")]
    return out


def _type_list(node: Schema) -> list[str]:
    kinds = node.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(cast("list[str]", kinds))


def _is_free(node: Schema) -> bool:
    """An object of any names: both providers only know objects with declared ones."""
    closed = "properties" in node or node.get("additionalProperties") is False
    return "object" in _type_list(node) and not closed


def _without_shape(node: Schema) -> Schema:
    return {key: value for key, value in node.items() if key not in ("additionalProperties", "patternProperties")}


def _one_item(node: Schema) -> Schema:
    """One schema for all items, also where each place of a tuple has its own."""
    items = node.get("items", {})
    if not isinstance(items, list):
        return cast("Schema", items)
    each = [one for place, one in enumerate(cast("list[Any]", items)) if one not in items[:place]]
    return each[0] if len(each) == 1 else {"anyOf": each}
