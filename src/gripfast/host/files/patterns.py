"""Path patterns of a Scope: which places are closed, which names are protected."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass
from gripfast.text.fold import folded, foldings
from gripfast.text.patterns import closing

MOST_PATTERNS = 1000
MOST_CHARACTERS = 512 * 1024  # of all of them, compiled; a hostile workspace may bring some
_PLAIN_NAME = re.compile(r"\.?[A-Za-z0-9_][A-Za-z0-9_.~-]*(?<!\.)")


@dataclass(frozen=True, slots=True)
class _PathPattern:
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
            raise InvalidArgument(f"{len(self.texts)} path patterns; at most {MOST_PATTERNS} are allowed")
        self._all = list(_compiled(self.texts))
        self._names = frozenset(folded(text) for text in self.texts if _PLAIN_NAME.fullmatch(text))
        self._others = [pattern for pattern in self._all if not _PLAIN_NAME.fullmatch(pattern.text)]

    def __bool__(self) -> bool:
        return bool(self._all)

    def find(self, relative: str, absolute: str) -> str | None:
        """The first pattern that a place matches, by its path from its root and by its absolute path."""
        if not self._all:
            return None
        from_root, from_top = foldings(relative), foldings(absolute)
        names = {name for path in from_root for name in path.split("/")}
        for pattern in self._others if self._names.isdisjoint(names) else self._all:  # most are plain names
            if any(map(pattern.regex.fullmatch, from_top if pattern.absolute else from_root)):
                return pattern.text
        return None


def _compiled(texts: Iterable[str]) -> Iterator[_PathPattern]:
    room = MOST_CHARACTERS
    for text in texts:
        for pattern in _compile(text):
            room -= len(pattern.regex.pattern)
            yield pattern
        if room < 0:
            raise InvalidArgument("the path patterns are too many and too long; write fewer alternatives")


def _compile(text: str) -> list[_PathPattern]:
    if not text.strip("/") or "\0" in text:
        raise InvalidArgument(f"the path pattern {text!r} names nothing; give a name or a glob")
    glob = os.path.expanduser(text)
    if not glob.startswith("/"):
        return [_PathPattern(text, _closing(glob, text), False)]
    return [_PathPattern(text, _closing(spelling, text), True) for spelling in {glob, _real_head(glob)}]


def _real_head(glob: str) -> str:
    """An absolute pattern with its literal beginning resolved: it closes the place, not one spelling of it."""
    parts = glob.split("/")
    literal = 0
    while literal < len(parts) and not re.search(r"[*?\[{]", parts[literal]):
        literal += 1
    head = os.path.realpath("/".join(parts[:literal]) or "/")
    return "/".join([head.rstrip("/"), *parts[literal:]])


def _closing(glob: str, text: str) -> re.Pattern[str]:
    try:
        return closing(glob)
    except InvalidArgument as fault:
        raise InvalidArgument(f"the path pattern {text[:200]!r}: {fault.message}") from None
