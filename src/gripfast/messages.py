"""The data of one call: the request, the result a tool produces, and the message sent back."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from itertools import groupby
from typing import Any, Literal, TypeAlias

from gripfast.errors import ToolError
from gripfast.records import dataclass


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model made it. `arguments` is JSON text or the parsed object; None means no arguments."""

    id: str
    name: str
    arguments: str | bytes | Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    data: bytes = field(repr=False)
    media_type: str
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentPart:
    data: bytes = field(repr=False)
    media_type: str
    name: str | None = None


AnswerForm: TypeAlias = Literal["openai", "openai-responses", "anthropic", "gemini", "mcp"]
Part: TypeAlias = TextPart | ImagePart | DocumentPart


@dataclass(frozen=True, slots=True)
class OutputRef:
    """Where the full output is stored when the message shows only part of it."""

    id: str
    byte_size: int
    line_count: int


@dataclass(frozen=True, slots=True)
class TextResult:
    """Text. A tool that stored its full output in the cache while it ran sets `output_ref`."""

    text: str
    output_ref: OutputRef | None = None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class JsonResult:
    """A value that JSON can hold. `text` is its JSON, serialized once by `render`: what the model reads."""

    value: Any
    text: str = ""


@dataclass(frozen=True, slots=True)
class PartsResult:
    parts: tuple[Part, ...]


ToolResult: TypeAlias = TextResult | JsonResult | PartsResult


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The answer to one call, the same for every client."""

    tool_call_id: str
    name: str
    content: str | tuple[Part, ...]
    is_error: bool = False
    output_ref: OutputRef | None = None
    error: ToolError | None = None
    done: bool = False
    exit_code: int | None = None
    """Of a command that the tool ran."""

    @property
    def text(self) -> str:
        """The content as plain text; images and documents become a placeholder."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(_as_text(part) for part in self.content)

    @property
    def value(self) -> Any:
        """The value of an answer in JSON. Raises ValueError if the answer is other text, or was cut."""
        try:
            return json.loads(self.text)
        except ValueError:
            cut = "was cut, see output_ref" if self.output_ref else "is not JSON"
            raise ValueError(f"the answer of `{self.name}` {cut}: {self.text[:60]!r}") from None

    def for_provider(self, form: AnswerForm) -> dict[str, Any]:
        """The answer as a provider's API takes it, images as images.

        "openai" gives a message of the role tool, "openai-responses" an input item, "anthropic" a `tool_result`
        block, "gemini" a part, "mcp" a result. Chat completions take images only from the user, so "openai" names
        them, and `provider_messages` adds a message that has them.
        """
        if form not in _FORMS:
            raise ValueError(f"unknown form {form!r}; use one of {', '.join(_FORMS)}")
        return _FORMS[form](self)

    def to_dict(self) -> dict[str, Any]:
        """The whole message as JSON-serializable data."""
        content = self.content if isinstance(self.content, str) else [_as_dict(part) for part in self.content]
        ref, error = self.output_ref, self.error
        return {
            "tool_call_id": self.tool_call_id,
            "name": self.name,
            "content": content,
            "is_error": self.is_error,
            "output_ref": ref and {"id": ref.id, "byte_size": ref.byte_size, "line_count": ref.line_count},
            "error": error
            and {
                "code": error.code,
                "message": error.message,
                "retriable": error.retriable,
                "details": error.details,
            },
        }


def _as_text(part: Part) -> str:
    match part:
        case TextPart(text):
            return text
        case ImagePart():
            return f"[image {part.media_type}, {len(part.data)} bytes]"
        case DocumentPart():
            return f"[document {part.media_type}, {len(part.data)} bytes]"


def _as_dict(part: Part) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart():
            return {"type": "image", "media_type": part.media_type, "data": b64encode(part.data).decode()}
        case DocumentPart():
            return {
                "type": "document",
                "media_type": part.media_type,
                "name": part.name,
                "data": b64encode(part.data).decode(),
            }


# --- as providers take them ---


def provider_messages(history: Iterable[Any], form: AnswerForm) -> list[Any]:
    """A history for a provider's API: each ToolMessage in its form, the answers of one turn together, and everything
    else as it is."""
    messages: list[Any] = []
    for is_answer, group in groupby(history, lambda message: isinstance(message, ToolMessage)):
        turn = list(group)
        messages += _turn(turn, form) if is_answer else turn
    return messages


def _turn(answers: list[ToolMessage], form: AnswerForm) -> list[dict[str, Any]]:
    shown = [answer.for_provider(form) for answer in answers]
    if form == "anthropic":
        return [{"role": "user", "content": shown}]
    if form == "gemini":
        return [{"role": "user", "parts": shown}]
    images = [block for answer in answers for block in _openai_images(answer)] if form == "openai" else []
    return [*shown, {"role": "user", "content": images}] if images else shown


def _openai(message: ToolMessage) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.text}


def _openai_images(message: ToolMessage) -> list[dict[str, Any]]:
    found = [part for part in _parts(message) if isinstance(part, ImagePart)]
    blocks = [{"type": "image_url", "image_url": {"url": _data_url(part)}} for part in found]
    return (
        [{"type": "text", "text": f"The image of {message.name} ({message.tool_call_id}):"}, *blocks] if found else []
    )


def _openai_responses(message: ToolMessage) -> dict[str, Any]:
    output: Any = message.text
    if any(isinstance(part, ImagePart) for part in _parts(message)):
        output = [_responses_item(part) for part in _parts(message)]
    return {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}


def _responses_item(part: Part) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "input_image", "image_url": _data_url(part), "detail": "auto"}
    return {"type": "input_text", "text": _as_text(part)}


def _anthropic(message: ToolMessage) -> dict[str, Any]:
    content = message.content
    shown = content if isinstance(content, str) else [_anthropic_block(part) for part in content]
    block = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": shown}
    return {**block, "is_error": message.is_error}


def _anthropic_block(part: Part) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        source = {"type": "base64", "media_type": part.media_type, "data": b64encode(part.data).decode()}
        return {"type": "image", "source": source}
    return {"type": "text", "text": _as_text(part)}


def _gemini(message: ToolMessage) -> dict[str, Any]:
    texts = "\n".join(_as_text(part) for part in _parts(message) if not isinstance(part, ImagePart))
    answer: dict[str, Any] = {"name": message.name, "response": {"error" if message.is_error else "output": texts}}
    if message.tool_call_id:
        answer["id"] = message.tool_call_id
    images = [part for part in _parts(message) if isinstance(part, ImagePart)]
    if images:
        answer["parts"] = [{"inline_data": {"mime_type": one.media_type, "data": one.data}} for one in images]
    return {"function_response": answer}


def _mcp(message: ToolMessage) -> dict[str, Any]:
    return {"content": [_mcp_block(part) for part in _parts(message)], "isError": message.is_error}


def _mcp_block(part: Part) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart():
            return {"type": "image", "data": b64encode(part.data).decode(), "mimeType": part.media_type}
        case DocumentPart():
            blob = {"blob": b64encode(part.data).decode(), "mimeType": part.media_type}
            return {"type": "resource", "resource": {"uri": f"document:///{part.name or 'document'}", **blob}}


def _parts(message: ToolMessage) -> tuple[Part, ...]:
    return (TextPart(message.content),) if isinstance(message.content, str) else message.content


def _data_url(part: ImagePart) -> str:
    return f"data:{part.media_type};base64,{b64encode(part.data).decode()}"


_FORMS: dict[str, Callable[[ToolMessage], dict[str, Any]]] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "mcp": _mcp,
}
