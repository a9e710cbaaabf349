"""The strict recogniser of shell lines: proves which commands bash will run, or says what can't be proved.

It accepts only words of plain characters, single and double quotes, blanks, and `; && || |` and newlines between
commands. Anything else may have a meaning in bash, so a line that contains it is not provable.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TypeAlias

from gripfast.call.shell.words import NotProvable
from gripfast.records import dataclass

LONGEST_LINE = 8 * 1024  # bytes; a longer line is always asked about

Argv: TypeAlias = tuple[str, ...]

# First words that are syntax, not programs.
RESERVED = frozenset(
    """! [[ ]] { } case coproc do done elif else esac fi for function if in select then time until
    while""".split()
)


@dataclass(frozen=True, slots=True)
class Proved:
    """What bash runs for the line: these commands, with exactly these words."""

    commands: tuple[Argv, ...]


def recognise(line: str) -> Proved | NotProvable:
    problem = line_problem(line)
    if problem is not None:
        return NotProvable(problem)
    return _read(line)


def line_problem(line: str) -> str | None:
    """Why a line can't be read at all; None if it can."""
    return _too_long(line) or _odd_character(line)


def _too_long(line: str) -> str | None:
    size = len(line) if line.isascii() else len(line.encode("utf-8", "surrogatepass"))
    return f"the line has {size} bytes, over the {LONGEST_LINE} that are judged" if size > LONGEST_LINE else None


_PLAIN = re.compile(r"[\t\n\x20-\x7e]*")


def _odd_character(line: str) -> str | None:
    """Finds control, format, private and unassigned characters: with them, the text shown might not be what runs."""
    if _PLAIN.fullmatch(line):
        return None
    for at, char in enumerate(line):
        if (unicodedata.category(char)[0] == "C" and char not in "\t\n") or char in "\u2028\u2029":
            return f"U+{ord(char):04X} at character {at + 1} can't be shown plainly"
    return None


# A word is plain characters and quoted pieces without a gap. `\w` beyond ASCII is letters and digits of other
# scripts, plain bytes to bash. `~` is plain inside a word (HEAD~1); _expands_tilde has the exceptions.
_PIECE = r"""[\w./,:@%+=^-][\w./,:@%+=^~-]*+|'[^']*+'|"(?:[^"\\$`]|\\[^\n])*+\""""
_PIECES = re.compile(_PIECE)
_TOKEN = re.compile(rf"[ \t]*+(?:(?P<word>(?:{_PIECE})++)|(?P<operator>&&|\|\||[;|\n])|(?P<end>\Z))")
_ESCAPED = re.compile(r'\\(["\\$`])')
_PLAIN_BEFORE_TILDE = re.compile(r"[\w./@^-][\w./@^~-]*+")


def _read(line: str) -> Proved | NotProvable:
    """Groups words into commands. `words` is the command being read, `joined_by` the operator before it."""
    commands: list[Argv] = []
    words: list[str] = []
    joined_by = ""
    at = 0
    while token := _TOKEN.match(line, at):
        at = token.end()
        kind = token.lastgroup
        if kind == "word":
            word = _word(token["word"])
            problem = _expands_tilde(token["word"]) or (None if words else _not_a_program(word))
            if problem is not None:
                return NotProvable(problem)
            words.append(word)
        elif kind == "end":
            return _finish(commands, words, joined_by)
        elif words:
            commands.append(tuple(words))
            words, joined_by = [], token["operator"]
        elif token["operator"] != "\n":
            return NotProvable(f"`{token['operator']}` at character {at} has no command before it")
    return NotProvable(_unknown(line, at))


def _finish(commands: list[Argv], words: list[str], joined_by: str) -> Proved | NotProvable:
    if words:
        return Proved((*commands, tuple(words)))
    if joined_by in ("&&", "||", "|"):
        return NotProvable(f"`{joined_by}` has no command after it")
    return Proved(tuple(commands)) if commands else NotProvable("there is no command in it")


def _word(text: str) -> str:
    """The word as the program gets it."""
    if "'" not in text and '"' not in text:
        return text
    return "".join(_unquoted(piece) for piece in _PIECES.findall(text))


def _unquoted(piece: str) -> str:
    if piece[0] == "'":
        return piece[1:-1]
    return _ESCAPED.sub(r"\1", piece[1:-1]) if piece[0] == '"' else piece


def _expands_tilde(text: str) -> str | None:
    """bash expands `~` at the start of a word and after `=` or `:` in what looks like an assignment."""
    if "~" not in text:
        return None
    if "'" in text or '"' in text:
        harmless = not any("~" in piece for piece in _PIECES.findall(text) if piece[0] not in "'\"")
    else:
        harmless = _PLAIN_BEFORE_TILDE.fullmatch(text.rpartition("~")[0])
    if harmless:
        return None
    return f"`~` in `{text}` may be expanded; write the path out or quote it"


def _not_a_program(word: str) -> str | None:
    if not word:
        return "an empty word where a program's name should be"
    if word in RESERVED:
        return f"`{word}` is shell syntax, not a program"
    if "=" in word:
        return f"`{word}` may set a variable for what runs"
    if word[0] in "%-+^" or word.isspace():
        return f"`{word}` is not a program's name"
    return None


MEANING = {
    "$": "`$` expands variables or runs commands",
    "`": "a backquote runs commands",
    "<": "`<` redirects",
    ">": "`>` redirects, and may write files",
    "&": "`&` runs in the background or redirects",
    "\\": "a backslash outside quotes changes the next character",
    "(": "`(` starts a subshell or a function",
    ")": "`)` ends a subshell or a function",
    "#": "`#` may start a comment",
    "!": "`!` negates or recalls history",
    "'": "a quote is not closed",
    "~": "`~` is expanded by the shell",
}


def _unknown(line: str, at: int) -> str:
    at += len(line[at:]) - len(line[at:].lstrip(" \t"))
    char = line[at]
    if char == '"':
        meaning = _inside_quotes(line, at)
    elif char in "*?[]{}":
        meaning = f"`{char}` is expanded by the shell unless it is quoted"
    else:
        meaning = MEANING.get(char, f"{char!r} is not a plain character; quote it")
    return f"{meaning} (character {at + 1})"


def _inside_quotes(line: str, at: int) -> str:
    stopped = re.compile(r'"(?:[^"\\$`]|\\[^\n])*').match(line, at)
    follows = line[stopped.end() : stopped.end() + 1] if stopped else ""
    if follows in ("$", "`"):
        return f"`{follows}` inside double quotes is expanded"
    return "a double quote is not closed, or holds a continued line"
