"""Whether the words of one command are known to be harmless, by the program's table of options."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeAlias

from holdfast.call.shown import shown

Operands: TypeAlias = Literal[
    "any",
    "paths",
    "none",
    "one",
    "inside",
    "directory",
    "new",
    "text",
    "text paths",
    "targets",
    "plus",
    "format",
    "sed",
    "jq",
]
Style: TypeAlias = Literal["gnu", "words"]

OPERANDS: Mapping[str, str] = {
    "any": "any words",
    "paths": "any number of paths",
    "none": "no operands",
    "one": "at most one path (a second would be written)",
    "inside": "paths inside the workspace (what they name is run)",
    "directory": "exactly one directory inside the workspace",
    "new": "paths, no part of which starts with a dot",
    "text": "text that names no file",
    "text paths": "one text, then paths",
    "targets": "plain names, without `=`",
    "plus": "a format that starts with `+`",
    "format": "a printf format with plain conversions, then text",
    "sed": "a sed script that only prints or deletes lines by number, then paths",
    "jq": "a jq filter that loads nothing and reads no variables, then paths",
}


class BadTable(ValueError):
    """A program's table that can't be read; the message says where."""


@dataclass(frozen=True, slots=True)
class Program:
    """What one program may be given.

    `options` is a list of words: `-v` and `--all` are flags, `-n=` and `--lines=` take a value, `--color[=]`
    may have one attached, `=TEXT` says the value names no file, `=ANY` that it may also look like an option,
    `-#` is a number (`head -20`), `*` is any option. `after` are the options allowed after `--`, where a program
    hands them on. `instead` are options that take the place of the first text (`grep -e`). In the style `words`
    an option is a whole word with one dash (`find -name`).
    """

    options: str = ""
    operands: Operands = "paths"
    after: str = ""
    instead: str = ""
    style: Style = "gnu"


@dataclass(frozen=True, slots=True)
class _Option:
    value: Literal["no", "attached", "needed"]
    text: bool  # the value names no file
    any: bool  # it may even start with a dash


@lru_cache(maxsize=1024)
def _table(options: str) -> Mapping[str, _Option]:
    return dict(_entry(word) for word in options.split())


_ENTRY = re.compile(r"(?P<name>-#|\*|--?[A-Za-z0-9?@.][\w.-]*)(?P<value>=|\[=\])?(?P<text>TEXT|ANY)?")


def _entry(word: str) -> tuple[str, _Option]:
    entry = _ENTRY.fullmatch(word)
    if entry is None or (entry["text"] and not entry["value"]):
        raise BadTable(
            f"{word!r} is not an option; write -v, --all, -n=, --lines=, --color[=], -e=TEXT, -e=ANY, -# or *"
        )
    value: Literal["no", "attached", "needed"] = "no"
    if entry["value"]:
        value = "needed" if entry["value"] == "=" else "attached"
    return entry["name"], _Option(value, bool(entry["text"]), entry["text"] == "ANY")


def check_program(program: Program) -> None:
    """Refuse a table that can't be read, when it is made and not when it is first needed."""
    if program.operands not in OPERANDS:
        raise BadTable(f"operands {program.operands!r}: use one of {', '.join(OPERANDS)}")
    if program.style not in ("gnu", "words"):
        raise BadTable(f"style {program.style!r}: use gnu or words")
    for name, option in (*_table(program.options).items(), *_table(program.after).items()):
        if program.style == "gnu" and name[:1] == "-" and name[:2] != "--" and len(name) > 2:
            raise BadTable(f"{name!r} has one dash and more than one letter: that needs style = 'words'")
        if name == "-#" and option.value != "no":
            raise BadTable("-# takes no value")


@dataclass(slots=True)
class _Reading:
    """One pass over the words after the program's name."""

    words: tuple[str, ...]
    skip: Collection[int]  # positions the rule itself spelled out
    outside: Callable[[str], bool]
    strict: bool  # every path must be inside
    instead: Collection[str]
    text_given: bool = False  # an option took the place of the first text
    operands: list[str] = field(default_factory=list[str])
    loose: list[str] = field(default_factory=list[str])  # operands the rule did not spell out


def problem_with(
    program: Program,
    name: str,
    words: tuple[str, ...],
    *,
    spelled_out: Collection[int] = (),
    outside: Callable[[str], bool],
    inside_only: bool = False,
) -> str | None:
    """What keeps `name` with these words from being known harmless; None when nothing does."""
    strict = inside_only or program.operands in ("inside", "directory")
    reading = _Reading(words, spelled_out, outside, strict, program.instead.split())
    problem = _read_options(program, reading)
    if problem is None:
        problem = _operand_problem(program.operands, reading)
    return shown(f"`{name}` with {problem}") if problem else None


def _read_options(program: Program, reading: _Reading) -> str | None:
    table = _table(program.options)
    read_one = _read_word_option if program.style == "words" else _read_gnu_option
    at = 0
    while at < len(reading.words):
        word = reading.words[at]
        if program.operands == "one" and reading.operands and at not in reading.skip:
            # Not every such program reads options after an operand: `xxd file -p` writes a file named `-p`.
            return f"`{word}` after `{reading.operands[0]}`: a second file would be written"
        if word == "--" and program.style == "gnu":
            table, at = _table(program.after), at + 1
            if not program.after:
                _take_operands(reading, at)
                return None
            continue
        if not word.startswith("-") or len(word) == 1:
            _take_operand(reading, at)
            at += 1
            continue
        took, problem = read_one(table, reading, at)
        if problem is not None and at not in reading.skip:
            return problem
        at += took
    return None


