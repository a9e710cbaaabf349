"""CL-PPCRE regular expressions, run by the `regex` package within a time limit.

Neither `re` nor `regex` has exactly CL-PPCRE's syntax. A pattern is therefore parsed with CL-PPCRE's grammar (in its
default configuration: no named registers, no \\Q quoting, no properties) and translated to an equivalent one for
`regex`. See https://edicl.github.io/cl-ppcre/.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

MAX_LENGTH = 4_096
MAX_DEPTH = 100
SIMPLE_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b", "a": "\a", "e": "\x1b"}
CLASSES = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": r"[\ \t\n\r\f]", "S": r"[^\ \t\n\r\f]"}
ANCHORS = {"A": r"\A", "Z": r"(?=\n?\Z)", "z": r"\Z", "b": r"\b", "B": r"\B"}
LOOKS = {"=": "(?=", "!": "(?!", ">": "(?>", "<=": "(?<=", "<!": "(?<!"}


class BadLispPattern(ValueError):
    """The pattern is not valid in CL-PPCRE; the message says why."""


class PatternTimeout(ValueError):
    """The pattern ran longer than the time limit."""


class Budget:
    """The time limit for all searches of one call together."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._clock, self._seconds = clock, seconds
        self._end = clock() + seconds

    def left(self) -> float:
        return min(self._seconds, self._end - self._clock())


class Pattern:
    """A compiled pattern."""

    def __init__(self, source: str, budget: Budget) -> None:
        self.source = source
        self._budget = budget
        import regex  # noqa: PLC0415 - slow to load, and most servers never see a Lisp pattern

        try:
            self._compiled = regex.compile(translate(source), regex.VERSION0)
        except (regex.error, OverflowError) as error:
            raise BadLispPattern(str(error)) from error

    def search(self, text: str) -> bool:
        """Whether the pattern is found anywhere in the text."""
        left = self._budget.left()
        try:
            if left > 0:
                return self._compiled.search(text, timeout=left, concurrent=True) is not None
        except TimeoutError:
            pass
        raise PatternTimeout(f"the pattern {self.source!r} took too long")


def translate(source: str) -> str:
    """Translates a CL-PPCRE pattern to an equivalent one for `regex`."""
    if len(source) > MAX_LENGTH:
        raise BadLispPattern(f"the pattern is {len(source)} characters long; the limit is {MAX_LENGTH}")
    parser = _Parser(source)
    piece = parser.alternatives(_Flags(), 0)
    if parser.at < len(source):
        raise BadLispPattern(f"unmatched ) at position {parser.at}")
    return piece.text


class _RegexPiece(NamedTuple):
    """A translated piece of a pattern, and the number of characters it matches; None if that varies."""

    text: str
    width: int | None


class _Flags:
    """The modifiers in effect from here to the end of the group."""

    def __init__(self, on: frozenset[str] = frozenset()) -> None:
        self.on = on

    def copy(self) -> _Flags:
        return _Flags(self.on)


