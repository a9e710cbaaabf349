"""One definition in the form each provider wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, cast

from holdfast.tool.definition import Tool, ToolDefinition

Form: TypeAlias = Literal["mcp", "openai", "openai-responses", "openai-strict", "anthropic", "gemini"]

# What OpenAI's strict mode does not take; it is said in the description instead.
_STRICT_DROPS = frozenset(
    "minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems "
    "maxItems uniqueItems contains minProperties maxProperties patternProperties propertyNames default examples "
    "additionalItems".split()
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
    "uniqueItems": "no item twice",
    "default": "default {}",
}
# What Gemini's function declarations take; all else is left out.
_GEMINI_TAKES = frozenset(
    "type format title description nullable enum items minItems maxItems properties required minimum maximum "
    "minLength maxLength pattern anyOf minProperties maxProperties".split()
)
_GEMINI_FORMATS = frozenset({"enum", "date-time", "int32", "int64", "float", "double"})


def definitions(tools: Iterable[Tool], form: Form) -> list[dict[str, Any]]:
    """The tool list to hand to a provider's API as it is."""
    if form not in FORMS:
        raise ValueError(f"unknown form {form!r}; use one of {', '.join(FORMS)}")
    return [FORMS[form](tool) for tool in tools]


def mcp(tool: Tool) -> dict[str, Any]:
    traits, it = tool.traits, tool.definition
    read_only = traits.effect == "read"
    shown: dict[str, Any] = {"name": it.name}
    if traits.title:
        shown["title"] = traits.title
    shown |= {"description": it.description, "inputSchema": it.parameters}
    if traits.output_schema is not None:
        shown["outputSchema"] = traits.output_schema
    annotations: dict[str, Any] = {"readOnlyHint": read_only, "openWorldHint": traits.open_world}
    if not read_only:
        annotations |= {"destructiveHint": traits.destructive, "idempotentHint": traits.idempotent}
    if traits.effect is not None:
        shown["annotations"] = annotations
    return shown


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


def _strict(node: Any) -> Any:
    """Every property required, the optional ones nullable, nothing more allowed."""
    if isinstance(node, list):
        return [_strict(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    node = _said(cast("dict[str, Any]", node))
    out = {key: value if key in ("enum", "const") else _strict_value(key, value) for key, value in node.items()}
    if node.get("type") == "object" or "properties" in node:
        names = list(cast("dict[str, Any]", out.setdefault("properties", {})))
        required = set(cast("list[str]", node.get("required", [])))
        out["properties"] = {
            name: out["properties"][name] if name in required else _nullable(out["properties"][name])
            for name in names
        }
        out["required"] = names
        out["additionalProperties"] = False
    return out


def _strict_value(key: str, value: Any) -> Any:
    if key in ("properties", "definitions") and isinstance(value, dict):
        return {name: _strict(one) for name, one in cast("dict[str, Any]", value).items()}
    return value if key in ("required", "description") else _strict(value)


def _said(node: dict[str, Any]) -> dict[str, Any]:
    """Keywords that strict mode rejects, told in the description."""
    words = [_STRICT_SAYS[key].format(node[key]) for key in _STRICT_SAYS if node.get(key) not in (None, False)]
    out = {key: value for key, value in node.items() if key not in _STRICT_DROPS}
    if words and ("type" in node or "anyOf" in node or "$ref" in node or "enum" in node):
        note = f"({', '.join(words)})"
        said = cast("str", node.get("description", ""))
        out["description"] = f"{said} {note}".strip() if not _tells_default(said, words) else said
    return out


def _tells_default(said: str, words: list[str]) -> bool:
    return len(words) == 1 and words[0].startswith("default ") and "default" in said.lower()


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    kind = node.get("type")
    if "enum" in node and None not in node["enum"]:
        node = {**node, "enum": [*node["enum"], None]}
    if isinstance(kind, str):
        return {**node, "type": [kind, "null"]}
    if isinstance(kind, list):
        kinds = cast("list[str]", kind)
        return node if "null" in kinds else {**node, "type": [*kinds, "null"]}
    if "anyOf" in node:
        branches = cast("list[Any]", node["anyOf"])
        return node if {"type": "null"} in branches else {**node, "anyOf": [*branches, {"type": "null"}]}
    if "$ref" in node:
        return {"anyOf": [node, {"type": "null"}]}
    return node


def _gemini(node: dict[str, Any]) -> dict[str, Any]:
    """Gemini's subset of OpenAPI: no unions of types, no references, no keyword beyond its list."""
    out = {key: value for key, value in node.items() if key in _GEMINI_TAKES}
    kinds = node.get("type")
    if isinstance(kinds, list):
        named = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        out |= {"type": named[0] if named else "string", "nullable": "null" in kinds}
    if "const" in node:
        out["enum"] = [node["const"]]
    if "enum" in out:
        out |= {"type": "string", "enum": [str(one) for one in out["enum"] if one is not None]}
    if out.get("format") not in _GEMINI_FORMATS:
        out.pop("format", None)
    if "properties" in out:
        members = cast("dict[str, Any]", out["properties"])
        out["properties"] = {name: _gemini(one) for name, one in members.items()}
    if isinstance(out.get("items"), list):
        out["items"] = {"anyOf": [_gemini(one) for one in cast("list[Any]", out["items"])]}
    elif isinstance(out.get("items"), dict):
        out["items"] = _gemini(cast("dict[str, Any]", out["items"]))
    if "anyOf" in out:
        branches = cast("list[dict[str, Any]]", out["anyOf"])
        out["anyOf"] = [_gemini(one) for one in branches if one != {"type": "null"}]
        if len(out["anyOf"]) < len(branches):
            out["nullable"] = True
    return out or {"type": "string"}
