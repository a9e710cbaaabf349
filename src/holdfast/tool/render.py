"""A tool's plain value becomes a result: text, JSON or parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from holdfast.errors import speakable
from holdfast.messages import (
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
    """A tool returned a value that JSON can't hold."""


def render(value: Any) -> ToolResult:
    """`str` is text, parts are parts, anything else is JSON: keys in their own order, compact, as UTF-8."""
    if isinstance(value, str):
        return TextResult(speakable(value))
    if isinstance(value, TextResult):
        return replace(value, text=speakable(value.text))
    if isinstance(value, JsonResult):
        return value
    if isinstance(value, PartsResult):
        return PartsResult(tuple(map(_speakable, value.parts)))
    if isinstance(value, _PARTS):
        return PartsResult((_speakable(value),))
    if isinstance(value, (list, tuple)) and value and _all_parts(cast("Sequence[Any]", value)):
        return PartsResult(tuple(map(_speakable, cast("Sequence[Part]", value))))
    return JsonResult(_as_json(value), value)


def _speakable(part: Part) -> Part:
    return TextPart(speakable(part.text)) if isinstance(part, TextPart) else part


def _all_parts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, _PARTS) for value in values)


def _as_json(value: Any) -> str:
    try:
        return to_json(value, inf_nan_mode="null").decode()
    except (PydanticSerializationError, ValueError, RecursionError) as fault:
        raise NotJson(type(value).__name__) from fault
