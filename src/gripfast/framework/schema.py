"""JSON Schema of an argument model in a form that models read well: draft-07, references inlined, no noise."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, TypeAdapter

from gripfast.framework.shape import SCHEMA_MAPS, VERBATIM, Schema, nodes, reference_name

# `discriminator` belongs to OpenAPI and points at definitions, which are inlined here.
_NOISE = frozenset({"title", "discriminator"})
_REFERENCE = "#/definitions/"


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of what may be sent. Unknown names are refused at every level, unless a model in it allows them."""
    raw = model.model_json_schema(mode="validation")
    allows_extra = model.model_config.get("extra") == "ignore" or any(map(_allows_extra, nodes(raw)))
    return _SchemaWriter(raw, absent_null=True, closed=not allows_extra).schema()


def output_schema(annotation: Any) -> dict[str, Any]:
    raw = TypeAdapter(annotation).json_schema(mode="serialization")
    return _SchemaWriter(raw, absent_null=False, closed=False).schema()


class _SchemaWriter:
    """Rewrites pydantic's schema: references inlined (except recursive ones), titles removed."""

    def __init__(self, raw: Schema, *, absent_null: bool, closed: bool) -> None:
        self._definitions = cast("dict[str, Any]", raw.get("$defs", {}))
        self._body = {key: value for key, value in raw.items() if key != "$defs"}
        self._absent_null = absent_null
        self._closed = closed
        self._recursive: dict[str, Any] = {}

    def schema(self) -> dict[str, Any]:
        schema = cast("dict[str, Any]", self._node(self._body, ()))
        if "$ref" in schema:  # a recursive model: the top level must still be an object, not a reference
            schema = dict(self._recursive[reference_name(schema)])
        if self._recursive:
            schema["definitions"] = self._recursive
        return schema

    def _node(self, node: Any, trail: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [self._node(item, trail) for item in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        node = self._draft07(cast("dict[str, Any]", node))
        if isinstance(node.get("$ref"), str):
            return self._reference(node, trail)
        return {key: self._value(key, value, trail) for key, value in _ordered(node)}

    def _value(self, key: str, value: Any, trail: tuple[str, ...]) -> Any:
        if key in VERBATIM:
            return value
        if key in SCHEMA_MAPS and isinstance(value, dict):
            return {name: self._node(one, trail) for name, one in cast("dict[str, Any]", value).items()}
        return self._node(value, trail)

    def _reference(self, node: dict[str, Any], trail: tuple[str, ...]) -> Any:
        name = reference_name(node)
        beside = {key: value for key, value in node.items() if key != "$ref"}
        if name in trail:
            self._recursive.setdefault(name, {})
            return {"$ref": _REFERENCE + name, **beside}
        target = self._node(self._definitions[name], (*trail, name))
        if name in self._recursive:  # it referred to itself while it was being written
            self._recursive[name] = target
            return {"$ref": _REFERENCE + name, **beside}
        return {**target, **beside}

    def _draft07(self, node: dict[str, Any]) -> dict[str, Any]:
        absent_is_null = self._absent_null and node.get("default", ...) is None
        if isinstance(node.get("anyOf"), list):
            node = _with_null(node, keep_null=not absent_is_null)
        out = {key: value for key, value in node.items() if key not in _NOISE}
        if absent_is_null:
            del out["default"]
        if "prefixItems" in out:
            out["additionalItems"] = out.pop("items", True)
            out["items"] = out.pop("prefixItems")
        if self._closed and "properties" in out:
            out.setdefault("additionalProperties", False)
        return out


def _ordered(node: dict[str, Any]) -> list[tuple[str, Any]]:
    """Type and description first; properties, required and additionalProperties last."""
    last = {"properties": 1, "required": 2, "additionalProperties": 3}
    return sorted(node.items(), key=lambda pair: {"type": -2, "description": -1}.get(pair[0], last.get(pair[0], 0)))


def _with_null(node: dict[str, Any], *, keep_null: bool) -> dict[str, Any]:
    """`X | None` in its short form; without null where leaving the argument out means the same."""
    options = cast("list[dict[str, Any]]", node["anyOf"])
    rest = [option for option in options if option != {"type": "null"}]
    beside = {key: value for key, value in node.items() if key != "anyOf"}
    if len(rest) == len(options):
        return node
    if len(rest) > 1:
        return {**beside, "anyOf": options if keep_null else rest}
    if not keep_null:
        return {**rest[0], **beside}
    kind = rest[0].get("type")
    if not isinstance(kind, str) or "enum" in rest[0] or "const" in rest[0]:
        return node
    return {**rest[0], **beside, "type": [kind, "null"]}


def _allows_extra(node: Schema) -> bool:
    return "properties" in node and node.get("additionalProperties", False) is not False
