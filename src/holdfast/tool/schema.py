"""JSON Schema of an argument model, as models like to read it: draft-07, nothing by reference, no noise."""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel, TypeAdapter

from holdfast.tool.shape import SCHEMA_MAPS, VERBATIM, Schema, name_of, nodes

# `discriminator` is OpenAPI's; it points at definitions that are written out here.
_NOISE = frozenset({"title", "discriminator"})
_REFERENCE = "#/definitions/"


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """What may be sent. Unknown names are refused throughout, unless a model in it says otherwise itself."""
    raw = model.model_json_schema(mode="validation")
    lets_more_in = model.model_config.get("extra") == "ignore" or any(map(_takes_more, nodes(raw)))
    return _Writer(raw, absent_null=True, closed=not lets_more_in).schema()


def output_schema(annotation: Any) -> dict[str, Any]:
    raw = TypeAdapter(annotation).json_schema(mode="serialization")
    return _Writer(raw, absent_null=False, closed=False).schema()


class _Writer:
    """Writes pydantic's schema anew: references inlined (a recursive one stays), titles gone."""

    def __init__(self, raw: Schema, *, absent_null: bool, closed: bool) -> None:
        self._definitions = cast("dict[str, Any]", raw.get("$defs", {}))
        self._body = {key: value for key, value in raw.items() if key != "$defs"}
        self._absent_null = absent_null
        self._closed = closed
        self._kept: dict[str, Any] = {}

    def schema(self) -> dict[str, Any]:
        schema = cast("dict[str, Any]", self._node(self._body, ()))
        if "$ref" in schema:  # the model names itself: its own shape still has to stand at the top
            schema = dict(self._kept[name_of(schema)])
        if self._kept:
            schema["definitions"] = self._kept
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
        name = name_of(node)
        beside = {key: value for key, value in node.items() if key != "$ref"}
        if name in trail:
            self._kept.setdefault(name, {})
            return {"$ref": _REFERENCE + name, **beside}
        target = self._node(self._definitions[name], (*trail, name))
        if name in self._kept:  # recursive: it named itself while it was written out
            self._kept[name] = target
            return {"$ref": _REFERENCE + name, **beside}
        return {**target, **beside}

    def _draft07(self, node: dict[str, Any]) -> dict[str, Any]:
        absent_is_null = self._absent_null and node.get("default", ...) is None
        if isinstance(node.get("anyOf"), list):
            node = _with_null(node, shown=not absent_is_null)
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
    """What it is and means first, then its members, then what is ruled out."""
    last = {"properties": 1, "required": 2, "additionalProperties": 3}
    return sorted(node.items(), key=lambda pair: {"type": -2, "description": -1}.get(pair[0], last.get(pair[0], 0)))


def _with_null(node: dict[str, Any], *, shown: bool) -> dict[str, Any]:
    """`X | None` in the short spelling; without the null where leaving the argument out says the same."""
    options = cast("list[dict[str, Any]]", node["anyOf"])
    rest = [option for option in options if option != {"type": "null"}]
    beside = {key: value for key, value in node.items() if key != "anyOf"}
    if len(rest) == len(options):
        return node
    if len(rest) > 1:
        return {**beside, "anyOf": options if shown else rest}
    if not shown:
        return {**rest[0], **beside}
    kind = rest[0].get("type")
    if not isinstance(kind, str) or "enum" in rest[0] or "const" in rest[0]:
        return node
    return {**rest[0], **beside, "type": [kind, "null"]}


def _takes_more(node: Schema) -> bool:
    return "properties" in node and node.get("additionalProperties", False) is not False
