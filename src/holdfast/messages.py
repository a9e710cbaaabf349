"""What crosses a door: the call that comes in, the result a tool gives, the message that goes out."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from holdfast.errors import ToolError


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as the model made it. `arguments` is JSON text, or the object it stands for; None is none."""

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


Part: TypeAlias = TextPart | ImagePart | DocumentPart


@dataclass(frozen=True, slots=True)
class OutputRef:
    """Where the whole of an output is kept when the message shows a part of it."""

    id: str
    byte_size: int
    line_count: int


@dataclass(frozen=True, slots=True)
class TextResult:
    """`output_ref` is set by a tool that has put the whole of its output into the cache while it ran."""

    text: str
    output_ref: OutputRef | None = None


@dataclass(frozen=True, slots=True)
class JsonResult:
    """`text` is the value, serialized once: what the model reads and what the cache measures."""

    text: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class PartsResult:
    parts: tuple[Part, ...]


ToolResult: TypeAlias = TextResult | JsonResult | PartsResult


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The answer to one call, the same for every edge."""

    tool_call_id: str
    name: str
    content: str | tuple[Part, ...]
    is_error: bool = False
    output_ref: OutputRef | None = None
    error: ToolError | None = None
    done: bool = False

    @property
    def text(self) -> str:
        """The content as text alone: images and documents are named, not shown."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(_as_text(part) for part in self.content)

    def to_dict(self) -> dict[str, Any]:
        """The whole message as JSON can carry it."""
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
