"""Reads a shell line whose commands are all known, though some of their words may not be.

The second level of the recogniser. Like the first, it accepts only what it knows: any other construct makes the line
not provable. The tests compare each construct with real bash. https://www.gnu.org/software/bash/manual/bash.html
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from gripfast.call.shell.recogniser import MEANING, RESERVED, line_problem
from gripfast.call.shell.words import (
    MODULE_PLACES,
    Command,
    NotProvable,
    Redirect,
    Script,
    Unknown,
    Variables,
    Word,
    assignment_problem,
    is_left_to_rules,
    may_be_secret,
)
from gripfast.records import dataclass

DEEPEST = 12  # compounds and substitutions inside each other
MOST_COMMANDS = 1000
MOST_ALTERNATIVES = 64  # words that one `{a,b}` may become


class _StopError(Exception):
    """The line is not provable; the text says why."""


@lru_cache(maxsize=1024)
def read_script(line: str) -> Script | NotProvable:
    """Every command that bash can run for this line, or the reason why that can't be proved."""
    problem = line_problem(line)
    if problem is not None:
        return NotProvable(problem)
    if _splits_a_redirection(line):
        return NotProvable("a redirection and its number are on two lines")
    reader = _LineReader(line)
    try:
        reader.commands_until(frozenset({""}))
    except _StopError as stop:
        return NotProvable(str(stop))
    if (problem := reader.variables.problem()) is not None:
        return NotProvable(problem)
    if not reader.commands:
        return NotProvable("there is no command in it")
    return Script(tuple(reader.commands), tuple(reader.variables.values), reader.is_fed)


def _splits_a_redirection(line: str) -> bool:
    """Whether `2`, an escaped newline and `>` follow each other: bash joins them to one redirection."""
    for operator in re.finditer("[<>]", line):
        at, digits, joined = operator.start(), False, False
        while at and (line[at - 1] in "0123456789" or line[max(at - 2, 0) : at] == "\\\n"):
            digits, joined, at = (True, joined, at - 1) if line[at - 1] != "\n" else (digits, True, at - 2)
        if digits and joined:
            return True
    return False


_BLANKS = re.compile(r"(?:[ \t]|\\\n)*+")
_BLANKS_AND_COMMENT = re.compile(r"(?:[ \t]|\\\n)*+(?:#[^\n]*+)?+")
_AFTER_WORD = r"(?=[ \t\n;&|()<>]|\Z)"
_BLANK_STARTS = frozenset(" \t\\#")
_OPERATOR_STARTS = frozenset(";&|\n)")
# `{}` as find and xargs take it. With a comma and a brace behind it, bash expands it: `{},b}` is `}` and `b`.
_PLAIN_BRACES = re.compile(rf"\{{\}}[A-Za-z0-9_./-]*+{_AFTER_WORD}")
_REDIRECT_STARTS = frozenset("<>&0123456789")
_SYNTAX = re.compile(
    rf"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|in|\{{|\}}|!|\[\[|time){_AFTER_WORD}"
)
_OPERATOR = re.compile(r"&&|\|\||\|&|;;&|;;|;&|[;&|\n)]")
_REDIRECT = re.compile(r"(?P<fd>[0-9]{0,2}+)(?P<way><<<|<<-|<<|<>|<&|>>|>\||>&|<(?!\()|>(?!\())|(?P<both>&>>?)")
_DESCRIPTOR = re.compile(rf"(?:[0-9]+-?|-){_AFTER_WORD}")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)", re.ASCII)
_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]*{_AFTER_WORD}", re.ASCII)
_DELIMITER = re.compile(
    r"[ \t]*+(?:'(?P<single>[A-Za-z0-9_.-]+)'|\"(?P<double>[A-Za-z0-9_.-]+)\""
    r"|(?P<slash>\\)?(?P<bare>[A-Za-z_][A-Za-z0-9_]*))"
    rf"{_AFTER_WORD}",
    re.ASCII,
)


@dataclass(slots=True)
class _Heredoc:
    delimiter: str
    literal: bool
    tabs: bool


@dataclass(slots=True)
class _Substitution:
    """A `$( )` or `<( )` that is being read: how deep its own commands are, and whether one has a here-document."""

    depth: int
    has_heredoc: bool = False


