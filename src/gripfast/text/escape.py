"""Text written so that nothing in it hides, turns round or acts on a terminal."""

from __future__ import annotations

import json

from gripfast.text.unseen import replaced

_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str) -> str:
    """Names and values on one line: every character that may not be shown is written out."""
    return replaced(text, _written)


def visible(text: str) -> str:
    """Text of several lines: newlines and tabs stay, every other character that may not be shown is written out."""
    return replaced(text, _written, keep="\n\t")


def visible_json(text: str) -> str:
    """JSON that may be shown and still means the same: what is written out is a JSON escape."""
    return replaced(text, lambda char: json.dumps(char)[1:-1], keep="\n\t")


def _written(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that os.fsdecode could not decode
        return f"\\x{code - 0xDC00:02x}"
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return _SHORT.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
