"""Text shown to a person who decides: whole, on one line, nothing in it that acts on a terminal or hides."""

from __future__ import annotations

import re
import unicodedata

_PLAIN = re.compile(r"[\x20-\x7e]*")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def shown(text: str) -> str:
    """`text` with control, format, private and unassigned characters and odd spaces written as escapes."""
    return text if _PLAIN.fullmatch(text) else "".join(_char(char) for char in text)


def _char(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] != "C" and (category[0] != "Z" or char == " "):
        return char
    if char in _SHORT:
        return _SHORT[char]
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
