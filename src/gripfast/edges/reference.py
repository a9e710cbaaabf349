"""The tool reference, generated from the definitions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from gripfast.edges.profiles import price_of
from gripfast.framework.definition import Tool

_HEAD = """\
# Tools

Generated from the definitions by `scripts/docs`; a test fails when it is out of date. A model reads exactly this.
"""
_EFFECTS = {"read": "only reads", "write": "writes files", "run": "runs commands", None: "declares no effect"}


def markdown(tools: Iterable[Tool]) -> str:
    return "\n".join([_HEAD, *(_section(tool) for tool in tools)])


def _section(tool: Tool) -> str:
    traits = [_EFFECTS[tool.traits.effect], f"about {price_of(tool)} tokens"]
    if tool.traits.output_schema is not None:
        traits.append("answers with JSON")
    lines = [f"## {tool.name}", "", tool.description, "", f"*{', '.join(traits)}*", ""]
    properties: dict[str, Any] = tool.definition.parameters.get("properties", {})
    if properties:
        required = tool.definition.parameters.get("required", [])
        lines += ["| argument | type | default | |", "|---|---|---|---|"]
        lines += [_row(name, schema, name in required) for name, schema in properties.items()]
        lines.append("")
    return "\n".join(lines)


def usage_of(tool: Tool) -> str:
    """A tool for a person at a terminal: what it does, its arguments, and an example of a call."""
    required = tool.definition.parameters.get("required", [])
    properties: dict[str, Any] = tool.definition.parameters.get("properties", {})
    rows = [tool.name, f"  {tool.description}", ""]
    for name, schema in properties.items():
        default = f"default {json.dumps(schema['default'])}" if "default" in schema else ""
        default = "required" if name in required else default
        kind = _type(schema).replace("`", "").replace("\\|", "|")
        words = " ".join(str(schema.get("description", "")).split())
        rows.append(f"  {name:<22} {words} ({', '.join(filter(None, (kind, default)))})")
    example = json.dumps(dict.fromkeys(required, "..."))
    return "\n".join([*rows, "", f"  gripfast call {tool.name} '{example}'"])


def _row(name: str, schema: dict[str, Any], required: bool) -> str:
    default = "required" if required else _code(schema["default"]) if "default" in schema else ""
    words = " ".join(str(schema.get("description", "")).split())
    return f"| `{name}` | {_type(schema)} | {default} | {_cell(words)} |"


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return _cell(" or ".join(_code(one) for one in schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    kind: str | list[str] = schema.get("type", "any")
    named = kind if isinstance(kind, str) else " or ".join(kind)
    if named == "array" and isinstance(schema.get("items"), dict):
        return f"array of {_type(schema['items'])}"
    limits = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return " ".join([named, *limits])


def _code(value: Any) -> str:
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
