"""Matches one command with one pattern, and checks whether the words that the pattern leaves open are harmless."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from gripfast.call.shell.options import WRITING, PlaceJudge, Program, problem_with
from gripfast.call.shell.programs import (
    BEFORE_SUBCOMMAND,
    INTERPRETERS,
    PROGRAMS,
    SHELL_STATE,
    WRAPPERS,
)
from gripfast.call.shell.words import Argv, Unknown, Word
from gripfast.records import dataclass
from gripfast.text.fold import folded
from gripfast.text.globs import BadPattern
from gripfast.text.patterns import WordGlob, word_glob

MOST_WORDS = 40
_OPERATORS = frozenset({"|", "||", "&&", ";", "&", ">", "<", ">>", "|&"})


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """A pattern, word by word. `open_end` means that it ends with `*`: any further words, or none."""

    words: tuple[WordGlob, ...]
    loose_words: tuple[WordGlob, ...]  # the same, ignoring case, for rules that ask or deny
    open_end: bool
    program: str  # the program's name in lower case; empty if the pattern names none
    spelled_out: frozenset[int]  # positions, counted after the program's name, that the rule itself spells out

    def allows(self, argv: Argv) -> bool:
        """Matches narrowly: the program's exact name, and no wildcard matches the dash of an option."""
        if len(argv) < len(self.words) or (len(argv) > len(self.words) and not self.open_end):
            return False
        return all(map(_strictly, self.words, argv))

    def catches(self, words: Sequence[Word | None], start: int = 0) -> bool:
        """Matches widely: whatever the program's directory and the case of its name. None is an unknown word."""
        words = words[start : start + len(self.words) + 1]
        return self._long_enough(words) and all(map(_loosely, self.loose_words, words, range(len(words))))

    def may_catch(self, words: Sequence[Word | None], start: int = 0) -> bool:
        """Whether it would match for some value of the words that only the shell knows."""
        words = words[start:]
        many = next((at for at, word in enumerate(words) if isinstance(word, Unknown) and word.many), len(words))
        words = words[: min(many, len(self.words) + 1)]
        if len(words) < len(self.words) and many == len(words):
            return False if not words else all(map(_perhaps, self.loose_words, words, range(len(words))))
        return self._long_enough(words) and all(map(_perhaps, self.loose_words, words, range(len(words))))

    def _long_enough(self, words: Sequence[Word | None]) -> bool:
        return len(words) >= len(self.words) if self.open_end else len(words) == len(self.words)


def _strictly(glob: WordGlob, word: Word) -> bool:
    if isinstance(word, Unknown) or (not glob.spelled_out and (word.startswith("-") or "/" in word)):
        return False
    return glob.matches(word)


def _perhaps(glob: WordGlob, word: Word | None, at: int) -> bool:
    if not isinstance(word, Unknown):
        return _loosely(glob, word, at)
    known, wanted = folded(word.prefix), re.split(r"[*?\[]", glob.text)[0]
    return (
        known.startswith(wanted) if glob.regex is not None and len(known) > len(wanted) else wanted.startswith(known)
    )


def _loosely(glob: WordGlob, word: Word | None, at: int) -> bool:
    if word is None or isinstance(word, Unknown):
        return glob.text == "*"
    if at == 0 and "/" not in glob.text:
        word = word.rpartition("/")[2]
    return glob.matches(folded(word))


@lru_cache(maxsize=4096)
def command_pattern(text: str) -> CommandPattern:
    words = text.split()
    if odd := [word for word in words if word in _OPERATORS]:
        raise BadPattern(f"`{odd[0]}` in {text!r}: a pattern is for one command; write a rule for each")
    if words and words[-1].endswith(":*"):
        raise BadPattern(f"{text!r}: write `{words[-1][:-2]} *` for any further words")
    if len(words) > MOST_WORDS:
        raise BadPattern(f"a pattern of {len(words)} words; at most {MOST_WORDS}")
    open_end = words[-1:] == ["*"]
    words = words[:-1] if open_end else words
    globs = tuple(word_glob(word) for word in words)
    loose = tuple(word_glob(folded(word)) for word in words)
    named = bool(loose) and loose[0].regex is None
    return CommandPattern(
        words=globs,
        loose_words=loose,
        open_end=open_end,
        program=loose[0].text.rpartition("/")[2] if named else "",
        spelled_out=frozenset(at - 1 for at, glob in enumerate(globs) if at and glob.spelled_out),
    )


