"""What models send and clearly mean: arrays as JSON text, null for "not given". Pure: JSON data in, JSON data out.

Numbers and booleans sent as text are left to validation, which reads them. What could mean two things is left as it
is, or spoilt so that validation refuses it: `true` is not 1.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import from_json

from holdfast.tool.shape import Schema, admits, below, branches, kind_of

_NO_NUMBERS = frozenset({"nan", "inf", "infinity"})


def mended(value: Any, schema: Schema) -> Any:
    """The value as the schema clearly asks for it."""
    return _mended(value, schema, schema)


def _mended(value: Any, node: Schema, root: Schema) -> Any:
    options = branches(node, root)
    kinds = admits(options)
    if isinstance(value, str):
        return _text(value, options, kinds, root)
    if isinstance(value, bool):
        return _spoilt(kinds) if kinds & {"integer", "number"} and "boolean" not in kinds else value
    fitting: list[Schema] = [option for option in options if kind_of(value) in admits([option])]
    if isinstance(value, dict):
        return _object(cast("dict[str, Any]", value), fitting, root)
    if isinstance(value, list) and len(fitting) == 1:
        return [_mended(one, below(fitting[0], n), root) for n, one in enumerate(cast("list[Any]", value))]
    return cast("Any", value)


def _text(text: str, options: list[Schema], kinds: frozenset[str], root: Schema) -> Any:
    for option in options:
        if text in option.get("enum", ()) or text == option.get("const", ...):
            return text
    members = [one for option in options for one in option.get("enum", [option.get("const")]) if _word(one) == text]
    if len(members) == 1:
        return members[0]
    if "string" in kinds:
        return text
    if kinds & {"array", "object"}:
        inner = _parsed(text)
        if kind_of(inner) in kinds & {"array", "object"}:
            return _mended(inner, {"anyOf": options}, root)
    if text.strip().lstrip("+-").lower() in _NO_NUMBERS:
        return _spoilt(kinds)
    return text


def _word(member: Any) -> str | None:
    """How a number or boolean of an enum is written by those who may only send text."""
    if isinstance(member, bool):
        return "true" if member else "false"
    return str(member) if isinstance(member, (int, float)) else None


def _parsed(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return None


def _spoilt(kinds: frozenset[str]) -> Any:
    """A value of a kind that is not wanted here, so that validation names the fault and the place."""
    return {} if "object" not in kinds else []


def _object(value: dict[str, Any], options: list[Schema], root: Schema) -> dict[str, Any]:
    if len(options) > 1:
        options = [option for option in options if _agrees(value, option)]
    if len(options) != 1:
        return value
    node = options[0]
    return {
        name: _mended(member, below(node, name), root)
        for name, member in value.items()
        if not (member is None and _means_absent(name, node, root))
    }


def _agrees(value: dict[str, Any], option: Schema) -> bool:
    """Whether the fixed words of one branch of a union are those of this value."""
    for name, node in option.get("properties", {}).items():
        fixed = node.get("enum", [node["const"]] if "const" in node else None)
        if fixed is not None and name in value and value[name] not in (*fixed, None):
            return False
    return True


def _means_absent(name: str, node: Schema, root: Schema) -> bool:
    declared = node.get("properties", {}).get(name)
    if declared is None or name in node.get("required", ()):
        return False
    return "null" not in admits(branches(declared, root))
