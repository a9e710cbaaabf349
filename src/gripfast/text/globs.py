"""The glob language of every tool, rule and scope: one pattern text becomes one test on a path.

`*` and `?` stay inside a name, `**` as a whole component crosses directories (also none), `[a-z]` and `[!a-z]`
are classes, `{a,b}` are alternatives, a backslash takes the next character as it is. Matching never runs away:
every repetition is tried once (atomic groups), so that a hostile glob costs what a harmless one costs.
What rules and scopes build on it is in `patterns.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass
from gripfast.text.escape import escaped

MAX_GLOB_CHARACTERS = 4096
MAX_ALTERNATIVES = 1000
MAX_BRACES = 64
MAX_SPREAD_CHARACTERS = 16 * 1024  # all alternatives written out: what compiling costs

_MAGIC = re.compile(r"[*?\[\]{}\\]")
# What ripgrep's own globs surely read as we do; anything else is left to our own test alone.
_WORD = r"[A-Za-z0-9_.*+@=~ %-]"
_SAME_IN_RIPGREP = rf"(?:{_WORD}|\{{{_WORD}+(?:,{_WORD}+)*\}})+"

_BY_ENDING = r"\*\*/\*(\.[A-Za-z0-9_.-]+)"


class BadPattern(InvalidArgument, ValueError):
    """A pattern that can't mean anything; the message says what is wrong with it."""

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far wildcards go, as parts of a regex."""

    any: str  # any one character
    member: str  # before a class
    end: str  # where the pattern ends


_IN_A_NAME = _Reach("[^/]", "(?!/)", r"(?=/|\Z)")
_IN_A_WORD = _Reach(".", "", r"\Z")


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled pattern. `head` is its literal beginning, whole directories only; `rest` is what follows."""

    text: str
    head: str
    rest: str
    regex: re.Pattern[str]

    def matches(self, path: str) -> bool:
        return self.regex.fullmatch(path) is not None

    @property
    def ending(self) -> str | None:
        """What every match ends with and nothing else does, for the commonest shape: `**/*.py`."""
        found = re.fullmatch(_BY_ENDING, self.rest)
        return found[1] if found else None

    @property
    def name_hint(self) -> str | None:
        """A glob on the last name alone, in ripgrep's language, that lets through all that this one does."""
        last = re.sub(r"\\.|\[(?:[!^]?\]?)[^\]]*\]|\?|[^\x20-\x7e]", "*", self.rest.rpartition("/")[2])
        if "**" in last or last.strip("*") == "" or not re.fullmatch(_SAME_IN_RIPGREP, last):
            return None
        return last


def hiding(pattern: str) -> list[str]:
    """A pattern of a Scope (see Patterns) in ripgrep's language, if it surely means the same there."""
    inner = pattern.rstrip("/")
    if pattern.startswith(("/", "~")) or not all(re.fullmatch(_SAME_IN_RIPGREP, part) for part in inner.split("/")):
        return []
    return [f"/{inner.removeprefix('./')}" if "/" in inner else inner]


def is_literal(text: str) -> bool:
    return not _MAGIC.search(text)


def compile_glob(text: str) -> Glob:
    """The pattern `text` over a whole relative path; InvalidArgument says what is wrong with it."""
    check_glob(text)
    plain = re.sub(r"(?<!\\)/{2,}", "/", text)
    while plain.startswith("./"):
        plain = plain[2:]
    magic = _MAGIC.search(plain)
    cut = plain.rfind("/", 0, magic.start() if magic else len(plain)) + 1
    regex = compiled([regex_of(each, text) for each in spread(plain, text)], text)
    return Glob(text, plain[:cut], plain[cut:], regex)


def compile_filter(text: str) -> Glob:
    """As git reads a line of .gitignore: without a slash it matches at any depth, with one from the start."""
    check_glob(text)
    anchored = "/" in text.rstrip("/")
    return compile_glob(text.lstrip("/") if anchored else f"**/{text}")


def check_glob(text: str) -> None:
    """Refuse what can't be a pattern at all."""
    if not text:
        raise BadPattern("the glob pattern is empty; give one such as '**/*.py'")
    if "\0" in text:
        raise _bad(text, "it contains a NUL character")
    if len(text) > MAX_GLOB_CHARACTERS:
        raise BadPattern(f"the glob pattern has {len(text)} characters; give at most {MAX_GLOB_CHARACTERS}")


def compiled(alternatives: Iterable[str], text: str) -> re.Pattern[str]:
    """One regex for the regexes of a pattern's alternatives."""
    try:
        return re.compile("|".join(alternatives), re.DOTALL)
    except (re.error, OverflowError) as problem:
        raise _bad(text, str(problem)) from None


def compiled_word(text: str) -> re.Pattern[str]:
    """A pattern over one word: no alternatives, no backslash, and wildcards match a slash as well."""
    return compiled([_component(text.replace("\\", "\\\\"), text, _IN_A_WORD)], text)


def _bad(text: str, fault: str) -> BadPattern:
    shown = escaped(text if len(text) <= 200 else f"{text[:200]}...")
    return BadPattern(f"the glob pattern '{shown}' is not valid: {fault}")