@dataclass(frozen=True, slots=True)
class Tables:
    """The known programs: the built-in tables and those that the configuration adds."""

    extra: Mapping[str, Program]

    def find(self, argv: Argv) -> tuple[str, Program] | None:
        """The table for the longest leading words that have one."""
        first = argv[0] if argv else None
        if not isinstance(first, str):
            return None
        most = 3 if self.has_subcommands(first) else 1
        names = [first]
        for word in argv[1:most]:
            if not isinstance(word, str):
                break
            names.append(f"{names[-1]} {word}")
        for name in reversed(names):
            program = self.extra.get(name) or PROGRAMS.get(name)
            if program is not None:
                return name, program
        return None

    def has_subcommands(self, program: str) -> bool:
        if program in _WITH_SUBCOMMANDS or not self.extra:
            return program in _WITH_SUBCOMMANDS
        return any(name.startswith(program + " ") for name in self.extra)


_WITH_SUBCOMMANDS = frozenset(name.split()[0] for name in PROGRAMS if " " in name)


_BEFORE = {name: frozenset(program.options.split()) for name, program in BEFORE_SUBCOMMAND.items()}


def plainly(argv: Argv) -> Argv:
    """The command without harmless options before its subcommand: `git --no-pager log` is `git log`. `[ x ]` becomes
    `test x`."""
    if argv[:1] == ("[",) and argv[-1:] == ("]",):
        return ("test", *argv[1:-1])
    name = argv[0] if argv else ""
    before = _BEFORE.get(str(name))
    if before is None:
        return argv
    at = 1
    while at < len(argv) and argv[at] in before:
        at += 1
    return (name, *argv[at:]) if at > 1 else argv


def open_words_problem(
    argv: Argv, pattern: CommandPattern, tables: Tables, places: PlaceJudge, *, inside_only: bool
) -> str | None:
    """Why the words that the rule did not spell out may be harmful; None if they are harmless."""
    spelled_out = pattern.spelled_out
    if not pattern.open_end and len(spelled_out) == len(argv) - 1:
        return None
    found = tables.find(argv)
    if found is not None:
        name, program = found
        skipped = name.count(" ")
        if program.operands in WRITING and not spelled_out.issuperset(range(skipped)):
            return f"`{name}` writes files, and the rule does not name it"
        return problem_with(
            program,
            name,
            argv[1 + skipped :],
            spelled_out={at - skipped for at in spelled_out} if skipped else spelled_out,
            places=places,
            inside_only=inside_only,
        )
    return _untabled_problem(argv, spelled_out, tables, places if inside_only else None)


def _untabled_problem(
    argv: Argv, spelled_out: Collection[int], tables: Tables, places: PlaceJudge | None
) -> str | None:
    """The same for a program without a table: plain words pass, options don't, nor do programs that run others."""
    name = str(argv[0])
    if name in WRAPPERS or name in INTERPRETERS or name in SHELL_STATE:
        return f"`{name}` can run anything; only a rule that spells out the whole command allows it"
    if tables.has_subcommands(name) and 0 not in spelled_out:
        return f"`{' '.join(map(str, argv[:2]))}` is not among the subcommands known to be harmless"
    for at, word in enumerate(argv[1:]):
        if at in spelled_out:
            continue
        if isinstance(word, Unknown) and word.may_be_option:
            return f"`{name}` with `{word}`, which may be an option"
        if str(word).startswith("-") and len(str(word)) > 1:
            return f"`{name}` with `{word}`: no options are known; add [programs.{name}] to the config"
        if places is not None and places.outside(word):
            return f"`{name}` with `{word}`, which leaves the workspace"
    return None