class _LineReader:
    """One pass over a line. `commands` grows as they are found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.has_braces = "{" in text
        self.at = 0
        self.depth = 0
        self.loops = 0
        self.commands: list[Command] = []
        self.variables = Variables()
        self.heredocs: list[_Heredoc] = []
        self.is_fed = False
        self.inner: list[_Substitution] = []

    # --- lists and pipelines ---

    def commands_until(self, ends: Collection[str], *, may_be_empty: bool = False) -> str:
        """Reads commands up to one of `ends` in command position ("" is the end of the line), and takes that."""
        self._deeper()
        count = 0
        while True:
            self._skip_newlines()
            end = self._end_here(ends)
            if end is not None:
                if not count and not may_be_empty and end:
                    raise _StopError(f"there is no command before `{end}`")
                self.depth -= 1
                return end
            self._pipeline()
            count += 1
            self._between(ends)

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _StopError(f"more than {DEEPEST} commands inside each other")

    def _skip_newlines(self) -> None:
        self._skip_blanks()
        while self.text.startswith("\n", self.at):
            self._newline()
            self._skip_blanks()

    def _skip_blanks(self) -> None:
        """Blanks, continued lines, and a comment where one may start."""
        if self.text[self.at : self.at + 1] in _BLANK_STARTS:
            self.at = _BLANKS_AND_COMMENT.match(self.text, self.at).end()  # type: ignore[union-attr]  # it matches nothing too

    def _newline(self) -> None:
        self.at += 1
        pending, self.heredocs = self.heredocs, []
        for heredoc in pending:
            self._heredoc_body(heredoc)

    def _end_here(self, ends: Collection[str]) -> str | None:
        if self.at >= len(self.text):
            if "" not in ends:
                raise _StopError("something that was opened is not closed")
            if self.heredocs:
                raise _StopError("a here-document has no text")
            return ""
        if self.text[self.at] in ";)":
            return self._end_of_inner(ends)
        word = _SYNTAX.match(self.text, self.at)
        if word is not None and word[0] in ends:
            self.at = word.end()
            return word[0]
        return None

    def _end_of_inner(self, ends: Collection[str]) -> str | None:
        for end in (";;&", ";;", ";&", ")"):
            if end in ends and self.text.startswith(end, self.at):
                if self.heredocs:
                    raise _StopError("a here-document has no text")
                self.at += len(end)
                return end
        return None

    def _between(self, ends: Collection[str]) -> None:
        """Reads what follows a pipeline: an operator that continues it, or an end, which is left to the caller."""
        operator = _OPERATOR.match(self.text, self.at)
        if operator is None:
            if self.at < len(self.text):
                raise _StopError(self._unknown_here())
            return
        match operator[0]:
            case "&&" | "||":
                self.at = operator.end()
                self._must_go_on(operator[0], ends)
            case ";" | "&":
                self.at = operator.end()
            case "\n" | ")" | ";;" | ";&" | ";;&":
                if operator[0] != "\n" and operator[0] not in ends:
                    raise _StopError(f"`{operator[0]}` has no command before it (character {self.at + 1})")
            case other:
                raise _StopError(f"`{other}` has no command before it (character {self.at + 1})")

    def _must_go_on(self, operator: str, ends: Collection[str]) -> None:
        self._skip_newlines()
        if self.at >= len(self.text) or _OPERATOR.match(self.text, self.at) or self._end_word(ends):
            raise _StopError(f"`{operator}` has no command after it")

    def _end_word(self, ends: Collection[str]) -> bool:
        word = _SYNTAX.match(self.text, self.at)
        return word is not None and word[0] in ends

    def _pipeline(self) -> None:
        if self.inner and self.inner[-1].has_heredoc:
            raise _StopError("a command after a here-document inside `$( )`")
        if self.text.startswith(("!", "time"), self.at):
            self._pipeline_prefixes()
        if self.text.startswith("-", self.at):
            raise _StopError("an option where a program's name should be")
        self._command()
        while True:
            self._skip_blanks()
            operator = _OPERATOR.match(self.text, self.at) if self.text.startswith("|", self.at) else None
            if operator is None or operator[0] == "||":
                return
            self.at = operator.end()
            self._must_go_on(operator[0], ())
            self._command()

    def _pipeline_prefixes(self) -> None:
        for prefix in ("!", "time", "!"):
            word = _SYNTAX.match(self.text, self.at)
            if word is not None and word[0] == prefix:
                self.at = word.end()
                self._skip_blanks_only()

    # --- commands ---

    def _command(self) -> None:
        if len(self.commands) >= MOST_COMMANDS:
            raise _StopError(f"more than {MOST_COMMANDS} commands")
        if self.text.startswith("(", self.at):
            if self.text.startswith("((", self.at):
                raise _StopError("`((` calculates, and what is calculated may run commands")
            self.at += 1
            self.commands_until({")"})
            self._redirects_after()
            return
        word = _SYNTAX.match(self.text, self.at)
        if word is None:
            self._simple()
            return
        self.at = word.end()
        match word[0]:
            case "{":
                self.commands_until({"}"})
            case "if":
                self._if()
            case "while" | "until":
                self._loop({"do"})
            case "for":
                self._for()
            case "case":
                self._case()
            case "[[":
                self._condition()
            case other:
                raise _StopError(f"`{other}` stands where a command should be")
        self._redirects_after()

    def _if(self) -> None:
        self.commands_until({"then"})
        end = self.commands_until({"elif", "else", "fi"})
        while end == "elif":
            self.commands_until({"then"})
            end = self.commands_until({"elif", "else", "fi"})
        if end == "else":
            self.commands_until({"fi"})

    def _loop(self, condition: Collection[str] = ()) -> None:
        self.loops += 1
        if condition:
            self.commands_until(condition)
        self.commands_until({"done"})
        self.loops -= 1

    def _for(self) -> None:
        self._skip_blanks()
        name = _NAME.match(self.text, self.at)
        if name is None:
            raise _StopError("`for` without a plain variable's name")
        self.at = name.end()
        self._skip_newlines()
        values: list[Word] = [Unknown("$@", many=True)]
        if (word := _SYNTAX.match(self.text, self.at)) is not None and word[0] == "in":
            self.at = word.end()
            values = self._words()
        for value in values or [None]:
            self._assign(name[0], value)
        if self.text.startswith(";", self.at):
            self.at += 1
        self._skip_newlines()
        self._take("do")
        self._loop()

    def _words(self) -> list[Word]:
        """Words up to the end of a command."""
        words: list[Word] = []
        while True:
            self._skip_blanks()
            if self.at >= len(self.text) or _OPERATOR.match(self.text, self.at):
                return words
            words += self._expanded_word()

    def _take(self, wanted: str) -> None:
        word = _SYNTAX.match(self.text, self.at)
        if word is None or word[0] != wanted:
            raise _StopError(f"`{wanted}` is missing")
        self.at = word.end()

    def _case(self) -> None:
        self._skip_blanks()
        self._word()
        self._skip_newlines()
        self._take("in")
        while True:
            self._skip_newlines()
            word = _SYNTAX.match(self.text, self.at)
            if word is not None and word[0] == "esac":
                self.at = word.end()
                return
            self._patterns()
            if self.commands_until({";;", ";&", ";;&", "esac"}, may_be_empty=True) == "esac":
                return

    def _patterns(self) -> None:
        if self.text.startswith("(", self.at):
            self.at += 1
        while True:
            self._skip_blanks()
            self._word()
            self._skip_blanks()
            ended = self.text[self.at : self.at + 1]
            self.at += 1
            if ended == ")":
                return
            if ended != "|" or self.text.startswith("|", self.at):
                raise _StopError("a pattern of `case` that can't be read")

    _UNARY = frozenset("-a -b -c -d -e -f -g -h -k -n -p -r -s -t -u -w -x -z -G -L -N -O -S".split())
    _BINARY = frozenset("= == != -nt -ot -ef".split())
    _NUMERIC = frozenset("-eq -ne -lt -le -gt -ge".split())

    def _condition(self) -> None:
        """`[[ … ]]`: tests of texts and files, joined by `&&` and `||`. What it calculates must be plain numbers."""
        words: list[Word] = []
        while True:
            self.at = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]  # the same
            joint = re.compile(r"&&|\|\|").match(self.text, self.at)
            if joint is not None:
                self._check_condition(words)
                words, self.at = [], joint.end()
                self._skip_plain_newlines()
                continue
            word = self._word()
            if word == "]]":
                self._check_condition(words)
                return
            words.append(word)
            if len(words) > 4:
                raise _StopError("a test in `[[` that can't be read")

    def _skip_plain_newlines(self) -> None:
        if not self.heredocs:
            self.at = re.compile(r"[ \t\n]*+").match(self.text, self.at).end()  # type: ignore[union-attr]  # the same

    def _check_condition(self, words: list[Word]) -> None:
        words = words[1:] if words[:1] == ["!"] else words
        match words:
            case [_]:
                return
            case [str(operator), _] if operator in self._UNARY:
                return
            case [_, str(operator), _] if operator in self._BINARY:
                return
            case [left, str(operator), right] if operator in self._NUMERIC and _is_number(left) and _is_number(right):
                return
            case _:
                raise _StopError("a test in `[[` that can't be read, or that calculates")

    # --- simple commands ---

    def _simple(self) -> None:
        start = self.at
        words: list[Word] = []
        assigned: list[tuple[str, Word]] = []
        redirects: list[Redirect] = []
        while self.at < len(self.text):
            if words and (plain := _NEXT_PLAIN.match(self.text, self.at)) is not None:
                words.append(plain[plain.lastindex or 0])
                self.at = plain.end()
                continue
            self._skip_blanks()
            char = self.text[self.at : self.at + 1]
            if char in _REDIRECT_STARTS and (redirect := _REDIRECT.match(self.text, self.at)) is not None:
                self._redirect(redirect, redirects)
            elif not char or char in _OPERATOR_STARTS:
                break
            elif not words and (assignment := _ASSIGNMENT.match(self.text, self.at)) is not None:
                self.at = assignment.end()
                value = self._value()
                assigned.append((assignment[1], Unknown(str(value)) if assignment[2] == "+=" else value))
            elif words:
                words += self._expanded_word()
            else:
                words.append(self._program())
        if not words and not assigned and not redirects:
            raise _StopError(self._unknown_here(start))
        self._finish(words, assigned, redirects)

    def _finish(self, words: list[Word], assigned: list[tuple[str, Word]], redirects: list[Redirect]) -> None:
        reads = words[:1] == ["read"]
        for name, value in assigned:
            left = (words or name not in MODULE_PLACES) and is_left_to_rules(name, value)
            if not left and (problem := assignment_problem(name, value, reads=reads)) is not None:
                raise _StopError(problem)
            if not words:
                self.variables.set(name, value)
            elif not reads:
                self.variables.set(name, None)
        if reads:
            for word in _names_read(words[1:]):
                self._assign(word, None)
        if "export" in words:
            for word in words:
                name, equals, value = str(word).partition("=")
                if equals:
                    self.variables.set(name, value if isinstance(word, str) else Unknown(value))
        if "read" in words[1:]:  # `command read i` sets it as well
            for word in words:
                self.variables.set(str(word), Unknown("$(read)"))
        self.commands.append(Command(tuple(words), tuple(assigned), tuple(redirects), self.loops > 0))

    def _assign(self, name: str, value: Word | None) -> None:
        if (problem := assignment_problem(name, value)) is not None:
            raise _StopError(problem)
        self.variables.set(name, value)

    def _program(self) -> str:
        start = self.at
        word = self._word()
        written = self.text[start : self.at]
        if not isinstance(word, str):
            raise _StopError(
                f"`{written}` is known only when it runs, and it stands where a program's name should be"
            )
        if not word or word.isspace():
            raise _StopError("an empty word where a program's name should be")
        if word in RESERVED or word in ("]]", "}"):
            raise _StopError(f"`{word}` is shell syntax, not a program")
        if "=" in word:
            raise _StopError(f"`{word}` may set a variable for what runs")
        if word[0] in "%-+^~" or written[0] == "{":
            raise _StopError(f"`{word}` is not a program's name")
        return word

    def _value(self) -> Word:
        """What an assignment sets; it is one word, whatever it holds."""
        if self.at >= len(self.text) or self.text[self.at] in " \t\n;&|)<>":
            return ""
        if self.text.startswith("(", self.at):
            raise _StopError("an array")
        value = self._word()
        return Unknown(value.text, number=value.number) if isinstance(value, Unknown) else value

    # --- redirections and here-documents ---

    def _redirects_after(self) -> None:
        """Redirections of a compound command."""
        redirects: list[Redirect] = []
        self._skip_blanks()
        while (redirect := _REDIRECT.match(self.text, self.at)) is not None:
            self._redirect(redirect, redirects)
            self._skip_blanks()
        if redirects:
            self.commands.append(Command((), (), tuple(redirects), self.loops > 0))

    def _redirect(self, found: re.Match[str], redirects: list[Redirect]) -> None:
        self.at = found.end()
        way = found["way"] or found["both"]
        self.is_fed |= way.startswith("<<")
        if way in ("<<", "<<-"):
            self._heredoc(tabs=way == "<<-")
            return
        if way in ("<&", ">&") and (number := _DESCRIPTOR.match(self.text, self.at)):
            self.at = number.end()
            return
        self._skip_blanks_only()
        if way in ("<&", ">&") and self.text.startswith("-", self.at):
            raise _StopError(f"`{way}-` closes, and bash reads what follows as a word of its own")
        target = self._word()
        if way == "<<<":
            return
        if way == "<&":
            raise _StopError("`<&` of something that is not a number")
        if way == ">&" and found["fd"]:
            raise _StopError("`>&` of something that is not a number")
        if way == ">&" and not (isinstance(target, str) and _EXPANDS_TO_ITSELF.fullmatch(target)):
            raise _StopError("bash expands what follows `>&` twice, quoted or not; write `> file 2>&1`")
        redirects.append(Redirect("read" if way == "<" else "write", target))

    def _skip_blanks_only(self) -> None:
        self.at = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]  # it matches nothing too

    def _heredoc(self, *, tabs: bool) -> None:
        # bash 5.2 rewrites the commands of `$( )` before it runs them, and loses a `;` after a here-document.
        if self.inner and (len(self.inner) > 1 or self.depth != self.inner[-1].depth):
            raise _StopError("a here-document inside other commands inside `$( )`")
        if self.inner:
            self.inner[-1].has_heredoc = True
        found = _DELIMITER.match(self.text, self.at)
        if found is None:
            raise _StopError("a here-document whose end is not a plain word")
        self.at = found.end()
        quoted = found["single"] or found["double"]
        self.heredocs.append(_Heredoc(quoted or found["bare"], bool(quoted or found["slash"]), tabs))

    def _heredoc_body(self, heredoc: _Heredoc) -> None:
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            line = self.text[self.at : len(self.text) if end < 0 else end]
            self.at = len(self.text) if end < 0 else end + 1
            shown = line.lstrip("\t") if heredoc.tabs else line
            if shown == heredoc.delimiter:
                return
            # Inside `$( )` some versions of bash also end it at `EOF)`.
            if line.lstrip().startswith(heredoc.delimiter):
                raise _StopError(f"a line of a here-document starts with its end, `{heredoc.delimiter}`")
            if not heredoc.literal and any(char in line for char in "$`\\"):
                raise _StopError(f"the here-document is expanded; quote its end: `<<'{heredoc.delimiter}'`")
        raise _StopError(f"a here-document without its end, `{heredoc.delimiter}`")

    # --- words ---

    def _expanded_word(self) -> list[Word]:
        """One word, or the several that `{a,b}` makes of it."""
        braces = _BRACED.match(self.text, self.at) if self.has_braces else None
        if braces is None:
            return [self._word()]
        self.at = braces.end()
        words: list[Word] = []
        for text in _without_braces(braces[0]):
            inner = _LineReader(text)
            words.append(inner._word())
            if inner.at != len(text):
                raise _StopError(f"`{braces[0]}` can't be read")
        return words

    def _word(self) -> Word:
        plain = _WHOLLY_PLAIN.match(self.text, self.at)
        if plain is not None:
            self.at = plain.end()
            return plain[0]
        if self.text.startswith('"$', self.at):
            quoted = _QUOTED_VARIABLE.match(self.text, self.at)
            if quoted is not None and not may_be_secret(quoted[1]):
                self.at = quoted.end()
                return Unknown(quoted[0])
        word = _Building(self.at)
        while self.at < len(self.text) and self._piece(word):
            pass
        if self.at == word.start or not word.pieces:
            raise _StopError(self._unknown_here())
        written = self.text[word.start : self.at]
        follows = self.text[self.at : self.at + 2]
        if follows in ("<(", ">(") or (follows[:1] in ("<", ">") and (written.isdigit() or written[0] == "{")):
            raise _StopError(
                f"`{written}{follows[:1]}` can be read in two ways; put a blank between (character {self.at + 1})"
            )
        return word.finished(written)

    def _piece(self, word: _Building) -> bool:
        """Reads one piece of a word; False at its end."""
        char = self.text[self.at]
        plain = _PLAIN.match(self.text, self.at)
        if plain is not None:
            word.literal(plain[0])
            self.at = plain.end()
        elif char == "#" and word.pieces:
            word.literal("#")
            self.at += 1
        elif char == "~":
            self._tilde(word)
        elif char == "\\":
            self._escape(word)
        elif char == "'":
            self._single(word)
        elif char == '"':
            self._double(word)
        elif char == "$":
            self._dollar(word, quoted=False)
        elif char == "`":
            self._backquoted(word, quoted=False)
        elif char in "*?[":
            word.globbed(char)
            self.at += 1
        elif char == "{":
            self._brace(word)
        elif self.text.startswith("<(", self.at) and not word.pieces:
            self._inner_commands(2)
            word.unknown(many=False, prefix="/dev/fd/")
        else:
            return False
        return True

    def _tilde(self, word: _Building) -> None:
        self.at += 1
        if not word.pieces or word.may_assign:
            word.unknown(many=False, prefix="~" if not word.pieces else "")
        else:
            word.literal("~")

    def _escape(self, word: _Building) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if not following:
            raise _StopError("a backslash at the end of the line")
        if following != "\n":
            word.quoted(following)
        self.at += 2

    def _single(self, word: _Building) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise _StopError(f"a quote is not closed (character {self.at + 1})")
        word.quoted(self._without_heredocs(self.text[self.at + 1 : end]))
        self.at = end + 1

    def _without_heredocs(self, text: str) -> str:
        if "\n" in text and self.heredocs:
            raise _StopError("a quoted text that goes on over the start of a here-document")
        return text

    def _double(self, word: _Building) -> None:
        opened = self.at
        self.at += 1
        word.quoted("")
        while True:
            piece = _IN_DOUBLE.match(self.text, self.at)
            if piece is not None:
                self.at = piece.end()
                word.quoted(_DOUBLE_ESCAPE.sub(_unescaped, self._without_heredocs(piece[0])))
            char = self.text[self.at : self.at + 1]
            if char == '"':
                self.at += 1
                return
            if char == "$":
                self._dollar(word, quoted=True)
            elif char == "`":
                self._backquoted(word, quoted=True)
            else:
                raise _StopError(f"a double quote is not closed (character {opened + 1})")

    def _dollar(self, word: _Building, *, quoted: bool) -> None:
        text, at = self.text, self.at
        if (variable := _VARIABLE.match(text, at)) is not None:
            self.at = variable.end()
            self._variable(word, variable, quoted=quoted)
        elif text.startswith("$((", at):
            self._arithmetic(word)
        elif text.startswith("$(", at):
            before = len(self.commands)
            self._inner_commands(2)
            counts = [command.words for command in self.commands[before:]] == [("nproc",)]
            word.unknown(many=not quoted and not counts, number="digits" if counts else "")
        elif not quoted and (ansi := _ANSI.match(text, at)) is not None:
            self.at = ansi.end()
            word.quoted(_ANSI_ESCAPE.sub(lambda found: _ANSI_MEANING[found[1]], self._without_heredocs(ansi[1])))
        elif (_BARE_DOLLAR_QUOTED if quoted else _BARE_DOLLAR).match(text, at):
            word.quoted("$")
            self.at += 1
        else:
            raise _StopError(f"`$` expands in a way that can't be followed (character {at + 1})")

    def _variable(self, word: _Building, found: re.Match[str], *, quoted: bool) -> None:
        name = found["name"] or found["braced"]
        if may_be_secret(name):
            raise _StopError(f"`${name}` may hold a secret")
        if (name in ("?", "#", "$") and not found["change"]) or found["length"]:
            word.unknown(many=False, number="digits")
        else:
            word.unknown(many=not quoted or name in "@*")

    def _arithmetic(self, word: _Building) -> None:
        found = _ARITHMETIC.match(self.text, self.at)
        if found is None:
            raise _StopError(f"`$((…))` that is not plain numbers and variables (character {self.at + 1})")
        self.at = found.end()
        self.variables.in_arithmetic.update(re.findall(r"[A-Za-z_]\w*", found[1], re.ASCII))
        word.unknown(many=False, number="signed")

    def _inner_commands(self, opening: int) -> None:
        if self.heredocs:
            raise _StopError("commands inside a line that has a here-document")
        self.at += opening
        self.inner.append(_Substitution(self.depth + 1))
        self.commands_until({")"})
        self.inner.pop()

    def _backquoted(self, word: _Building, *, quoted: bool) -> None:
        end = self.text.find("`", self.at + 1)
        inside = self.text[self.at + 1 : end]
        if end < 0 or self.heredocs or any(char in inside for char in "\\\"'#\n"):
            raise _StopError(f"a backquote whose commands can't be read; use `$(…)` (character {self.at + 1})")
        outer, self.text, self.at = self.text, inside, 0
        self.commands_until({""})
        self.text, self.at = outer, end + 1
        word.unknown(many=not quoted)

    def _brace(self, word: _Building) -> None:
        if not _PLAIN_BRACES.match(self.text, self.at):
            raise _StopError(f"`{{` is expanded by the shell unless it is quoted (character {self.at + 1})")
        word.literal("{}")
        self.at += 2

    # --- reasons ---

    def _unknown_here(self, at: int | None = None) -> str:
        at = self.at if at is None else at
        char = self.text[at : at + 1]
        return f"{MEANING.get(char, f'{char!r} is not a plain character; quote it')} (character {at + 1})"


_PLAIN = re.compile(r"[\w./,:@%+=^!\]}-]++")
_WHOLLY_PLAIN = re.compile(r"[\w./,:@%+=^-]++(?=[ \t\n;&|)]|\Z)")  # most words, so that they cost little
_EXPANDS_TO_ITSELF = re.compile(r"[\w./,:@%+=^-]+")
# The same after blanks, or quoted as a whole.
_NEXT_PLAIN = re.compile(
    r"""[ \t]*+(?:([\w./,:@%+=^-]++)|"([^"\\$`\n]*+)"|'([^'\n]*+)')(?=[ \t\n;&|)]|\Z)""",
)
_QUOTED_VARIABLE = re.compile(r'"\$([A-Za-z_][A-Za-z0-9_]*+)"(?=[ \t\n;&|)]|\Z)', re.ASCII)
_IN_DOUBLE = re.compile(r'(?:[^"\\$`]|\\.)++', re.DOTALL)
_DOUBLE_ESCAPE = re.compile(r'\\(["\\$`\n])')
_VARIABLE = re.compile(
    r"""\$(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*|[0-9?#@*$!])
    |\{(?P<length>\#)?(?P<braced>[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[?\#@*])
      (?P<change>:?[-+?][\w./,:@%+=
      -]*|:[0-9]+(?::[0-9]+)?|(?:%%?|\#\#?)[\w./,:@+=*?-]+|//?[\w.,:@+=-]+(?:/[\w.,:@+= -]*)?|\^\^?|,,?)?
    \})""",
    re.VERBOSE | re.ASCII,
)
_ARITHMETIC = re.compile(
    r"\$\(\(((?:[ 0-9+*/%<>?:-]|[!=<>]=|&&|\|\||\$?[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})*+)\)\)",
    re.ASCII,
)
_ANSI = re.compile(r"\$'((?:[^'\\]|\\[nt\\'\"])*+)'")
_ANSI_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ANSI_MEANING = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_BARE_DOLLAR = re.compile(r"\$(?=[ \t\n;|]|\Z)")
_BARE_DOLLAR_QUOTED = re.compile(r'\$(?=[" \t|/,.:)\]%^])')
_BRACE_TEXT = r"[\w./:@%+*?-]"
_BRACED = re.compile(
    rf"(?!{{)(?:{_BRACE_TEXT}|=)*+(?:\{{(?:{_BRACE_TEXT}*+(?:,{_BRACE_TEXT}*+)++|[0-9]{{1,3}}\.\.[0-9]{{1,3}})\}}{_BRACE_TEXT}*+)++{_AFTER_WORD}"
    rf"|(?:\{{(?:{_BRACE_TEXT}*+(?:,{_BRACE_TEXT}*+)++|[0-9]{{1,3}}\.\.[0-9]{{1,3}})\}}{_BRACE_TEXT}*+)++{_AFTER_WORD}"
)