def spread(text: str, whole: str) -> list[str]:
    """The pattern without `{a,b}`: one text for each alternative."""
    if text.count("{") > MAX_BRACES:
        raise _bad(whole, f"it has more than {MAX_BRACES} braces")
    done: list[str] = []
    todo = [text]
    size = 0
    while todo:
        each = todo.pop()
        size += len(each)
        group = _first_group(each, whole)
        if group is None:
            done.append(each)
        else:
            start, end, choices = group
            todo.extend(each[:start] + choice + each[end:] for choice in reversed(choices))
        if size > MAX_SPREAD_CHARACTERS:
            raise _bad(whole, f"its alternatives have more than {MAX_SPREAD_CHARACTERS} characters in all")
        if len(todo) + len(done) > MAX_ALTERNATIVES:
            raise _bad(whole, f"it has more than {MAX_ALTERNATIVES} alternatives in braces")
    return done


def _first_group(text: str, whole: str) -> tuple[int, int, list[str]] | None:
    """Where the first `{...}` begins and ends, and its choices."""
    start, depth, begin = -1, 0, 0
    choices: list[str] = []
    for at, piece in _pieces(text, whole):
        if piece == "{":
            depth += 1
            if depth == 1:
                start, begin = at, at + 1
        elif piece == "}":
            depth -= 1
            if depth < 0:
                raise _bad(whole, "a '}' has no '{' before it (write \\} for the character)")
            if depth == 0:
                return start, at + 1, [*choices, text[begin:at]]
        elif piece == "]":
            raise _bad(whole, "a ']' has no '[' before it (write \\] for the character)")
        elif piece == "," and depth == 1:
            choices.append(text[begin:at])
            begin = at + 1
    if depth:
        raise _bad(whole, "a '{' is not closed by '}' (write \\{ for the character)")
    return None


def _pieces(text: str, whole: str) -> Iterator[tuple[int, str]]:
    """The pattern in its smallest parts, with their places: an escape and a class are one part each."""
    at = 0
    while at < len(text):
        end = at + 1
        if text[at] == "\\":
            end = at + 2
            if end > len(text):
                raise _bad(whole, "it ends in a backslash, which escapes nothing")
        elif text[at] == "[":
            end = _class_end(text, at, whole)
        yield at, text[at:end]
        at = end


def _class_end(text: str, at: int, whole: str) -> int:
    position = at + 1
    if text[position : position + 1] in ("!", "^"):
        position += 1
    if text[position : position + 1] == "]":
        position += 1
    while position < len(text) and text[position] != "]":
        position += 2 if text[position] == "\\" else 1
    if position >= len(text):
        raise _bad(whole, "a '[' is not closed by ']' (write [[] for the character)")
    return position + 1


def regex_of(text: str, whole: str) -> str:
    """A regex for a pattern without braces. Between two `**` the leftmost fit is as good as any: atomic."""
    runs: list[list[str]] = [[]]
    components = text.split("/")
    for component in components:
        if component == "**":
            if runs[-1] or len(runs) == 1:
                runs.append([])
        else:
            runs[-1].append(_component(component, whole, _IN_A_NAME))
    first, *others = runs
    if not others:
        return "/".join(first)
    body = "".join(f"{part}/" for part in first)
    for run in others[:-1]:
        body += f"(?>(?:[^/]*/)*?{'/'.join(run)}/)"
    return body + (f"(?:[^/]*/)*?{'/'.join(others[-1])}" if others[-1] else ".*")


def _component(text: str, whole: str, reach: _Reach) -> str:
    """A regex for one name or word. It covers a whole name or fails, so that it needs no second try: it is atomic."""
    chunks: list[str] = [""]
    for _, piece in _pieces(text, whole):
        if piece == "*":
            chunks.append("")
        else:
            chunks[-1] += _character(piece, whole, reach)
    first, *others = chunks
    if not others:
        return first
    middle = "".join(f"(?>{reach.any}*?{chunk})" for chunk in others[:-1] if chunk)
    return f"(?>{first}{middle}{reach.any}*{others[-1]}{reach.end})"


def _character(piece: str, whole: str, reach: _Reach) -> str:
    if piece == "?":
        return reach.any
    if piece[0] == "\\":
        return re.escape(piece[1])
    if piece[0] == "[" and len(piece) > 1:
        return reach.member + _class(piece[1:-1], whole)
    return re.escape(piece)


def _class(inside: str, whole: str) -> str:
    negated = inside[0] in "!^"
    members = re.findall(r"\\?(.)", inside[1:] if negated else inside, re.DOTALL)
    parts: list[str] = []
    at = 0
    while at < len(members):
        if members[at + 1 : at + 2] == ["-"] and at + 2 < len(members):
            low, high = members[at], members[at + 2]
            if low > high:
                raise _bad(whole, f"the range '{low}-{high}' runs backwards")
            parts.append(f"{re.escape(low)}-{re.escape(high)}")
            at += 3
        else:
            parts.append(re.escape(members[at]))
            at += 1
    return f"[{'^' if negated else ''}{''.join(parts)}]"