def _take_operands(reading: _Reading, start: int) -> None:
    for at in range(start, len(reading.words)):
        _take_operand(reading, at)


def _take_operand(reading: _Reading, at: int) -> None:
    reading.operands.append(reading.words[at])
    if at not in reading.skip:
        reading.loose.append(reading.words[at])


_Took: TypeAlias = tuple[int, str | None]


def _read_gnu_option(table: Mapping[str, _Option], reading: _Reading, at: int) -> _Took:
    word = reading.words[at]
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        option = table.get(name)
        if option is None:
            return _unlisted(table, reading, word, name)
        return _with_value(option, name, value if equals else None, reading, at)
    if "-#" in table and word[1:].isdigit() and word.isascii():
        return 1, None
    return _read_bundle(table, reading, at)


def _read_bundle(table: Mapping[str, _Option], reading: _Reading, at: int) -> _Took:
    """`-la` is `-l -a`; the first letter that takes a value takes the rest."""
    word = reading.words[at]
    for index in range(1, len(word)):
        name = f"-{word[index]}"
        option = table.get(name)
        if option is None:
            return _unlisted(table, reading, word, name)
        reading.text_given |= name in reading.instead
        if option.value != "no":
            return _with_value(option, name, word[index + 1 :] or None, reading, at)
    return 1, None


def _read_word_option(table: Mapping[str, _Option], reading: _Reading, at: int) -> _Took:
    word = reading.words[at]
    name, equals, value = word.partition("=")
    option = table.get(name)
    if option is None:
        return _unlisted(table, reading, word, name)
    return _with_value(option, name, value if equals else None, reading, at)


def _unlisted(table: Mapping[str, _Option], reading: _Reading, word: str, name: str) -> _Took:
    if "*" not in table:
        return 1, f"`{name}`: not an option known to be harmless"
    if reading.strict and reading.outside(word):
        return 1, f"`{word}`, which leaves the workspace"
    return 1, None


_NUMBER = re.compile(r"-[0-9]+[A-Za-z]?", re.ASCII)


def _with_value(option: _Option, name: str, value: str | None, reading: _Reading, at: int) -> _Took:
    took = 1
    reading.text_given |= name in reading.instead
    if option.value == "no" and value is not None:
        return 1, f"a value for `{name}`, which takes none"
    if option.value == "needed" and value is None:
        if at + 1 >= len(reading.words):
            return 1, f"`{name}` and no value for it"
        took, value = 2, reading.words[at + 1]
        if value.startswith("-") and len(value) > 1 and not option.any and not _NUMBER.fullmatch(value):
            return took, f"`{name} {value}`: a value that looks like an option"
    if value and reading.strict and not option.text and reading.outside(value):
        return took, f"`{name} {value}`, which leaves the workspace"
    return took, None


def _operand_problem(kind: Operands, reading: _Reading) -> str | None:
    loose = reading.loose
    if kind == "any" or not reading.operands:
        return "no directory, which is the home directory" if kind == "directory" else None
    if kind == "none" and loose:
        return f"`{loose[0]}`: it is known to be harmless only without operands"
    if kind == "one" and len(reading.operands) > 1 and loose:
        return f"`{loose[-1]}`: a second file would be written"
    if kind == "directory" and (len(reading.operands) > 1 or reading.operands[0] == "-"):
        return f"`{reading.operands[-1]}`: one directory by name, inside the workspace"
    if kind == "inside" and (listed := [word for word in loose if word.startswith("@")]):
        return f"`{listed[0]}`: more arguments, from a file"
    if kind in _FIRST and reading.operands[0] in loose and not _FIRST[kind].fullmatch(reading.operands[0]):
        return f"`{reading.operands[0]}`: not {OPERANDS[kind].partition(',')[0]}"
    if kind in _EACH and (odd := [word for word in loose if not _EACH[kind].fullmatch(word)]):
        return f"`{odd[0]}`: not {OPERANDS[kind].partition(',')[0]}"
    return _leaving(kind, reading)


_LINE = r"(?:[0-9]+|\$)"
_SED = rf"{_LINE}(?:,\+?{_LINE})?[pdq]"
_FIRST = {
    "format": re.compile(r"(?!-)(?:[^%]|%%|%[-+ #0]*[0-9]*(?:\.[0-9]+)?[sdiuxXobcqeEfgG])*+", re.DOTALL),
    "sed": re.compile(rf"{_SED}(?:;{_SED})*+"),
    "jq": re.compile(r"(?!.*(?:import|include|env|ENV|__|input_filename|get_search_list)).*", re.DOTALL),
}
_EACH = {
    "targets": re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./:-]*", re.ASCII),
    "plus": re.compile(r"\+.*", re.DOTALL),
    "new": re.compile(r"(?:\./)?(?!\.)(?!.*/\.).*", re.DOTALL),
}


def _leaving(kind: Operands, reading: _Reading) -> str | None:
    if not reading.strict or kind in ("text", "format", "plus"):
        return None
    first_is_text = kind in ("text paths", "sed", "jq") and not reading.text_given
    paths = reading.operands[1:] if first_is_text else reading.operands
    loose = frozenset(reading.loose)  # a line may have thousands of words
    leaving = next((word for word in paths if word in loose and reading.outside(word)), None)
    return f"`{leaving}`, which leaves the workspace" if leaving is not None else None
