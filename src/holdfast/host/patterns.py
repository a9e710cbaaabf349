"""Path patterns of a Scope: which places are closed, which names are protected."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.errors import InvalidArgument

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
    `*` and `?` stay inside a name, `**` crosses directories, `[a-z]` and `{a,b}` as usual.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.texts = tuple(patterns)
        self._all = [compiled for text in self.texts for compiled in _compile(text)]

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
    body = "".join(_translated(folded(glob), text))
    return re.compile(f"{body}(?:/.*)?", re.DOTALL)


def _translated(glob: str, text: str) -> Iterable[str]:
    position, depth = 0, 0
    while position < len(glob):
        char = glob[position]
        position += 1
        if glob.startswith("**/", position - 1) and glob[position - 2 : position - 1] in ("", "/"):
            position += 2
            yield "(?:.*/)?"
        elif glob.startswith("**", position - 1):
            position += 1
            yield ".*"
        elif char == "*":
            yield "[^/]*"
        elif char == "?":
            yield "[^/]"
        elif char == "[":
            end = glob.find("]", position + (2 if glob[position : position + 1] in ("!", "^") else 1))
            if end < 0:
                raise InvalidArgument(f"the path pattern {text!r} has a '[' without ']'")
            inside = glob[position:end].replace("\\", "\\\\").replace("[", "\\[")
            yield f"(?!/)[{'^' + inside[1:] if inside[0] in '!^' else inside}]"
            position = end + 1
        elif char == "{":
            depth += 1
            yield "(?:"
        elif char == "}" and depth:
            depth -= 1
            yield ")"
        elif char == "," and depth:
            yield "|"
        else:
            yield re.escape(char)
    if depth:
        raise InvalidArgument(f"the path pattern {text!r} has a '{{' without '}}'")