_READ_OPTION_WITH_VALUE = re.compile(r"-[rs]*[dntp]")


def _names_read(words: list[Word]) -> list[str]:
    """The variables that `read` sets, without its options and their values."""
    at = 0
    while at < len(words) and (word := words[at]) != "--" and isinstance(word, str) and word.startswith("-"):
        at += 2 if _READ_OPTION_WITH_VALUE.fullmatch(word) else 1
    return [word for word in words[at:] if isinstance(word, str) and word != "--"]


def _unescaped(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _is_number(word: Word) -> bool:
    return word.number != "" if isinstance(word, Unknown) else re.fullmatch(r"-?[0-9]+", word, re.ASCII) is not None


def _without_braces(text: str) -> list[str]:
    """`a{b,c}` as `ab` and `ac`, in bash's order. Empty words vanish."""
    todo, done = [text], list[str]()
    while todo:
        current = todo.pop(0)
        opened = re.search(r"\{([^{}]*)\}", current)
        if opened is None:
            done.append(current)
            continue
        before, after = current[: opened.start()], current[opened.end() :]
        todo = [before + choice + after for choice in _choices(opened[1])] + todo
        if len(todo) + len(done) > MOST_ALTERNATIVES:
            raise _StopError(f"more than {MOST_ALTERNATIVES} words in `{text}`")
    return [word for word in done if word]


def _choices(inside: str) -> list[str]:
    if "," in inside:
        return inside.split(",")
    low, high = inside.split("..")
    if (low[0] == "0" or high[0] == "0") and max(len(low), len(high)) > 1:
        raise _StopError(f"`{{{inside}}}` with leading zeros")
    start, stop = int(low), int(high)
    step = 1 if start <= stop else -1
    return [str(number) for number in range(start, stop + step, step)][: MOST_ALTERNATIVES + 1]


class _Building:
    """A word while it is read."""

    __slots__ = ("glob_only", "many", "number", "pattern", "pieces", "prefix", "start", "text", "unknowns")

    def __init__(self, start: int) -> None:
        self.start = start
        self.pieces = 0
        self.text: list[str] = []
        self.pattern: list[str] = []
        self.prefix: str | None = None
        self.unknowns = 0
        self.many = False
        self.glob_only = True
        self.number = ""

    @property
    def may_assign(self) -> bool:
        """Whether bash may expand a `~` here as it does in assignments; yes if in doubt."""
        return (bool(self.text) and self.text[-1][-1:] in ("=", ":")) or self.unknowns > 0

    def literal(self, text: str) -> None:
        self.pieces += 1
        self.text.append(text)
        self.pattern.append(text)

    def quoted(self, text: str) -> None:
        self.literal(text)

    def globbed(self, char: str) -> None:
        self._until_here()
        self.pieces += 1
        self.many = True
        self.unknowns += 1
        self.pattern.append(char)
        self.text.append(char)

    def unknown(self, *, many: bool, prefix: str = "", number: str = "") -> None:
        if self.prefix is None and prefix:
            self.text.append(prefix)
        self._until_here()
        self.number = number
        self.pieces += 1
        self.unknowns += 1
        self.many |= many
        self.glob_only = False

    def _until_here(self) -> None:
        if self.prefix is None:
            self.prefix = "".join(self.text)

    def finished(self, source: str) -> Word:
        if not self.unknowns or source == "[":
            return "".join(self.text)
        # Where words are split, only the first is known to start with the prefix.
        split = self.many and not self.glob_only
        number = self.number if self.unknowns == 1 and not any(self.text) else ""
        return Unknown(
            source,
            prefix="" if split else self.prefix or "",
            many=self.many,
            glob="".join(self.pattern) if self.glob_only else None,
            number=number,  # type: ignore[arg-type]  # one of the three
        )
