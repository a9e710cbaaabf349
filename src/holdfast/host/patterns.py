"""Path patterns of a Scope: which places are closed, which names are protected."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast.errors import InvalidArgument
from holdfast.host.globs import compile_glob

MOST_PATTERNS = 1000
MOST_CHARACTERS = 512 * 1024  # of all of them, compiled; a hostile workspace may bring some

# Code points that are drawn as nothing: file systems and people read past them, so they don't count in names.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_ENDS_IN_DOT_OR_SPACE = re.compile(r"(?<=[^/. ])[. ]+(?=/|$)")


def folded(path: str) -> str:
    """A path as the most forgiving file system would compare it: no case, no invisible code points."""
    path = path.lower() if path.isascii() else unicodedata.normalize("NFC", _INVISIBLE.sub("", path)).casefold()
    if "./" in path or " /" in path or path[-1:] in (".", " "):
        path = _ENDS_IN_DOT_OR_SPACE.sub("", path)
    return path


@dataclass(frozen=True, slots=True)
class _Pattern:
    text: str
    regex: re.Pattern[str]
    absolute: bool


class Patterns:
    """Globs over paths. One that matches a directory matches everything below it.

    `name` and `*.ext` match at any depth; `dir/name` from a root; `/abs/olute` and `~/home` by the real path.
    `*` and `?` stay inside a name, `**` as a whole name crosses directories, `[a-z]`, `{a,b}` and `\\` as usual.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.texts = tuple(patterns)
        if len(self.texts) > MOST_PATTERNS:
            raise InvalidArgument(f"{len(self.texts)} path patterns; at most {MOST_PATTERNS} can be held")
        self._all = list(_compiled(self.texts))

    def __bool__(self) -> bool:
        return bool(self._all)

    def find(self, relative: str, absolute: str) -> str | None:
        """The first pattern that a place matches, by its path from its root and by its absolute path."""
        if not self._all:
            return None
        relative, absolute = folded(relative), folded(absolute)
        for pattern in self._all:
            if pattern.regex.fullmatch(absolute if pattern.absolute else relative):
                return pattern.text
        return None


def _compiled(texts: Iterable[str]) -> Iterator[_Pattern]:
    room = MOST_CHARACTERS
    for text in texts:
        for pattern in _compile(text):
            room -= len(pattern.regex.pattern)
            yield pattern
        if room < 0:
            raise InvalidArgument("the path patterns are too many and too long to be held; write fewer alternatives")


def _compile(text: str) -> list[_Pattern]:
    if not text.strip("/") or "\0" in text:
        raise InvalidArgument(f"the path pattern {text!r} names nothing; give a name or a glob")
    glob = os.path.expanduser(text).rstrip("/")
    if not glob.startswith("/"):
        floating = "/" not in glob
        return [_Pattern(text, _regex(f"**/{glob}" if floating else glob.removeprefix("./"), text), False)]
    return [_Pattern(text, _regex(spelling, text), True) for spelling in {glob, _real_head(glob)}]


def _real_head(glob: str) -> str:
    """An absolute pattern with its literal beginning resolved: it closes the place, not one spelling of it."""
    parts = glob.split("/")
    literal = 0
    while literal < len(parts) and not re.search(r"[*?\[{]", parts[literal]):
        literal += 1
    head = os.path.realpath("/".join(parts[:literal]) or "/")
    return "/".join([head.rstrip("/"), *parts[literal:]])


def _regex(glob: str, text: str) -> re.Pattern[str]:
    """In the language of `globs.py`, where a hostile pattern costs what a harmless one costs; a place matches with
    everything below it."""
    try:
        compiled = compile_glob(folded(glob))
    except InvalidArgument as fault:
        raise InvalidArgument(f"the path pattern {text[:200]!r}: {fault.message}") from None
    return re.compile(f"(?:{compiled.regex.pattern})(?:/.*)?", re.DOTALL)
