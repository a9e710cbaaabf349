"""JSON Schema of an argument model, as models like to read it: draft-07, nothing by reference, no noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter

_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "definitions"})
_VERBATIM = frozenset({"default", "const", "enum", "examples", "required"})


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    return _Writer(model.model_json_schema(mode="validation"), input_side=True).schema()


def output_schema(annotation: Any) -> dict[str, Any]:
    return _Writer(TypeAdapter(annotation).json_schema(mode="serialization"), input_side=False).schema()


class _Writer:
    """Writes pydantic's schema anew: references inlined (a recursive one stays), titles gone."""

    def __init__(self, raw: Mapping[str, Any], *, input_side: bool) -> None:
        self._definitions = cast("dict[str, Any]", raw.get("$defs", {}))
        self._body = {key: value for key, value in raw.items() if key != "$defs"}
        self._input_side = input_side
        self._kept: dict[str, Any] = {}

    def schema(self) -> dict[str, Any]:
        schema = cast("dict[str, Any]", self._node(self._body, ()))
        if self._kept:
            schema["definitions"] = self._kept
        return schema

    def _node(self, node: Any, trail: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [self._node(item, trail) for item in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        node = cast("dict[str, Any]", node)
        if isinstance(node.get("$ref"), str):
            return self._reference(node, trail)
        return {key: self._value(key, value, trail) for key, value in self._draft07(node).items()}

    def _value(self, key: str, value: Any, trail: tuple[str, ...]) -> Any:
        if key in _VERBATIM:
            return value
        if key in _SCHEMA_MAPS and isinstance(value, dict):
            return {name: self._node(one, trail) for name, one in cast("dict[str, Any]", value).items()}
        return self._node(value, trail)

    def _reference(self, node: dict[str, Any], trail: tuple[str, ...]) -> Any:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name in trail:
            self._kept.setdefault(name, {})
            return {"$ref": f"#/definitions/{name}"}
        target = self._node(self._definitions[name], (*trail, name))
        if name in self._kept:  # recursive: it named itself while it was written out
            self._kept[name] = target
            return {"$ref": f"#/definitions/{name}"}
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return {**target, **self._draft07(beside)}

    def _draft07(self, node: dict[str, Any]) -> dict[str, Any]:
        out = {key: value for key, value in node.items() if key != "title" or not isinstance(value, str)}
        if "prefixItems" in out:
            out["additionalItems"] = out.pop("items", True)
            out["items"] = out.pop("prefixItems")
        absent_is_null = self._input_side and out.get("default", ...) is None
        if absent_is_null:
            del out["default"]
        if isinstance(out.get("anyOf"), list):
            out = _with_null(out, shown=not absent_is_null)
        return out


def _with_null(node: dict[str, Any], *, shown: bool) -> dict[str, Any]:
    """`X | None` in the short spelling; without the null where leaving the argument out says the same."""
    branches = cast("list[dict[str, Any]]", node["anyOf"])
    rest = [branch for branch in branches if branch != {"type": "null"}]
    beside = {key: value for key, value in node.items() if key != "anyOf"}
    if len(rest) == len(branches):
        return node
    if len(rest) > 1:
        return {**beside, "anyOf": branches if shown else rest}
    if not shown:
        return {**rest[0], **beside}
    kind = rest[0].get("type")
    if not isinstance(kind, str) or "enum" in rest[0] or "const" in rest[0]:
        return node
    return {**rest[0], **beside, "type": [kind, "null"]}
