"""Cutting encoded text without breaking a character."""

from __future__ import annotations

import codecs


def character_start(data: bytes | bytearray, position: int) -> int:
    """The nearest place at or before `position` where a UTF-8 character begins."""
    for back in range(4):
        at = position - back
        if at <= 0 or at >= len(data) or data[at] & 0xC0 != 0x80:
            return max(0, at)
    return position


def unfinished(data: bytes | bytearray) -> int:
    """How many bytes at the end are the beginning of a UTF-8 character whose rest is missing."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            return back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
        if byte < 0x80:
            return 0
    return 0


def whole_characters(cut: bytes, encoding: str | None) -> bytes:
    """The beginning of a text in UTF-8 or this encoding, without the part of a character at its end."""
    for codec in ("utf-8", encoding):
        if codec is not None:
            decoder = codecs.getincrementaldecoder(codec)()
            try:
                return decoder.decode(cut).encode(codec)
            except UnicodeError:
                continue
    return cut