class _Parser:
    """CL-PPCRE's grammar, with one method for each production."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.registers = 0  # how many are closed so far

    def alternatives(self, flags: _Flags, depth: int) -> _RegexPiece:
        """Branches up to the end of the group. Flags set in one branch stay set in the next, as in CL-PPCRE."""
        if depth > MAX_DEPTH:
            raise BadLispPattern(f"groups are nested more than {MAX_DEPTH} deep")
        branches = [self._sequence(flags, depth)]
        while self._peek(flags) == "|":
            self.at += 1
            branches.append(self._sequence(flags, depth))
        widths = {branch.width for branch in branches}
        return _RegexPiece("|".join(branch.text for branch in branches), widths.pop() if len(widths) == 1 else None)

    def _sequence(self, flags: _Flags, depth: int) -> _RegexPiece:
        texts: list[str] = []
        width: int | None = 0
        while self._peek(flags) not in ("", "|", ")"):
            piece = self._quantified(self._atom(flags, depth), flags)
            texts.append(piece.text)
            width = None if width is None or piece.width is None else width + piece.width
        return _RegexPiece("".join(texts), width)

    def _quantified(self, piece: _RegexPiece, flags: _Flags) -> _RegexPiece:
        self._peek(flags)
        start = self.at
        least, most = self._quantifier()
        if self.at == start:
            return piece
        written = f"{{{least},{'' if most is None else most}}}"
        lazy = self._peek(flags) == "?"
        self.at += lazy
        width = None if piece.width is None or least != most else piece.width * least
        return _RegexPiece(f"(?:{piece.text}){written}{'?' * lazy}", width)

    def _quantifier(self) -> tuple[int, int | None]:
        """The bounds of the quantifier at this position; consumes nothing if there is none."""
        found = re.compile(r"[*+?]|\{([0-9]+)(,?)([0-9]*)\}").match(self.source, self.at)
        if not found or (found[1] and not found[2] and found[3]):
            return 0, 0
        self.at = found.end()
        if found[1]:
            most = found[3] if found[2] else found[1]
            return int(found[1]), max(int(found[1]), int(most)) if most else None
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[found[0]]

    def _atom(self, flags: _Flags, depth: int) -> _RegexPiece:
        start, char = self.at, self.source[self.at]
        if char in "*+?{":
            self._quantifier()
            if self.at > start:
                raise BadLispPattern(f"quantifier {self.source[start : self.at]} at position {start} not allowed")
        self.at += 1
        match char:
            case ".":
                return _RegexPiece("(?s:.)" if "s" in flags.on else r"[^\n]", 1)
            case "^":
                return _RegexPiece("(?m:^)" if "m" in flags.on else r"\A", 0)
            case "$":
                return _RegexPiece(r"(?=\n|\Z)" if "m" in flags.on else r"(?=\n?\Z)", 0)
            case "[":
                return _RegexPiece(_folded(self._class(start), flags), 1)
            case "\\":
                return self._escape(flags)
            case "(":
                return self._group(start, flags, depth)
            case _:
                return _RegexPiece(_folded(_literal(char), flags), 1)

    def _escape(self, flags: _Flags) -> _RegexPiece:
        if self.at == len(self.source):  # a final backslash matches itself
            return _RegexPiece(r"\\", 1)
        char = self._take("")
        if char in ANCHORS:
            return _RegexPiece(ANCHORS[char], 0)
        if char in CLASSES:
            return _RegexPiece(CLASSES[char], 1)
        if char in "123456789":
            digits = re.compile("[0-9]+").match(self.source, self.at - 1)
            number = int(digits[0][:9]) if digits else 0
            if digits and (number < 10 or number <= self.registers):
                self.at = digits.end()
                return _RegexPiece(_folded(rf"(?:\{number})", flags), None)
        self.at -= 1
        return _RegexPiece(_folded(_literal(self._escaped_character()), flags), 1)

    def _escaped_character(self) -> str:
        """The character that an escape stands for. An unknown escape stands for the character itself."""
        char = self._take("the pattern ends with a backslash")
        if char == "c":
            return chr(ord(self._take("no character follows \\c").upper()) ^ 0x40)
        if char == "x":
            return chr(int(self._take_matching("[0-9A-Fa-f]{0,2}") or "0", 16))
        if char.isdecimal():
            self.at -= 1
            return chr(int(self._take_matching("[0-7]{0,3}") or "0", 8) & 0xFF)
        return SIMPLE_ESCAPES.get(char, char)

    def _class(self, start: int) -> str:
        """A character class, item by item. `]` is literal in first position, `[` anywhere."""
        inverted = self.source.startswith("^", self.at)
        self.at += inverted
        items: list[str] = []
        last, hyphen, first = "", False, True
        while True:
            char = self._take(f"the class at position {start} has no closing ]")
            if char == "\\" and self.source[self.at : self.at + 1] in (*CLASSES,):
                items.append(_class_item(self._take("")))
                items += ["\\-"] * (hyphen + self.source.startswith("-", self.at))
                self.at += self.source.startswith("-", self.at)
                hyphen, first = False, False
                continue
            if char == "]" and not first:
                return f"[{'^' * inverted}{''.join(items)}{'-' * hyphen}]"
            plain, first = not first and char == "-", False
            if plain and last and not hyphen:
                hyphen = True
                continue
            char = self._escaped_character() if char == "\\" else char
            if hyphen and last:
                if char < last:
                    raise BadLispPattern(f"the range {last}-{char} is out of order")
                items[-1], last = f"{_literal(last)}-{_literal(char)}", ""
            else:
                items.append(_literal(char))
                last = char
            hyphen = False

    def _group(self, start: int, flags: _Flags, depth: int) -> _RegexPiece:
        if not self.source.startswith("?", self.at):
            inner = self._closed(start, flags.copy(), depth)
            self.registers += 1
            return _RegexPiece(f"({inner.text})", inner.width)
        self.at += 1
        named = self._take_matching("[-imsx]*")
        char = self._take("the pattern ends after (?")
        if named and char not in (":", ")"):
            raise BadLispPattern(f"sequence (?{named}{char} not recognized")
        if char == ")":
            _set(flags, named)
            return _RegexPiece("", 0)
        if char == ":":
            inside = flags.copy()
            _set(inside, named)
            flags.on = (flags.on - {"x"}) | (inside.on & {"x"})  # outlives the group, as in CL-PPCRE
            inner = self._closed(start, inside, depth)
            return _RegexPiece(f"(?:{inner.text})", inner.width)
        if char == "(":
            return self._branch(start, flags, depth)
        return self._look(char, start, flags, depth)

    def _look(self, char: str, start: int, flags: _Flags, depth: int) -> _RegexPiece:
        if char == "<":
            char += self._take("the pattern ends after (?<")
        if char not in LOOKS:
            raise BadLispPattern(f"CL-PPCRE has no (?{char}")
        inner = self._closed(start, flags.copy(), depth)
        if char[0] == "<" and inner.width is None:
            raise BadLispPattern("variable-length look-behind is not supported")
        return _RegexPiece(f"{LOOKS[char]}{inner.text})", inner.width if char == ">" else 0)

    def _branch(self, start: int, flags: _Flags, depth: int) -> _RegexPiece:
        """`(?(1)yes|no)` and `(?(?=x)yes|no)`."""
        number = self._take_matching(r"[0-9]+\)")
        if number:
            test = f"({number}"
        else:
            test = self._group(self.at - 1, flags, depth + 1).text
            if not test.startswith(tuple(LOOKS.values())):
                raise BadLispPattern("a branch needs a number, a look-ahead or a look-behind as its test")
        inner = self._closed(start, flags.copy(), depth)
        return _RegexPiece(f"(?{test}{inner.text})", None)

    def _closed(self, start: int, flags: _Flags, depth: int) -> _RegexPiece:
        inner = self.alternatives(flags, depth + 1)
        self._take(f"the ( at position {start} is never closed")
        return inner

    def _peek(self, flags: _Flags) -> str:
        """The next significant character: skips `(?#...)`, and in extended mode whitespace and comments."""
        while True:
            before = self.at
            if self.source.startswith("(?#", self.at):
                end = self.source.find(")", self.at)
                if end < 0:
                    raise BadLispPattern("a (?# comment is not closed")
                self.at = end + 1
            if "x" in flags.on:
                self._take_matching(r"(?:[ \t\n\r\f]|#[^\n]*\n?)*")
            if self.at == before:
                return self.source[self.at : self.at + 1]

    def _take_matching(self, what: str) -> str:
        found = re.compile(what).match(self.source, self.at)
        self.at = found.end() if found else self.at
        return found[0] if found else ""

    def _take(self, otherwise: str) -> str:
        char = self.source[self.at : self.at + 1]
        if not char:
            raise BadLispPattern(otherwise)
        self.at += 1
        return char


def _set(flags: _Flags, named: str) -> None:
    on, _, off = named.partition("-")
    flags.on = (flags.on | set(on)) - set(off)


def _folded(text: str, flags: _Flags) -> str:
    return f"(?i:{text})" if "i" in flags.on else text


def _literal(char: str) -> str:
    if char.isalnum() or char == "_":
        return char
    return f"\\{char}" if char.isprintable() and char.isascii() else f"\\U{ord(char):08x}"


def _class_item(char: str) -> str:
    return r"\ \t\n\r\f" if char == "s" else rf"\{char}"
