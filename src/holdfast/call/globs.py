"""The patterns of rules, for one word of a command and for a path in the workspace. Linear in time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

LONGEST_PATTERN = 1000
MOST_ALTERNATIVES = 100


class BadPattern(ValueError):
    """A pattern that can't mean anything; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class WordGlob:
    """`*`, `?` and `[...]` over one word or one path segment."""

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
    if not any(mark in text for mark in "*?["):
        return WordGlob(text, None)
    pieces = [_fixed(piece) for piece in _split_at_stars(text)]
    # Each middle piece is taken where it first fits and never again: no backtracking, whatever the pattern.
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    tail = f".*{pieces[-1]}" if len(pieces) > 1 else ""
    return WordGlob(text, re.compile(pieces[0] + middle + tail, re.DOTALL))


def _split_at_stars(text: str) -> Iterator[str]:
    start = at = 0
    while at < len(text):
        if text[at] == "[":
            at = _class_end(text, at)
        elif text[at] == "*":
            yield text[start:at]
            start = at + 1
        at += 1
    yield text[start:]


def _class_end(text: str, start: int) -> int:
    """Where the `]` is that ends the `[` at `start`; a `]` that comes first is a member."""
    at = start + 1
    if text[at : at + 1] in ("!", "^"):
        at += 1
    end = text.find("]", at + 1)
    if end < 0:
        raise BadPattern(f"`[` without its `]` in {text!r}; write `[[]` for the character itself")
    return end


def _fixed(piece: str) -> str:
    """A piece without `*` as a regular expression."""
    out: list[str] = []
    at = 0
    while at < len(piece):
        if piece[at] == "[":
            end = _class_end(piece, at)
            out.append(_character_class(piece[at + 1 : end]))
            at = end
        else:
            out.append("." if piece[at] == "?" else re.escape(piece[at]))
        at += 1
    return "".join(out)


def _character_class(members: str) -> str:
    negated = members[:1] in ("!", "^")
    ranges = re.findall(r"(.)-(.)|(.)", members[1:] if negated else members, re.DOTALL)
    body = "".join(f"{re.escape(low)}-{re.escape(high)}" if high else re.escape(one) for low, high, one in ranges)
    try:
        re.compile(f"[{body}]")
    except re.error as error:
        raise BadPattern(f"bad character class [{members}]: {error}") from None
    return f"[{'^' if negated else ''}{body}]"


@dataclass(frozen=True, slots=True)
class PathGlob:
    """As gitignore reads it: without `/` a name at any depth, else a path from the workspace's root."""

    ways: tuple[tuple[WordGlob | None, ...], ...]
    everything: bool
    absolute: bool

    def matches(self, path: str) -> bool:
        """Exactly this path: how a rule that allows is read."""
        if self.everything:
            return True
        if _leaves_workspace(path) and not self.absolute:
            return False
        parts = path.split("/")
        return any(_fits(way, parts) for way in self.ways)

    def covers(self, path: str) -> bool:
        """This path or anything above it: how a rule that asks or denies is read."""
        if self.everything:
            return True
        parts = path.split("/")
        return any(_fits((*way, None), parts) for way in self.ways)


def _leaves_workspace(path: str) -> bool:
    return path.startswith("/") or ".." in path.split("/")


def _fits(way: Sequence[WordGlob | None], parts: Sequence[str]) -> bool:
    """`None` in a way is `**`, any number of segments. Falls back to the last `**` only: linear."""
    at = part = mark = 0
    star = -1
    while part < len(parts):
        glob = way[at] if at < len(way) else None
        if at < len(way) and glob is None:
            star, mark, at = at, part, at + 1
        elif glob is not None and glob.matches(parts[part]):
            at, part = at + 1, part + 1
        elif star >= 0:
            mark += 1
            at, part = star + 1, mark
        else:
            return False
    return all(glob is None for glob in way[at:])


@lru_cache(maxsize=4096)
def path_glob(pattern: str) -> PathGlob:
    text = pattern.removeprefix("./")
    everything = text in ("*", "**", "**/*")
    ways = tuple(_way(alternative) for alternative in _alternatives(text))
    return PathGlob(ways, everything, text.startswith("/"))


def _way(text: str) -> tuple[WordGlob | None, ...]:
    if text.endswith("/") and text != "/":
        text += "**"
    segments = text.split("/") if "/" in text else ["**", text]
    return tuple(None if segment == "**" else word_glob(segment) for segment in segments)


def _alternatives(text: str) -> list[str]:
    """`a{b,c}` as `ab` and `ac`."""
    done: list[str] = []
    todo = [text]
    while todo:
        if len(done) + len(todo) > MOST_ALTERNATIVES:
            raise BadPattern(f"more than {MOST_ALTERNATIVES} alternatives in {text!r}")
        current = todo.pop()
        inner = re.search(r"\{([^{}]*)\}", current)
        if inner is None:
            if "{" in current or "}" in current:
                raise BadPattern(f"a brace without its pair in {text!r}")
            done.append(current)
        else:
            before, after = current[: inner.start()], current[inner.end() :]
            todo += [before + choice + after for choice in inner[1].split(",")]
    return done


def folded(text: str) -> str:
    """`text` as a careless file system may read it: without case and without invisible characters."""
    if text.isascii():
        return text.lower()
    visible = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFC", visible).casefold()


def check_pattern(pattern: str) -> None:
    if not pattern.strip():
        raise BadPattern("an empty pattern matches nothing; write `*` for everything")
    if len(pattern) > LONGEST_PATTERN:
        raise BadPattern(f"a pattern of {len(pattern)} characters; at most {LONGEST_PATTERN}")
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in pattern):
        raise BadPattern(f"a control character in {pattern!r}")
    path_glob(pattern)
