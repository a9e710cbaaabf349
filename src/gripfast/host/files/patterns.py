"""Path patterns of a Scope: which places are closed, which names are protected."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass
from gripfast.text.fold import folded, foldings
from gripfast.text.patterns import closing, is_always_good

MOST_PATTERNS = 1000
MOST_CHARACTERS = 512 * 1024  # of all of them, compiled; a hostile workspace may bring some
_PLAIN_NAME = re.compile(r"\.?[A-Za-z0-9_][A-Za-z0-9_.~-]*(?<!\.)")


@dataclass(frozen=True)
class _PathPattern:
    """A pattern as it was written, and the glob that it means."""

    text: str
    glob: str

    @cached_property
    def absolute(self) -> bool:
        return self.glob.startswith("/")

    @cached_property
    def regex(self) -> re.Pattern[str]:
        return closing(self.glob)


class Patterns:
    """Globs over paths. One that matches a directory matches everything below it.

    `name` and `*.ext` match at any depth; `dir/name` from a root; `/abs/olute` and `~/home` by the real path.
    `*` and `?` stay inside a name, `**` as a whole name crosses directories, `[a-z]`, `{a,b}` and `\\` as usual.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.texts = tuple(patterns)
        if len(self.texts) > MOST_PATTERNS:
            raise InvalidArgument(f"{len(self.texts)} path patterns; at most {MOST_PATTERNS} are allowed")
        self._all = list(_checked(self.texts))
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


def _checked(texts: Iterable[str]) -> Iterator[_PathPattern]:
    """The patterns. Those of a usual form are compiled when they are first used: most are about writing."""
    room = MOST_CHARACTERS
    for text in texts:
        for pattern in _patterns(text):
            if not is_always_good(pattern.glob):
                room -= len(_compiled(pattern).pattern)
            yield pattern
        if room < 0:
            raise InvalidArgument("the path patterns are too many and too long; write fewer alternatives")


def _patterns(text: str) -> list[_PathPattern]:
    if not text.strip("/") or "\0" in text:
        raise InvalidArgument(f"the path pattern {text!r} names nothing; give a name or a glob")
    glob = os.path.expanduser(text)
    spellings = {glob, _real_head(glob)} if glob.startswith("/") else {glob}
    return [_PathPattern(text, spelling) for spelling in spellings]


def _real_head(glob: str) -> str:
    """An absolute pattern with its literal beginning resolved: it closes the place, not one spelling of it."""
    parts = glob.split("/")
    literal = 0
    while literal < len(parts) and not re.search(r"[*?\[{]", parts[literal]):
        literal += 1
    head = os.path.realpath("/".join(parts[:literal]) or "/")
    return "/".join([head.rstrip("/"), *parts[literal:]])


def _compiled(pattern: _PathPattern) -> re.Pattern[str]:
    try:
        return pattern.regex
    except InvalidArgument as fault:
        raise InvalidArgument(f"the path pattern {pattern.text[:200]!r}: {fault.message}") from None
