"""What a program prints, as plain text: escape sequences, controls and direction overrides taken out."""

from __future__ import annotations

import re

# CSI, then OSC/DCS/APC/PM/SOS strings up to their end or the line's, then two-character escapes.
_ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)
# Controls except tab and newline; what turns text round or hides in it.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def plain(text: str) -> str:
    """The text a person would have seen last: a line that was rewritten in place is its last state."""
    if text.isprintable():
        return text
    text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROLS.sub("", text)


def visible(text: str) -> str:
    """All of the text, with what would act on a terminal or turn text round written out."""
    return text if text.isprintable() else _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
