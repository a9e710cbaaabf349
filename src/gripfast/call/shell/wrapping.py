"""Wrappers, which run the words after them as a command: finds that command if it is clear which words it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gripfast.call.shell.words import Argv, Unknown, Word, assignment_problem
from gripfast.records import dataclass

_FED = Unknown("(the input of xargs)", many=True)


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """A wrapper's flags, its options with a value, and how many words come before the command."""

    flags: str = ""
    values: str = ""
    operands: int = 0


_WRAPPERS: Mapping[str, _Wrapper] = {
    "timeout": _Wrapper("--preserve-status --foreground -v --verbose", "-k -s --signal --kill-after", 1),
    "nice": _Wrapper("", "-n"),
    "nohup": _Wrapper(),
    "stdbuf": _Wrapper("-oL -o0 -eL -e0 -i0 -iL"),
    "command": _Wrapper(),
    "env": _Wrapper(),
    "xargs": _Wrapper("-0 -r -t -x --null --no-run-if-empty --verbose", "-n -P -L -d -I --max-args --max-procs"),
    "uv run": _Wrapper("-q --quiet --frozen --locked --no-sync --offline --isolated --all-extras --dev"),
    "poetry run": _Wrapper(),
    "pipenv run": _Wrapper(),
    "pdm run": _Wrapper(),
}
_FIRST_WORDS = frozenset(name.split()[0] for name in _WRAPPERS)
_VALUE = re.compile(r"[A-Za-z0-9{}%@_.,\\-]*", re.ASCII)
_DURATION = re.compile(r"[0-9.]+[smhd]?", re.ASCII)


def runs_the_project(argv: Argv) -> bool:
    """Whether a wrapper runs the project's code before the command, or instead of it: `uv run` builds the project."""
    return " ".join(map(str, argv[:2])) in ("uv run", "poetry run", "pipenv run", "pdm run")


def unwrapped(argv: Argv) -> Argv | None:
    """The command that a wrapper runs; None if it is not a wrapper, or if the command is not clear."""
    if not argv or argv[0] not in _FIRST_WORDS:
        return None
    for length in (2, 1):
        name = " ".join(str(word) for word in argv[:length])
        wrapper = _WRAPPERS.get(name)
        if wrapper is not None:
            return _inside(name, wrapper, argv[length:])
    return None


@dataclass(frozen=True, slots=True)
class FindCommands:
    """What `find` itself is given, and the commands that it runs."""

    rest: Argv
    run: tuple[Argv, ...]


def run_by_find(argv: Argv) -> FindCommands | None:
    """`find` with `-exec`, split into parts; None without `-exec`, or if it is not clear what runs."""
    if argv[:1] != ("find",) or "-exec" not in argv:
        return None
    starts = _starting_points(argv[1:])
    prefix = starts[0] if len(starts) == 1 else ""
    rest: list[Word] = []
    run: list[Argv] = []
    at = 0
    while at < len(argv):
        if argv[at] != "-exec":
            rest.append(argv[at])
            at += 1
            continue
        end = next((i for i in range(at + 1, len(argv)) if _ends_exec(argv, i)), None)
        words = argv[at + 1 : end]
        if end is None or not _may_be_run(words) or not starts:
            return None
        run.append(tuple(_found_name(word, prefix, starts, many=argv[end] == "+") for word in words))
        at = end + 1
    return FindCommands((*rest, "-print"), tuple(run))


def _starting_points(words: Argv) -> list[str]:
    """Where `find` starts; empty if that is not clear."""
    starts: list[str] = []
    for word in words:
        if word in ("-H", "-L", "-P"):
            continue
        if not isinstance(word, str):
            return []
        if word.startswith("-") or word in ("(", ")", "!", ","):
            break
        starts.append(word)
    return starts or ["."]


def _ends_exec(argv: Argv, at: int) -> bool:
    return argv[at] == ";" or (argv[at] == "+" and argv[at - 1] == "{}")


def _may_be_run(words: Argv) -> bool:
    if not words or not isinstance(words[0], str) or "{}" in words[0] or words[0].startswith("-") or not words[0]:
        return False
    return not any(isinstance(word, Unknown) and (word.many or "{}" in word.text) for word in words)


def _found_name(word: Word, prefix: str, starts: list[str], *, many: bool) -> Word:
    if word == "{}":
        return Unknown("{}", prefix=prefix, many=many, beneath=tuple(starts))
    return _with_mark(word, "{}")


def _inside(name: str, wrapper: _Wrapper, words: Argv) -> Argv | None:
    at, replaced = 0, None
    while at < len(words) and (option := words[at]) != "" and isinstance(option, str) and option.startswith("-"):
        if option in wrapper.flags.split():
            at += 1
        elif option in wrapper.values.split():
            value = words[at + 1] if at + 1 < len(words) else None
            if not isinstance(value, str) or not value or not _VALUE.fullmatch(value) or value.startswith("-"):
                return None
            replaced = value if option == "-I" else replaced
            at += 2
        elif name == "xargs" and re.fullmatch(r"-(?:[nPL][0-9]+|I[{}%@]+|0r|r0|0?n[0-9]+)", option):
            replaced = option[2:] if option.startswith("-I") else replaced
            at += 1
        elif name == "nice" and re.fullmatch(r"-n?[0-9]+", option):
            at += 1
        else:
            return None
    return _command(name, wrapper, words[at:], replaced)


def _command(name: str, wrapper: _Wrapper, words: Argv, replaced: str | None) -> Argv | None:
    for operand in words[: wrapper.operands]:
        if not isinstance(operand, str) or not _DURATION.fullmatch(operand):
            return None
    words = words[wrapper.operands :]
    if name == "env":
        given, words = words, _without_assignments(words)
        if len(given) > len(words) and "make" in words:  # it runs what some variables name
            return None
    if not words or not isinstance(words[0], str) or words[0].startswith("-") or "=" in words[0] or not words[0]:
        return None
    if name != "xargs":
        return words
    return (*words, _FED) if replaced is None else _fed_in_place(words, replaced)


def _without_assignments(words: Argv) -> Argv:
    while words and "=" in str(words[0]):
        text = str(words[0])
        name = text.partition("=")[0]
        known = words[0] if isinstance(words[0], str) else None
        whole = known is not None or (isinstance(words[0], Unknown) and "=" in words[0].prefix and not words[0].many)
        if not whole or assignment_problem(name, text.partition("=")[2]) is not None:
            return ()
        words = words[1:]
    return words


def _fed_in_place(words: Argv, mark: str) -> Argv | None:
    """For `xargs -I{} cmd {}`: puts the input in place of the mark, never into the program's name."""
    if mark in str(words[0]) or any(isinstance(word, Unknown) and mark in word.text for word in words):
        return None
    return tuple(_with_mark(word, mark) for word in words)


def _with_mark(word: Word, mark: str) -> Word:
    text = str(word)
    return Unknown(text, prefix=text.partition(mark)[0]) if mark in text else word
