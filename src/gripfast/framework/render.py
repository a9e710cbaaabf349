"""Turns the plain value a tool returns into a result: text, JSON or parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from gripfast.errors import valid_unicode
from gripfast.messages import (
    DocumentPart,
    ImagePart,
    JsonResult,
    Part,
    PartsResult,
    TextPart,
    TextResult,
    ToolResult,
)

_PARTS = (TextPart, ImagePart, DocumentPart)


class NotJson(TypeError):
    """A tool returned a value that can't be serialized as JSON."""


def render(value: Any) -> ToolResult:
    """A `str` is text, parts stay parts, and anything else becomes compact JSON with its keys in order."""
    if isinstance(value, str):
        return TextResult(valid_unicode(value))
    if isinstance(value, TextResult):
        return replace(value, text=valid_unicode(value.text))
    if isinstance(value, JsonResult):
        return value if value.text else JsonResult(value.value, _as_json(value.value))
    if isinstance(value, PartsResult):
        return PartsResult(tuple(map(_part_with_valid_unicode, value.parts)))
    if isinstance(value, _PARTS):
        return PartsResult((_part_with_valid_unicode(value),))
    if isinstance(value, (list, tuple)) and value and _all_parts(cast("Sequence[Any]", value)):
        return PartsResult(tuple(map(_part_with_valid_unicode, cast("Sequence[Part]", value))))
    return JsonResult(value, _as_json(value))


def _part_with_valid_unicode(part: Part) -> Part:
    return TextPart(valid_unicode(part.text)) if isinstance(part, TextPart) else part


def _all_parts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, _PARTS) for value in values)


def _as_json(value: Any) -> str:
    from pydantic_core import PydanticSerializationError, to_json  # noqa: PLC0415 - few tools return JSON

    try:
        return to_json(value, inf_nan_mode="null").decode()
    except (PydanticSerializationError, ValueError, RecursionError) as fault:
        raise NotJson(type(value).__name__) from fault
