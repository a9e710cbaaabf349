"""The patterns of rules and scopes: one word of a command, or a place in the workspace. Linear in time.

What allows is read narrowly (`PathGlob.matches`): exactly these paths from the workspace's root. What asks, denies or
protects is read widely (`closing`): `name` and `*.ext` at any depth, however they are cased, and everything below.
The rules and the scope both use `closing`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from gripfast.records import dataclass
from gripfast.text.fold import folded, foldings
from gripfast.text.globs import BadPattern, check_glob, compiled, compiled_word, regex_of, spread

_BELOW = "(?:/.*)?"
_ALWAYS_GOOD = re.compile(r"[A-Za-z0-9 *._/+-]{1,200}")


@dataclass(frozen=True, slots=True)
class WordGlob:
    """`*`, `?` and `[...]` over one word."""

    text: str
    regex: re.Pattern[str] | None

    @property
    def spelled_out(self) -> bool:
        """Whether at least the beginning of the word is written down, not left to a wildcard."""
        return self.text[:1] not in ("*", "?", "[")

    def matches(self, word: str) -> bool:
        return word == self.text if self.regex is None else self.regex.fullmatch(word) is not None


@lru_cache(maxsize=4096)
def word_glob(text: str) -> WordGlob:
    wild = any(mark in text for mark in "*?[")
    return WordGlob(text, compiled_word(text) if wild else None)


@dataclass(frozen=True, slots=True)
class PathGlob:
    """The narrow and the wide reading of one pattern."""

    exact: re.Pattern[str]
    wide: re.Pattern[str]
    everything: bool
    absolute: bool

    def matches(self, path: str) -> bool:
        """Exactly this path: how a rule that allows is read."""
        if self.everything:
            return True
        if _leaves_workspace(path) and not self.absolute:
            return False
        return self.exact.fullmatch(path) is not None

    def covers(self, path: str) -> bool:
        """This path or anything above it, however it is cased: how a rule that asks or denies is read."""
        return self.everything or any(map(self.wide.fullmatch, foldings(path)))


def _leaves_workspace(path: str) -> bool:
    return path.startswith("/") or ".." in path.split("/")


@lru_cache(maxsize=4096)
def path_glob(pattern: str) -> PathGlob:
    text = _plain(pattern)
    exact = compiled((_exactly(each, text) for each in spread(text, text)), text)
    return PathGlob(exact, closing(pattern), text in ("*", "**", "**/*"), text.startswith("/"))


@lru_cache(maxsize=4096)
def closing(pattern: str) -> re.Pattern[str]:
    """What a pattern closes: matches the folded path of every place it names, and of everything below one."""
    text = _plain(pattern)
    return compiled((_closed(each, text) for each in _folded(text)), text)


def _plain(pattern: str) -> str:
    check_glob(pattern)
    return re.sub(r"(?<!\\)/{2,}", "/", pattern).removeprefix("./") or "."


def _folded(text: str) -> Iterator[str]:
    """The alternatives as names are compared. A dot or a space means itself with a backslash or without."""
    for each in spread(text, text):
        yield folded(re.sub(r"\\(.)", lambda pair: pair[1] if pair[1] in ". " else pair[0], each, flags=re.DOTALL))


def _exactly(text: str, whole: str) -> str:
    """A regex for one alternative; `dir/` and `dir/**` are the directory and everything below."""
    if text.endswith("/") and text != "/":
        text += "**"
    inner = text.removesuffix("/**")
    return regex_of(text, whole) if inner in (text, "") else regex_of(inner, whole) + _BELOW


def _closed(text: str, whole: str) -> str:
    """A regex for one alternative and everything below it."""
    inner = text.rstrip("/")
    if inner and "/" not in inner:
        return regex_of(f"**/{inner}", whole) + _BELOW
    inner = inner.removesuffix("/**")
    return regex_of(inner, whole) + _BELOW if inner else "/.*"


def is_always_good(pattern: str) -> bool:
    """Whether nothing in it could make a pattern invalid, so that it can be compiled when it is first used: most
    never are."""
    return _ALWAYS_GOOD.fullmatch(pattern) is not None


def check_pattern(pattern: str) -> None:
    """Refuse a rule's pattern that means nothing, or that nobody could read."""
    if not pattern.strip():
        raise BadPattern("an empty pattern matches nothing; write `*` for everything")
    if is_always_good(pattern):
        return
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in pattern):
        raise BadPattern(f"a control character in {pattern!r}")
    path_glob(pattern)
