"""Queries on the JSON Schemas that schema.py writes: which types and which names are accepted at a path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

Schema: TypeAlias = Mapping[str, Any]

# Keywords whose value holds schemas by name, and keywords whose value is data.
SCHEMA_MAPS = frozenset({"properties", "patternProperties", "definitions", "$defs"})
VERBATIM = frozenset({"default", "const", "enum", "examples", "required"})
_JSON_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})


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


def reference_name(reference: Schema) -> str:
    return reference["$ref"].rsplit("/", 1)[-1]


def is_open(schema: Schema) -> bool:
    """Whether any object in the schema accepts names that it doesn't declare."""
    return any("properties" in node and node.get("additionalProperties", True) is not False for node in nodes(schema))


def branches(node: Schema, root: Schema) -> list[Schema]:
    """The alternatives of a node: the branches of a union, with references followed."""
    if isinstance(node.get("$ref"), str):
        return branches(root.get("definitions", {}).get(reference_name(node), {}), root)
    options = node.get("anyOf", node.get("oneOf"))
    if not isinstance(options, list):
        return [node]
    return [leaf for option in cast("list[Schema]", options) for leaf in branches(option, root)]


def json_types(options: Iterable[Schema]) -> frozenset[str]:
    """The JSON types that any of these schemas accepts."""
    return frozenset(one for option in options for one in _types(option))


def _types(node: Schema) -> frozenset[str]:
    types = node.get("type")
    if isinstance(types, str):
        named = {types}
    elif isinstance(types, list):
        named = set(cast("list[str]", types))
    elif "enum" in node or "const" in node:
        named = {json_type(value) for value in node.get("enum", [node.get("const")])}
    else:
        return _JSON_TYPES
    return frozenset(named | {"integer"} if "number" in named else named)


def json_type(value: Any) -> str:
    """The JSON type of a parsed JSON value."""
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
    """The names an object accepts at this path, in any branch of a union."""
    return list(dict.fromkeys(name for node in leaves(schema, path) for name in node.get("properties", {})))


def leaves(schema: Schema, path: Iterable[int | str]) -> list[Schema]:
    """The schemas of what stands at this path, one for each branch of a union."""
    here = branches(schema, schema)
    for step in path:
        here = [leaf for node in here for leaf in branches(member_schema(node, step), schema)]
    return here


def member_schema(node: Schema, step: int | str) -> Schema:
    """The schema of an item or a member; `{}`, which accepts anything, if none is declared."""
    if isinstance(step, int):
        member = node.get("items")
        if isinstance(member, list):
            each = cast("list[Any]", member)
            member = each[step] if step < len(each) else node.get("additionalItems")
    else:
        member = node.get("properties", {}).get(step, node.get("additionalProperties"))
    return cast("Schema", member) if isinstance(member, dict) else {}
