"""Finds the tool outputs in a message of a history: ours, or a provider's as a dict (OpenAI, Anthropic, Gemini)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from gripfast.messages import ImagePart, Part, TextPart, ToolMessage
from gripfast.records import dataclass

Keys: TypeAlias = tuple[str | int, ...]

# Attributes of the SDKs' own message objects, which hold outputs that can't be replaced in place.
_OF_SDK_OBJECTS = ("tool_call_id", "tool_use_id", "call_id", "parts")


@dataclass(frozen=True, slots=True)
class OutputPlace:
    """A tool output as a ToolMessage, and the keys that lead to it in its message (empty if it is the message)."""

    message: ToolMessage
    keys: Keys = ()


def outputs_in(message: object) -> list[OutputPlace]:
    """The tool outputs of one message. Raises TypeError for one that may hold some but can't be read."""
    if isinstance(message, ToolMessage):
        return [OutputPlace(message)]
    if isinstance(message, Mapping):
        return list(_in_dict(cast("Mapping[str, Any]", message)))
    if any(hasattr(message, name) for name in _OF_SDK_OBJECTS):
        kind = type(message).__name__
        raise TypeError(
            f"trim can't read a {kind}; give it ToolMessage, or the dict (`.model_dump()`) of the message"
        )
    return []


def with_output(message: object, keys: Keys, note: str) -> Any:
    """A copy of a provider's message with the note in the place of an output."""
    if not keys:
        return {"output": note} if isinstance(message, Mapping) else note
    key, rest = keys[0], keys[1:]
    if isinstance(key, int):
        items = list(cast("list[Any]", message))
        items[key] = with_output(items[key], rest, note)
        return items
    fields = dict(cast("Mapping[str, Any]", message))
    fields[key] = with_output(fields[key], rest, note)
    if key == "response":
        fields.pop("parts", None)  # Gemini's images beside the response
    return fields


def _in_dict(message: Mapping[str, Any]) -> Iterator[OutputPlace]:
    if message.get("role") == "tool" and "content" in message:
        yield _place(("content",), message["content"])
    elif message.get("type") == "function_call_output" and "output" in message:
        yield _place(("output",), message["output"])
    elif message.get("role") in ("tool", "function") and "parts" not in message:
        raise TypeError(f"trim finds no output in a message of the role {message['role']!r}; it has {list(message)}")
    for at, block in _dicts(message.get("content")):
        if block.get("type") == "tool_result" and "content" in block:
            yield _place(("content", at, "content"), block["content"])
    for at, part in _dicts(message.get("parts")):
        for key in ("function_response", "functionResponse"):
            answer = part.get(key)
            if isinstance(answer, Mapping) and "response" in answer:
                yield _place(("parts", at, key, "response"), cast("Mapping[str, Any]", answer)["response"])


def _dicts(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for at, one in enumerate(cast("list[object]", value) if isinstance(value, list) else []):
        if isinstance(one, Mapping):
            yield at, cast("Mapping[str, Any]", one)


def _place(keys: Keys, content: object) -> OutputPlace:
    return OutputPlace(ToolMessage("", "", _content(content)), keys)


def _content(content: object) -> str | tuple[Part, ...]:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return tuple(_part(one) for one in cast("list[object]", content))
    return _json(cast("Any", content))


def _part(block: object) -> Part:
    if not isinstance(block, Mapping):
        return TextPart(str(block))
    fields = cast("Mapping[str, Any]", block)
    if isinstance(fields.get("text"), str):
        return TextPart(fields["text"])
    source = fields.get("source")
    if fields.get("type") == "image" and isinstance(source, Mapping):
        found = cast("Mapping[str, Any]", source)
        try:
            return ImagePart(base64.b64decode(found["data"]), str(found["media_type"]))
        except (KeyError, TypeError, binascii.Error):
            pass
    return TextPart(_json(fields))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
