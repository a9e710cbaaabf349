"""Names compared as the most forgiving file system and a person's eye would compare them."""

from __future__ import annotations

import re
import unicodedata

from gripfast.text.unseen import is_invisible

_ENDS_IN_DOT_OR_SPACE = re.compile(r"(?<=[^/. ])[. ]+(?=/|\Z)")


def folded(path: str) -> str:
    """A name or a path without case, invisible characters, and dots and spaces at the end of a name; composed (NFC).

    Used wherever a name is closed: two names that fold alike are closed together.
    """
    return foldings(path)[0]


def foldings(path: str) -> tuple[str, ...]:
    """A folded path, and the same with the dots and spaces at the end of its names, if it has any: a wildcard may
    stand for them."""
    whole = path.lower() if path.isascii() else _folded(path)
    if not ("./" in whole or " /" in whole or whole[-1:] in (".", " ")):
        return (whole,)
    short = _ENDS_IN_DOT_OR_SPACE.sub("", whole)
    return (short,) if short == whole else (short, whole)


def _folded(text: str) -> str:
    """Unicode's canonical caseless matching (chapter 3.13, D145), on what can be seen."""
    hidden = {ord(char): None for char in set(text) if is_invisible(char)}
    seen = unicodedata.normalize("NFD", text.translate(hidden) if hidden else text)
    return unicodedata.normalize("NFC", seen.casefold())
