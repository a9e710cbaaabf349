"""What a program prints, as plain text: escape sequences and characters that may not be shown are taken out."""

from __future__ import annotations

import re

from gripfast.text.unseen import replaced

# CSI, then OSC/DCS/APC/PM/SOS strings up to their end or the line's, then two-character escapes.
ESCAPES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]?"
)
_CONTROLS = "[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f-\x9f]"  # not bell, backspace, tab, line ends, page feed
_ODD_SPACES = "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"


def plain(text: str) -> str:
    """The text a person would have seen last: a line that was rewritten in place is its last state."""
    if text.isascii() and text.isprintable():
        return text
    text = ESCAPES.sub("", text)
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return replaced(text, _removed, keep="\n\t")


def controls_in(text: str) -> int:
    """How many control characters `plain` takes out of a text, without those that belong to a terminal's display."""
    return 0 if text.isascii() and text.isprintable() else len(re.findall(_CONTROLS, ESCAPES.sub("", text)))


def _removed(char: str) -> str:
    """Nothing; a plain space for one of the odd spaces, which would otherwise join two words."""
    return " " if re.match(_ODD_SPACES, char) else "\n" if char in "\u2028\u2029" else ""
