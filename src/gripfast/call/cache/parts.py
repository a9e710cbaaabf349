"""How typed parts are stored: all parts as lines of text, followed by the bytes of images and documents."""

from __future__ import annotations

from typing import Any

from gripfast.call.cache.lines import CAP, LineCount, encode
from gripfast.call.cache.view import MARKER_ROOM, SaveResult, head_view
from gripfast.messages import DocumentPart, ImagePart, Part, TextPart


def size_of(part: Part) -> int:
    return len(encode(part.text)) if isinstance(part, TextPart) else len(part.data)


def lay_out(parts: tuple[Part, ...]) -> tuple[bytes, list[dict[str, Any]]]:
    """Parts as lines of text, with one line for each image or document, and notes on where each part's bytes are."""
    text = bytearray()
    notes: list[dict[str, Any]] = []
    line = 0
    for part in parts:
        if text and not text.endswith(b"\n"):
            text += b"\n"
            line += 1
        body = encode(_as_text(part))
        notes.append(_note(part, len(text), len(body), line))
        text += body
        line += body.count(b"\n")
    at = len(text)
    for note in notes:
        if note["type"] != "text":
            note["at"] = at
            at += note["size"]
    return bytes(text), notes


def _as_text(part: Part) -> str:
    if isinstance(part, TextPart):
        return part.text
    kind = "image" if isinstance(part, ImagePart) else "document"
    return f"[{kind} {part.media_type}, {len(part.data)} bytes]\n"


def _note(part: Part, at: int, size: int, line: int) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "at": at, "size": size}
        case ImagePart():
            fields = {"type": "image", "width": part.width, "height": part.height}
        case DocumentPart():
            fields = {"type": "document", "name": part.name}
    return fields | {"media_type": part.media_type, "size": len(part.data), "line": line}


def cut_texts(parts: tuple[Part, ...], saved: SaveResult) -> tuple[Part, ...]:
    """The parts with their texts cut to CAP in total; images and documents stay. The cut text has a marker."""
    text, notes = lay_out(parts)
    count = LineCount()
    count.add(text)
    room, shown = CAP, list[Part]()
    for part, note in zip(parts, notes, strict=True):
        if isinstance(part, TextPart):
            if room <= 0:
                continue
            room -= size_of(part)
            if room < 0:
                above = text.count(b"\n", 0, note["at"])
                room_here = max(MARKER_ROOM, room + size_of(part))
                view = head_view(encode(part.text), room_here, count=count, saved=saved, above=above)
                shown.append(TextPart(view))
                continue
        shown.append(part)
    return tuple(shown)
