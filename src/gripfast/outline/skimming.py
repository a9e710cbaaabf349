"""A text without the bodies of functions in which nothing is defined: most of the time would go into parsing those,
and nothing of them is shown. Every row stays where it is.

A body is what is indented deeper than the function, up to the line that ends it. Where that is wrong, as for a string
that looks like code, brackets or quotes are left over and the rest does not parse: whoever uses this then parses the
text whole.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple


class _Skim(NamedTuple):
    """`head` finds a function, with its indentation as a group; it begins with what the search can skip to. `lines`
    may be in its body, `end` comes after them, and `closing` is put in where that is missing. A body with one of
    `words` may define something if `defines` says so. It has as many of one of `pairs` as of the other, or an even
    number, and its brackets close. `comment`: where a body has to keep a last line of code, how a line begins that is
    none."""

    head: bytes
    lines: bytes
    end: bytes = rb"\1\}"
    closing: bytes = b""
    words: tuple[bytes, ...] = ()
    defines: bytes = b""
    pairs: tuple[tuple[bytes, bytes], ...] = ()
    comment: bytes = b""


_DEEPEST = 100  # levels of brackets that are followed
_ALL_BUT_BRACKETS = bytes(each for each in range(256) if each not in b"{}")
_DEEPER = rb"\1[ \t][^\n]*\n|[ \t\r\f]*\n"
_OPENS = rb"\{[ \t]*(?:/[/*][^\n]*)?\r?\n"
_COLON = rb":[ \t\r]*(?:#[^\n]*)?\n"
_COMMENTS = (b"/*", b"*/")
_RUBY_TESTS = rb"describe|context|it|specify|test|namespace|task|shared_examples"

_PYTHON = _Skim(
    rb"\n([ \t]*+)(?:async[ \t]+)?def\b"
    rb"(?:[^\n]*|[^\n]*[(,][ \t\r]*(?:#[^\n]*)?\n(?:[^\n]*\n){0,40}?[^\n]{0,300}\)[^\n:)]{0,300})" + _COLON,
    rb"\1[ \t][^\n]*(?:\n|\Z)|[ \t\r\f]*(?:#[^\n]*)?\n",
    b"",
    words=(b"def", b"class"),
    defines=rb"^[ \t]*(?:async[ \t]+)?(?:def|class)\b",
    pairs=((b'"""', b'"""'), (b"'''", b"'''")),
    comment=b"#",
)
_RUBY = _Skim(
    rb"\n([ \t]*+)(?:(?:private|protected|public|module_function|private_class_method)[ \t]+)?def\b"
    rb"[^\n]*[^\s,(\\|][ \t\r]*\n",
    _DEEPER + rb"|\1(?:rescue|ensure|else)\b[^\n]*\n",
    rb"\1end\b",
    b"0;end",
    words=(b"def", b"class", b"module", b"<<", *(word + b" " for word in _RUBY_TESTS.split(b"|")), b"it("),
    defines=rb"(?<![\w.:@$])(?:def|class|module)(?![\w?!:=])|<<[~-]?[\"'`A-Za-z_]"
    rb"|\b(?:" + _RUBY_TESTS + rb")\b[^\n]*(?:\bdo\b|\{)",
    comment=b"#",
)
_GO = _Skim(
    rb"\n()func\b(?:[^\n]*[(,]\r?\n(?:[ \t][^\n]*\n)++\)[^\n]*|[^\n]*)" + _OPENS,
    rb"[ \t][^\n]*\n|\r?\n|\w+:\r?\n",
    pairs=((b"`", b"`"), _COMMENTS),
)
_JAVA = _Skim(
    rb"\n([ \t]++)(?:public|protected|private|static|final|synchronized)\b"
    rb"(?:(?!\b(?:class|interface|enum|record)\b)[^;{}=]){0,500}?\)[^;{}=()]{0,200}" + _OPENS,
    _DEEPER,
    closing=b"}",
    words=(b"class ", b"interface ", b"enum ", b"record ", b"new "),
    defines=rb"\b(?:class|interface|enum|record)\s+[A-Za-z_$]|\bnew\b[^;{}]*\{",
    pairs=((b'"""', b'"""'), _COMMENTS),
)
_PHP = _Skim(
    rb"\n([ \t]*+)(?:(?:public|protected|private|static|abstract|final)[ \t]+)*+function\b[^;{}]{0,1000}" + _OPENS,
    _DEEPER,
    closing=b"}",
    words=(b"function ", b"class", b"interface ", b"trait ", b"enum ", b"<<<", b"?>"),
    defines=rb"\bfunction[ \t]+&?\w|\bnew\b[^;(){}]*\bclass\b|<<<|\?>"
    rb"|(?:^|[;{}])[ \t]*(?:(?:abstract|final|readonly)[ \t]+)*(?:class|interface|trait|enum)[ \t]+\w",
    pairs=(_COMMENTS,),
)
_C = _Skim(
    rb"()(?:[);][^;{}=()\n]*\n|\n\w[^;{}=\n]*(?:\n[ \t][^;{}=\n]*){0,20}?\)[^;{}=()\n]*)" + _OPENS,
    rb"[ \t#/][^\n]*\n|\r?\n|\w+[ \t]*:[^\n]*\n",
    rb"\}(?![ \t]*\})",
    words=(b"struct", b"union", b"enum", b"typedef", b"define"),
    defines=rb"\b(?:struct|union|enum)\b[^;(){}=]*\{|\btypedef\b|#[ \t]*define\b",
    pairs=(_COMMENTS,),
)
SKIMS = {"python": _PYTHON, "ruby": _RUBY, "go": _GO, "java": _JAVA, "php": _PHP, "c": _C}  # by query file


def skimmed(source: bytes, query: str) -> bytes:
    """The text without what need not be parsed; the same text if that is nothing."""
    skim = SKIMS.get(query)
    if skim is None:
        return source
    function, defines = _compiled(query)
    pieces: list[bytes] = []
    done = at = 0
    while (found := function.search(source, at)) is not None:
        indent, body = found.groups()
        start, end = found.span(2)
        if empty := _emptied(body, indent, skim, defines):
            pieces += (source[done:start], empty)
            done = at = end
        else:
            at = start
        at -= 1  # what is found begins with the end of a line
    return b"".join((*pieces, source[done:])) if pieces else source


@functools.cache
def _compiled(query: str) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    head, lines, end, *_ = skim = SKIMS[query]
    return re.compile(head + rb"((?:" + lines + rb")++)" + end), re.compile(skim.defines, re.MULTILINE)


def closed(source: bytes, query: str) -> tuple[bytes, list[int]]:
    """A text that does not parse, in which functions without an end have one on their last line, and those rows. The
    bodies that need not be parsed are left out of it."""
    skim = SKIMS.get(query)
    if skim is None or not skim.closing:
        return source, []
    pieces: list[bytes] = []
    rows: list[int] = []
    done = 0
    for found in re.finditer(skim.head + rb"((?:" + skim.lines + rb")++)(?!" + skim.end + rb")", source):
        start, end = found.span(2)
        if body := _with_last_line(found[2], found[1], skim.comment or b"//", skim.closing):
            pieces += (source[done:start], body)
            done = end
            rows.append(source.count(b"\n", 0, start) + body.index(skim.closing) - len(found[1]))
    return skimmed(b"".join((*pieces, source[done:])), query), rows


def _emptied(body: bytes, indent: bytes, skim: _Skim, defines: re.Pattern[bytes]) -> bytes:
    """The line ends of a body, and what it has to keep; nothing if it has to stay whole."""
    if any(word in body for word in skim.words) and defines.search(body):
        return b""
    for one, other in skim.pairs:
        count = body.count(one)
        if count % 2 if one == other else count != body.count(other):
            return b""
    if skim.comment:
        return _with_last_line(body, indent, skim.comment)
    return b"\n" * body.count(b"\n") if _closes(body) else b""


def _closes(body: bytes) -> bool:
    """Whether all brackets in it open before they close, and close. Those in strings count as well."""
    brackets = body.translate(None, _ALL_BUT_BRACKETS)
    for _ in range(_DEEPEST):
        if not brackets:
            return True
        brackets, before = brackets.replace(b"{}", b""), brackets
        if brackets == before:
            return False
    return False


def _with_last_line(body: bytes, indent: bytes, comment: bytes, last: bytes = b"0") -> bytes:
    """Empty but for this on the last line of code; nothing if it is not clear which line that is."""
    end = len(body.rstrip())
    while (line := body[body.rfind(b"\n", 0, end) + 1 : end].lstrip()).startswith(comment):
        if b'"""' in line or b"'''" in line:
            return b""
        end = len(body[: end - len(line)].rstrip())
    if not line or line.endswith(b"\\"):
        return b""
    above = body.count(b"\n", 0, end)
    return b"\n" * above + indent + b" " + last + b"\n" * (body.count(b"\n") - above)
