"""Reading a JSON Schema of ours: what may stand at a place, and which names it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

Schema: TypeAlias = Mapping[str, Any]

# Keywords whose value holds schemas by name, and keywords whose value is data.
SCHEMA_MAPS = frozenset({"properties", "patternProperties", "definitions", "$defs"})
VERBATIM = frozenset({"default", "const", "enum", "examples", "required"})
_KINDS = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


def nodes(schema: Any) -> Iterator[Schema]:
    """Every schema in a schema, itself first."""
    if not isinstance(schema, dict):
        return
    node = cast("dict[str, Any]", schema)
    yield node
    for key, value in node.items():
        if key in VERBATIM:
            continue
        if key in SCHEMA_MAPS and isinstance(value, dict):
            value = list(cast("dict[str, Any]", value).values())
        for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
            yield from nodes(one)


def name_of(reference: Schema) -> str:
    return reference["$ref"].rsplit("/", 1)[-1]


def is_open(schema: Schema) -> bool:
    """Whether an object somewhere in it takes names that it doesn't declare."""
    return any("properties" in node and node.get("additionalProperties", True) is not False for node in nodes(schema))


def branches(node: Schema, root: Schema) -> list[Schema]:
    """What a node may be: the branches of a union, references followed."""
    if isinstance(node.get("$ref"), str):
        return branches(root.get("definitions", {}).get(name_of(node), {}), root)
    options = node.get("anyOf", node.get("oneOf"))
    if not isinstance(options, list):
        return [node]
    return [leaf for option in cast("list[Schema]", options) for leaf in branches(option, root)]


def admits(options: Iterable[Schema]) -> frozenset[str]:
    """The JSON types that any of these takes."""
    return frozenset(kind for option in options for kind in _kinds(option))


def _kinds(node: Schema) -> frozenset[str]:
    kinds = node.get("type")
    if isinstance(kinds, str):
        named = {kinds}
    elif isinstance(kinds, list):
        named = set(cast("list[str]", kinds))
    elif "enum" in node or "const" in node:
        named = {kind_of(value) for value in node.get("enum", [node.get("const")])}
    else:
        return _KINDS
    return frozenset(named | {"integer"} if "number" in named else named)


def kind_of(value: Any) -> str:
    """The JSON type of a value that came out of JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def property_names(schema: Schema, path: Iterable[int | str]) -> list[str]:
    """The names an object takes at this place, whatever branch of a union it is."""
    here = branches(schema, schema)
    for step in path:
        here = [leaf for node in here for leaf in branches(below(node, step), schema)]
    return list(dict.fromkeys(name for node in here for name in node.get("properties", {})))


def below(node: Schema, step: int | str) -> Schema:
    """The schema of an item or a member; one that takes anything where none is declared."""
    if isinstance(step, int):
        member = node.get("items")
        if isinstance(member, list):
            each = cast("list[Any]", member)
            member = each[step] if step < len(each) else node.get("additionalItems")
    else:
        member = node.get("properties", {}).get(step, node.get("additionalProperties"))
    return cast("Schema", member) if isinstance(member, dict) else {}
