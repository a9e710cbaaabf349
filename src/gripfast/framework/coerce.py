"""Coerces what models send to what they clearly mean: arrays sent as JSON text, null for an absent argument.

Pure: JSON data in, JSON data out. Numbers and booleans sent as text are left to validation, which accepts them. An
ambiguous value is left as it is, or made invalid so that validation refuses it: `true` is not 1.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import from_json

from gripfast.framework.shape import Schema, branches, json_type, json_types, member_schema

_NOT_FINITE = frozenset({"nan", "inf", "infinity"})


def coerced(value: Any, schema: Schema) -> Any:
    """The value in the types the schema asks for, wherever its meaning is clear."""
    return _coerced(value, schema, schema)


def _coerced(value: Any, node: Schema, root: Schema) -> Any:
    options = branches(node, root)
    types = json_types(options)
    if isinstance(value, str):
        return _text(value, options, types, root)
    if isinstance(value, bool):
        return _wrong_type(types) if types & {"integer", "number"} and "boolean" not in types else value
    fitting: list[Schema] = [option for option in options if json_type(value) in json_types([option])]
    if isinstance(value, dict):
        return _object(cast("dict[str, Any]", value), fitting, root)
    if isinstance(value, list) and len(fitting) == 1:
        return [_coerced(one, member_schema(fitting[0], n), root) for n, one in enumerate(cast("list[Any]", value))]
    return cast("Any", value)


def _text(text: str, options: list[Schema], types: frozenset[str], root: Schema) -> Any:
    for option in options:
        if text in option.get("enum", ()) or text == option.get("const", ...):
            return text
    members = [
        one for option in options for one in option.get("enum", [option.get("const")]) if _as_text(one) == text
    ]
    if len(members) == 1:
        return members[0]
    if "string" in types:
        return text
    if types & {"array", "object"}:
        inner = _parsed(text)
        if json_type(inner) in types & {"array", "object"}:
            return _coerced(inner, {"anyOf": options}, root)
    if text.strip().lstrip("+-").lower() in _NOT_FINITE:
        return _wrong_type(types)
    return text


def _as_text(member: Any) -> str | None:
    """How a number or boolean of an enum looks when a model sends it as text."""
    if isinstance(member, bool):
        return "true" if member else "false"
    return str(member) if isinstance(member, (int, float)) else None


def _parsed(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return None


def _wrong_type(types: frozenset[str]) -> Any:
    """A value of a type that is not accepted here, so that validation reports the fault and its path."""
    return {} if "object" not in types else []


def _object(value: dict[str, Any], options: list[Schema], root: Schema) -> dict[str, Any]:
    if len(options) > 1:
        options = [option for option in options if _has_constants_of(value, option)]
    if len(options) != 1:
        return value
    node = options[0]
    return {
        name: _coerced(member, member_schema(node, name), root)
        for name, member in value.items()
        if not (member is None and _means_absent(name, node, root))
    }


def _has_constants_of(value: dict[str, Any], option: Schema) -> bool:
    """Whether the value has the constants (such as a discriminator) of this branch of a union."""
    for name, node in option.get("properties", {}).items():
        allowed = node.get("enum", [node["const"]] if "const" in node else None)
        if allowed is not None and name in value and value[name] not in (*allowed, None):
            return False
    return True


def _means_absent(name: str, node: Schema, root: Schema) -> bool:
    declared = node.get("properties", {}).get(name)
    if declared is None or name in node.get("required", ()):
        return False
    return "null" not in json_types(branches(declared, root))
