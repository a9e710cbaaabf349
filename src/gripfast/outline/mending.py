"""Source that a grammar can't read, rewritten so that it can. Only spaces and words of the same length are put in the
place of something, so every position stays what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Attempt(NamedTuple):
    """A text to parse. `marks`: rows that have nothing but a macro, which belongs to the declaration below; last row
    to first row."""

    source: bytes
    marks: dict[int, int]


def attempts(source: bytes, mend: str) -> Iterator[Attempt]:
    """Texts to parse until one has no fault, the most promising first."""
    match mend:
        case "c" | "c++":
            first = _without_macros(source)
            text = _without_what_only_the_preprocessor_knows(first.source)
            yield Attempt(_without_attributes(text) if mend == "c++" else text, first.marks)
        case "ts":
            text = _typescript(source)
            yield Attempt(text, {})
            if text != source:
                yield Attempt(source, {})
        case _:
            yield Attempt(source, {})


_SPACES = bytes(each if each in b" \t\r\n\f\v" else 32 for each in range(256))


def _blank(found: re.Match[bytes]) -> bytes:
    return found[0].translate(_SPACES)


# --- C and C++ ---

# A macro before a declaration (`LUA_API int f(`) or before its name (`int ZEXPORT f(`), which no grammar can know.
_MACRO = re.compile(  # begins with a set of letters: the search skips to those
    rb"[A-Z](?:(?<=^[A-Z])[A-Z0-9_]{2,}(?:\([^;{}\n]*\))?"
    rb"(?=[ \t]*(?:/\*[^\n]*?\*/[ \t]*)?\n?[ \t]*(?:(?:[A-Za-z_]\w*)[\s*]{1,4}){1,4}[A-Za-z_]\w*\s?\()"
    rb"|(?<=[\w*] [A-Z])(?<!define [A-Z])[A-Z0-9_]{2,}(?= [A-Za-z_]\w*\s?\([^;]*$))",
    re.MULTILINE,
)
# The star of `char *f(a) int a; {`: the grammar has definitions of that kind for plain types alone, and takes others
# for declarations.
_OLD_STYLE = re.compile(rb";[^\n]*\n\{")
_OLD_STYLE_STAR = re.compile(
    rb"^[A-Za-z_][^;{}()#\n]*\*(?=[^;{}()#\n]*\w\s?\([\w\s,]*\)\s*\n(?:[^{}();]*;[^\n]*\n)+\{)", re.MULTILINE
)
_REST_OF_LINE = re.compile(rb"[ \t]*(?:/\*[^\n]*\*/[ \t]*)?$", re.MULTILINE)
_STORAGE = frozenset(b"static inline extern const volatile register unsigned signed".split())


def _without_macros(source: bytes) -> Attempt:
    blank = bytearray(source)
    alone: dict[int, int] = {}
    row, counted = 1, 0
    for macro in _MACRO.finditer(source):
        start, end = macro.span()
        if _may_be_type(source, start):
            continue
        blank[start:end] = b" " * (end - start)
        if _REST_OF_LINE.match(source, end):
            row, counted = row + source.count(b"\n", counted, start), start
            alone[row] = row
    text = bytes(blank)
    if _OLD_STYLE.search(text):
        text = _OLD_STYLE_STAR.sub(lambda found: found[0].replace(b"*", b" "), text)
    return Attempt(text, alone)


def _may_be_type(source: bytes, start: int) -> bool:
    """Whether the word there may be the type itself: there is none before it on its line."""
    words = source[source.rfind(b"\n", 0, start) + 1 : start].replace(b"*", b" ").split()
    return bool(words) and all(word in _STORAGE or word.isupper() for word in words)


# Each pattern begins with characters that the search can skip to: one that begins with `^` is tried everywhere.
_BODY = re.compile(rb"(?:\n|\)[ \t\w]*)\{[ \t]*(?:/[*/][^\n]*)?\n.*?^\}(?:[ \t]*\})*", re.MULTILINE | re.DOTALL)
_DIRECTIVE = re.compile(rb"[ \t]*#[ \t]*(if|el|endif)")
_LONG_DEFINE = re.compile(rb"#[ \t]*define\b(?:[^\n]*\\\r?\n)+[^\n]*")
_COMMENT = re.compile(rb"/\*.*?\*/")
_EXTERN_C = re.compile(rb"#[ \t]*if[^\n]*__cplusplus[^\n]*\n\s*(?:extern[ \t]+\"C\"\s*\{|\})[^\n]*\n\s*#[ \t]*endif")
_ALONE = re.compile(rb"\n[A-Z][A-Z0-9_]{2,}\([^;{}\n]*\)[ \t]*(?=\n(?:\s*\n|#|[A-Z]|/))")
_ALONE_INSIDE = re.compile(rb"\n[ \t]+_?[A-Z][A-Z0-9_]{3,}\b(?:\([^;{}\n]*\))?[ \t]*(?=\n)")
_CLASS_MACRO = re.compile(
    rb"(?:class|struct)[ \t]+_?[A-Z][A-Z0-9_]{3,}(?:\([^;{}\n]*\))?(?=[ \t]+\w+\s*(?:final\s*)?[:{])"
)
_END_MACRO = re.compile(rb"[A-Z][A-Z0-9_]{3,}(?:\([\w ]*\))?(?=\s*[{;])")
_UNDERSCORED = re.compile(rb"_[A-Z][A-Z0-9_]{3,}\b(?:\([\w ]*\))?(?=[ \t]*\n?[ \t]*[A-Za-z_~{:;])")
_HIDDEN_PROTOTYPE = re.compile(rb"(OF|__P|PARAMS|PROTO)\((\([^;{}]*?\))\)(?=\s*;)")
_WORD_BEFORE_TYPE = re.compile(
    rb"\n(?!(?:static|extern|inline|const|unsigned|signed|long|short|typedef|register|volatile|return|else|struct|union"
    rb"|enum|auto|friend|virtual|constexpr|explicit|mutable|typename|using|new|case|goto)\b)[a-z_]\w*"
    rb"(?=[ \t]+(?:const|void|int|char|unsigned|signed|long|short|float|double|struct|union|enum)\b)"
)
_WORD_BEFORE_STAR = re.compile(rb"[A-Z][A-Z0-9_]+(?=[ \t]*\*)")
_NO_TYPES = (b"define", b"const", b"return", b"static", b"extern", b"inline", b"volatile", b"register", b"case")
_ENDS = (b"{", b"}", b";", b":", b"\n")
_OPERATORS = tuple(bytes([each]) for each in b"(,=+-/&|!<*?[%^~.")
_UNIT = re.compile(rb"[0-9] [A-Z][A-Z0-9_]*\b")
_RESTRICT = re.compile(rb"[A-Z_]*RESTRICT\b(?!\s*\()")


def _without_what_only_the_preprocessor_knows(source: bytes) -> bytes:
    source = _LONG_DEFINE.sub(
        lambda found: _COMMENT.sub(_blank, found[0]), source
    )  # its text ends there for a grammar
    source = _EXTERN_C.sub(_blank, source)
    source = _ALONE.sub(_blank, source)
    source = _HIDDEN_PROTOTYPE.sub(
        lambda found: b" " * (len(found[1]) + 1) + found[2] + b" ", source
    )  # `f OF((int));`
    source = _WORD_BEFORE_TYPE.sub(_blank, source)  # `local int x;`
    source = _WORD_BEFORE_STAR.sub(_qualifier, source)  # `struct s FAR *x;`
    source = _UNIT.sub(lambda found: found[0][:1] + b" " * (len(found[0]) - 1), source)  # `64 KB`
    if b"RESTRICT" in source:
        source = _RESTRICT.sub(_blank, source)
    end = _last_end(source)
    return _BODY.sub(lambda found: _first_branches(found[0]), source[:end]) + source[end:]


def _without_attributes(source: bytes) -> bytes:
    """Without the macros that C++ has in its classes."""
    source = _ALONE_INSIDE.sub(_statement, source)  # `Q_OBJECT`
    source = _CLASS_MACRO.sub(_all_but_first_word, source)  # `class LIB_API Box {`
    source = _END_MACRO.sub(_ending, source)  # `int size() const LIB_NOEXCEPT {`
    return _UNDERSCORED.sub(_attribute, source)  # `_GLIBCXX_CONSTEXPR void f()`


def _last_end(source: bytes) -> int:
    """Where the last function ends: looking for the end of one behind it would cost a walk to the end of the text."""
    closing = source.rfind(b"\n}")
    return 0 if closing < 0 else source.find(b"\n", closing + 1) % (len(source) + 1)


def _statement(found: re.Match[bytes]) -> bytes:
    """Nothing instead of a macro on a line of its own, where the line above ends something."""
    return _blank(found) if found.string[found.start() - 1 : found.start()] in _ENDS else found[0]


def _all_but_first_word(found: re.Match[bytes]) -> bytes:
    first = found[0].split()[0]
    return first + b" " * (len(found[0]) - len(first))


def _ending(found: re.Match[bytes]) -> bytes:
    """Nothing instead of a macro between the parameters of a function and its body."""
    before = found.string[max(0, found.start() - 20) : found.start()]
    is_after_all = before[-1:].isspace() and before.rstrip().endswith((b")", b"const", b"override", b"final"))
    return _blank(found) if is_after_all else found[0]


def _attribute(found: re.Match[bytes]) -> bytes:
    """Nothing instead of a word where a declaration may begin or go on; not in an expression or a directive."""
    start = found.start()
    if not found.string[start - 1 : start].isspace():
        return found[0]
    line = found.string[found.string.rfind(b"\n", 0, start) + 1 : start].strip()
    before = line or found.string[max(0, start - 200) : start].rstrip()
    is_used = before.endswith((*_OPERATORS, b"return", b"case")) and not before.endswith(b"*/")
    return found[0] if is_used or line.startswith(b"#") else _blank(found)


def _qualifier(found: re.Match[bytes]) -> bytes:
    """Nothing instead of a word between a type and a star, unless it is the type itself."""
    before = found.string[max(0, found.start() - 10) : found.start()]
    is_after_type = before[-1:] == b" " and (before[-2:-1].islower() or before[-2:-1] in b"_0123456789")
    return b" " * len(found[0]) if is_after_type and not before[:-1].endswith(_NO_TYPES) else found[0]


def _first_branches(body: bytes) -> bytes:
    """A function without directives, and of every `#if` its first branch: brackets may open in one and in the other,
    and close once."""
    if b"#" not in body:
        return body
    lines = body.split(b"\n")
    shown: list[bool] = []  # of each `#if` around the line: whether this is its first branch
    for at, line in enumerate(lines):
        found = _DIRECTIVE.match(line)
        if found and found[1] == b"if":
            shown.append(True)
        elif found and shown:
            shown[-1] = False
        if found or not all(shown):
            lines[at] = line.translate(_SPACES)
        if found and found[1] == b"endif" and shown:
            shown.pop()
    return b"\n".join(lines)


def bodies(source: bytes) -> list[tuple[int, int]]:
    """Where functions open and end if one goes by the left edge."""
    found = _BODY.finditer(source, 0, _last_end(source))
    return [(source.index(b"{", body.start()), body.end()) for body in found]


def emptied(source: bytes, lost: list[tuple[int, int]]) -> bytes:
    """With nothing left inside these, so that the parser finds where they end."""
    blank = bytearray(source)
    for start, end in lost:
        blank[start + 1 : end - 1] = source[start + 1 : end - 1].translate(_SPACES)
    return bytes(blank)


# --- TypeScript ---

# Each begins with what the search can skip to.
_VARIANCE = re.compile(rb"[<,]\s*(?:in[ \t]+out|in|out)(?=[ \t]+[A-Za-z_$][\w$]*\s*(?:[,>=]|extends\b))")
_NEXT_MEMBER = re.compile(rb"\n[ \t](?=[ \t]*<\s*[A-Za-z_$])")
_TYPE_AS_NAME = re.compile(rb"type(?<![\w$.]type)(?=\s+extends\b|\s*[,>|&\])?])")
_ENDS_A_MEMBER = re.compile(rb"[\w>)\]}'\"/]\s*$|^\s*//|^\s*$")
_IN_AS_NAME = re.compile(rb"\n[ \t]+in(?=\??:)")


def _typescript(source: bytes) -> bytes:
    """Without the variance of type parameters (`<in out T>`), with a semicolon between a member of an interface and
    one that begins with `<` on the next line, with other names for type parameters that are called `type` and members
    that are called `in`, and without escaped quotes in template types."""
    source = _VARIANCE.sub(lambda found: found[0][:1] + found[0][1:].translate(_SPACES), source)
    source = _NEXT_MEMBER.sub(_separated, source)
    source = _IN_AS_NAME.sub(lambda found: found[0][:-2] + b"In", source)
    return _TYPE_AS_NAME.sub(b"Type", source).replace(rb"\`", b"  ")


def _separated(found: re.Match[bytes]) -> bytes:
    end = found.start()
    above = found.string[found.string.rfind(b"\n", 0, end) + 1 : end]
    return b"\n;" if _ENDS_A_MEMBER.search(above) else found[0]
