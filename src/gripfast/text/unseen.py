"""The characters that may not be shown as they are: one table for escaping, for stripping and for comparing names.

Not shown: controls, format characters, lone surrogates, private use, unassigned code points, every separator but the
space (Unicode's categories C and Z, which `str.isprintable` knows), and the printable ones that are drawn as nothing.
Joiners and variation selectors stay where a script or an emoji needs them: one at a time, too few to hide a message.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

# Letters, marks and symbols by category, but drawn as nothing: fillers, selectors, the empty Braille cell.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0100-\U000e01ef]"
)
# Unassigned today, but reserved by Unicode for characters that are drawn as nothing (Default_Ignorable_Code_Point).
_RESERVED = "[\u2065\ufff0-\ufff8\U000e0000-\U000e0fff]"

_PICTURE = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Arabic, Syriac, N'Ko, Mandaic, the scripts of India and South-East Asia, Tibetan, Mongolian, Phags-pa.
_JOINING = (
    "\u0620-\u074a\u0750-\u077f\u07ca-\u07ea\u0840-\u0858\u08a0-\u08c9\u0900-\u0df4\u0e01-\u0edf\u0f40-\u0fbc"
    "\u1000-\u109f\u1780-\u17b3\u17b6-\u17d3\u1820-\u18aa\ua840-\ua871"
)
_NEEDED = (
    f"((?<=[{_PICTURE}])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)"
    f"|(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}]))"
)


def is_unshown(char: str) -> bool:
    """Whether a character may not be shown as it is, wherever it stands."""
    return not char.isprintable() or _BLANK.match(char) is not None


def is_invisible(char: str) -> bool:
    """Whether a character is drawn as nothing, so that two names can differ in it and look the same."""
    return unicodedata.category(char) == "Cf" or bool(_BLANK.match(char) or re.match(_RESERVED, char))


def replaced(text: str, by: Callable[[str], str], keep: str = "") -> str:
    """The text with `by(char)` for each character that may not be shown, except those in `keep`."""
    if text.isprintable() and not _BLANK.search(text):
        return text
    table = {ord(char): by(char) for char in set(text) if char not in keep and is_unshown(char)}
    pieces = re.split(_NEEDED, text)  # every second one is a joiner or a selector in its place
    pieces[::2] = [piece.translate(table) for piece in pieces[::2]]
    return "".join(pieces)
