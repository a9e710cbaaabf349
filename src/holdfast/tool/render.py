"""A tool's plain value becomes a result: text, JSON or parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from holdfast.errors import Internal
from holdfast.messages import (
    DocumentPart,
    ImagePart,
    JsonResult,
    PartsResult,
    TextPart,
    TextResult,
    ToolResult,
)

_PARTS = (TextPart, ImagePart, DocumentPart)
_RESULTS = (TextResult, JsonResult, PartsResult)


def render(value: Any, tool: str) -> ToolResult:
    """`str` is text, parts are parts, anything else is JSON: keys in their own order, compact, as UTF-8."""
    if isinstance(value, str):
        return TextResult(speakable(value))
    if isinstance(value, _RESULTS):
        return value
    if isinstance(value, _PARTS):
        return PartsResult((value,))
    if isinstance(value, (list, tuple)) and value and _all_parts(cast("Sequence[Any]", value)):
        return PartsResult(tuple(cast("Sequence[Any]", value)))
    return JsonResult(_as_json(value, tool), value)


def speakable(text: str) -> str:
    """Text that can be sent: halves of surrogate pairs can't, and become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def _all_parts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, _PARTS) for value in values)


def _as_json(value: Any, tool: str) -> str:
    try:
        return to_json(value, inf_nan_mode="null").decode()
    except (PydanticSerializationError, ValueError, RecursionError) as fault:
        reason = str(fault).splitlines()[0][:200]
        raise Internal(f"`{tool}` returned a value that is not JSON: {reason}") from fault
