"""Whether the words of one command are known to be harmless, by the program's table of options."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

from gripfast.call.shell.scripts import PLAIN
from gripfast.call.shell.words import Argv, Unknown, Word, assignment_problem
from gripfast.records import dataclass
from gripfast.text.escape import escaped

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
    "scripts",
    "refs",
    "plus",
    "format",
    "sed",
    "awk",
    "jq",
    "written",
    "edited",
    "moved",
    "test",
    "names",
    "sets",
    "jobs",
    "local",
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
    "written": "paths that may be written",
    "edited": "a sed script that only prints, deletes and replaces, then paths that may be written",
    "moved": "paths, and a last one that they are written to",
    "test": "a test of texts, numbers or files",
    "names": "names of variables",
    "sets": "names of variables, with or without a value",
    "jobs": "jobs that this shell has started: `%1`, `$!`",
    "local": "addresses of this machine: `localhost:8000/path`",
    "text": "text that names no file",
    "text paths": "one text, then paths",
    "targets": "plain names, without `=`",
    "scripts": "plain names, without `=` and none that publishes",
    "refs": "names of branches and commits, not of files",
    "plus": "a format that starts with `+`",
    "format": "a printf format with plain conversions, then text",
    "sed": "a sed script that only prints, deletes and replaces, then paths",
    "awk": "an awk script that runs and writes nothing, then paths",
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
    an option is a whole word with one dash (`find -name`). `=SED` is a value that must be a plain sed script,
    `=NULL` one that must be /dev/null.

    `unknown` says that no option of the program does harm, so that it may have any word, also one that only the shell
    knows. `project` is for programs that run the project's own code, and so may lie in the workspace themselves.
    `leading` is for those that run a script: `*` is for the options after its name, which are the script's own.
    """

    options: str = ""
    operands: Operands = "paths"
    after: str = ""
    instead: str = ""
    style: Style = "gnu"
    unknown: bool = False
    project: bool = False
    leading: bool = False


@dataclass(frozen=True, slots=True)
class _Option:
    value: Literal["no", "attached", "needed"]
    text: bool  # the value names no file
    any: bool  # it may even start with a dash
    sed: bool = False  # the value is a script
    null: bool = False  # the value must be /dev/null


@lru_cache(maxsize=1024)
def _table(options: str) -> Mapping[str, _Option]:
    return dict(_entry(word) for word in options.split())


_ENTRY = re.compile(r"(?P<name>-#|\*|--?[A-Za-z0-9?@.][\w.-]*)(?P<value>=|\[=\])?(?P<text>TEXT|ANY|SED|NULL)?")


def _entry(word: str) -> tuple[str, _Option]:
    entry = _ENTRY.fullmatch(word)
    if entry is None or (entry["text"] and not entry["value"]):
        raise BadTable(
            f"{word!r} is not an option; write -v, --all, -n=, --lines=, --color[=], -e=TEXT, -e=ANY, -# or *"
        )
    value: Literal["no", "attached", "needed"] = "no"
    if entry["value"]:
        value = "needed" if entry["value"] == "=" else "attached"
    kind = entry["text"]
    return entry["name"], _Option(value, bool(kind), kind in ("ANY", "SED"), kind == "SED", kind == "NULL")


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


class PlaceJudge(Protocol):
    """Where words may point."""

    def outside(self, word: Word) -> bool:
        """Whether a word may name a place outside the workspace."""
        ...

    def write_problem(self, word: Word) -> str | None:
        """Why a place may not be written."""
        ...

    def may_be_option(self, word: Unknown) -> bool:
        """Whether a word may become an option."""
        ...

    def knows_protected(self, word: Word) -> bool:
        """Whether `write_problem` knows which names other programs run, for this very word."""
        ...


@dataclass(slots=True)
class _OptionReading:
    """One pass over the words after the program's name."""

    program: Program
    words: Argv
    skip: Collection[int]  # positions the rule itself spelled out
    places: PlaceJudge
    strict: bool  # every path must be inside
    instead: Collection[str]
    text_given: bool = False  # an option took the place of the first text
    operands: list[Word] = field(default_factory=list[Word])
    loose: list[Word] = field(default_factory=list[Word])  # operands the rule did not spell out


def problem_with(
    program: Program,
    name: str,
    words: Argv,
    *,
    spelled_out: Collection[int] = (),
    places: PlaceJudge,
    inside_only: bool = False,
) -> str | None:
    """Why `name` with these words is not known to be harmless; None if it is."""
    strict = inside_only or program.operands in ("inside", "directory")
    reading = _OptionReading(program, words, spelled_out, places, strict, program.instead.split())
    problem = _read_options(program, reading)
    if problem is None:
        problem = _shape_problem(name, reading) or _operand_problem(program.operands, reading)
    return escaped(f"`{name}` with {problem}") if problem else None


# Operands of these that don't name a part of the project are downloaded, or may be any program.
_GO_PACKAGE = re.compile(r"\.{1,2}(?:/[^@]*)?|[^@./]+(?:/[^@]*)?|[^@/]+\.go")
_MAVEN_GOAL = re.compile(r"[^:]*|dependency:(?:tree|analyze|list)")
_BUN_SCRIPT = re.compile(
    r"(?:test|build|lint|dev|start|format|fmt|type-?check|check|clean|preview|generate)(?:[:-][\w:-]+)?|[\w./-]+\.[cm]?[jt]sx?"
)
_ARCHIVE = re.compile(r"[^:]*")  # `host:file` would be fetched through a remote shell
_YARN_SCRIPT = re.compile(r"(?!node$|env$).*")  # yarn's own commands, which are not scripts of the project
_SHAPES = {
    "go run": _GO_PACKAGE,
    "bun run": _BUN_SCRIPT,
    "yarn run": _YARN_SCRIPT,
    **{
        f"tar {letters}": _ARCHIVE
        for letters in ("-tf", "tf", "-tzf", "tzf", "-tvf", "tvf", "-tzvf", "tzvf", "-tvzf")
    },
    "mvn": _MAVEN_GOAL,
    "./mvnw": _MAVEN_GOAL,
}


# Values of curl's that begin with `@` are read from files, and `%output{…}` in a format writes one.
_CURL_FILE = re.compile(r"-{0,2}[\w-]*=?@|.*%output", re.DOTALL)


def _shape_problem(name: str, reading: _OptionReading) -> str | None:
    named = reading.operands if name.endswith(("mvn", "mvnw")) or name.startswith("tar ") else reading.operands[:1]
    if name == "curl" and (odd := [word for word in reading.words if _CURL_FILE.match(str(word))]):
        return f"`{odd[0]}`, which may read or write a file"
    if name in _SHAPES and (odd := [word for word in named if not _fits(_SHAPES[name], word)]):
        return f"`{odd[0]}`, which may not be the project's own"
    if reading.program.leading and not named and not {"--version", "--help"} & {*reading.words}:
        return "no script, so that it runs what it is fed"
    if reading.program.leading and named and not re.search(r"[./]", str(named[0])):
        return f"`{named[0]}`, which is not a script"
    if name == "strings" and (listed := [word for word in reading.loose if str(word).startswith("@")]):
        return f"`{listed[0]}`: more arguments, from a file"
    if reading.program.project and (odd := [word for word in reading.loose if _CODE.search(str(word))]):
        return f"`{odd[0]}`, which may be code, or fetched"
    return None


def _read_options(program: Program, reading: _OptionReading) -> str | None:
    table = _table(program.options)
    read_one = _read_word_option if program.style == "words" else _read_gnu_option
    at = 0
    while at < len(reading.words):
        word = reading.words[at]
        if program.operands == "one" and reading.operands and at not in reading.skip:
            # Not every such program reads options after an operand: `xxd file -p` writes a file named `-p`.
            return f"`{word}` after `{reading.operands[0]}`: a second file would be written"
        if isinstance(word, Unknown):
            took, problem = _read_unknown(table, reading, at)
            if problem is not None:
                return problem
            at += took
            continue
        if word == "--" and program.style == "gnu":
            if program.operands in _WITHOUT_DASHES:
                return "`--`: what follows is not looked at"
            table, at = _table(program.after), at + 1
            if not program.after:
                _take_operands(reading, at)
                return None
            continue
        if not word.startswith("-") or len(word) == 1 or program.operands == "test":
            _take_operand(reading, at)
            at += 1
            continue
        took, problem = read_one(table, reading, at)
        if problem is not None and at not in reading.skip:
            return problem
        at += took
    return None


_Took: TypeAlias = tuple[int, str | None]
_WITHOUT_DASHES = ("names", "test", "refs", "sets", "jobs", "local")


def _read_unknown(table: Mapping[str, _Option], reading: _OptionReading, at: int) -> _Took:
    """A word that only the shell knows. It may be an option unless it is known to begin otherwise."""
    word = reading.words[at]
    assert isinstance(word, Unknown)
    if word.prefix.startswith("--") and "=" in word.prefix:
        option = table.get(word.prefix.partition("=")[0])
        if option is not None and option.value != "no" and not option.sed and not _SIGNATURE.search(word.text):
            leaves = reading.strict and not option.text and reading.places.outside(word)
            return 1, f"`{word}`, which may leave the workspace" if leaves else None
    is_job = reading.program.operands == "jobs" and word.text in ("$!", '"$!"')
    if (
        reading.program.operands != "test"
        and not is_job
        and not reading.program.unknown
        and reading.places.may_be_option(word)
    ):
        return 1, f"`{word}`, which may be an option; write it behind `--`, or with `./` before it"
    _take_operand(reading, at)
    return 1, None


def _take_operands(reading: _OptionReading, start: int) -> None:
    for at in range(start, len(reading.words)):
        _take_operand(reading, at)


def _take_operand(reading: _OptionReading, at: int) -> None:
    reading.operands.append(reading.words[at])
    if at not in reading.skip:
        reading.loose.append(reading.words[at])


def _read_gnu_option(table: Mapping[str, _Option], reading: _OptionReading, at: int) -> _Took:
    word = str(reading.words[at])
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        option = table.get(name)
        if option is None:
            return _unlisted(table, reading, word, name)
        return _with_value(option, name, value if equals else None, reading, at)
    if "-#" in table and word[1:].isdigit() and word.isascii():
        return 1, None
    return _read_bundle(table, reading, at)


def _read_bundle(table: Mapping[str, _Option], reading: _OptionReading, at: int) -> _Took:
    """`-la` is `-l -a`; the first letter that takes a value takes the rest."""
    word = str(reading.words[at])
    for index in range(1, len(word)):
        name = f"-{word[index]}"
        option = table.get(name)
        if option is None:
            return _unlisted(table, reading, word, name)
        reading.text_given |= name in reading.instead
        if option.value != "no":
            return _with_value(option, name, word[index + 1 :] or None, reading, at)
    return 1, None


def _read_word_option(table: Mapping[str, _Option], reading: _OptionReading, at: int) -> _Took:
    word = str(reading.words[at])
    name, equals, value = word.partition("=")
    option = table.get(name)
    if option is None:
        return _unlisted(table, reading, word, name)
    return _with_value(option, name, value if equals else None, reading, at)


def _unlisted(table: Mapping[str, _Option], reading: _OptionReading, word: str, name: str) -> _Took:
    if "*" not in table:
        return 1, f"`{name}`: not an option known to be harmless"
    if reading.program.leading and not reading.operands:
        return 1, f"`{name}` before the script: not an option known to be harmless"
    for text in (word, _ATTACHED.sub("", word)):
        if _CODE.search(text):
            return 1, f"`{word}`, which may be code, or fetched"
        if reading.strict and text and reading.places.outside(text):
            return 1, f"`{word}`, which leaves the workspace"
        if reading.program.project and _RUN_BY_OTHERS.search(text):
            return 1, f"`{word}`, a file that other programs run"
    return 1, None


_ATTACHED = re.compile(r"-[A-Za-z]+")  # the letters before a value that is attached: `-o/etc/x`


# Wherever they stand in a word: the value of an option that names a report may have a prefix.
_RUN_BY_OTHERS = re.compile(
    r"""(?:^|[=/:,])(?:\.git|git~1|\.gitmodules|\.github|\.husky|\.vscode|\.idea|\.zed|\.devcontainer|\.claude|\.cursor|
    \.codex|\.gemini|\.opencode|opencode\.jsonc?|\.(?:kiro|roo|windsurf|continue|amazonq|factory|qwen|junie|trae|aider|fleet|vs)|
    \.?crush\.json|\.gitpod\.yml|\.autoenv\w*|\.(?:in|out)\.zsh|\.shadowenv\.d|\.lldbinit|\.nvim\.lua|\.hg|\.sl|\.jj|\.(?:drone|woodpecker)|
    Jenkinsfile|\.envrc|\.npmrc|\.mcp\.json|\.?gripfast|\.pre-commit-config\.yaml|
    \.?lefthook(?:-local)?|\.?mise|\.mvn|\.gdbinit|\.exrc|\.nvimrc|\.dir-locals(?:-2)?|\.cargo|\.config|\.gitlab-ci\.yml|
    \.run|\.externalToolBuilders|\.overcommit\.yml|captainhook\.json|grumphp\.yml|prek\.toml|hk\.pkl|\.yarnrc|
    \.(?:clinerules|openhands|gitea|forgejo|cirrus|semaphore|builds?)|bitbucket-pipelines|\.?appveyor|
    \.circleci|\.travis\.yml|\.buildkite|azure-pipelines\.yml|\.bash\w+|\.profile|\.inputrc|\.z(?:shrc|shenv|profile|login|
    logout)|\.(?:k|mk|c|tc)shrc|\.login|\.logout)(?:[/.]|$)""",
    re.IGNORECASE | re.VERBOSE,
)
_CODE = re.compile(r"(?:^|=)(?:data|https?|file|node):", re.IGNORECASE)


_NUMBER = re.compile(r"-[0-9]+[A-Za-z]?", re.ASCII)
_SIGNATURE = re.compile(r"%G[?GSKFPT]|%\(signature")  # in a format of git's


def _with_value(option: _Option, name: str, value: Word | None, reading: _OptionReading, at: int) -> _Took:
    took = 1
    reading.text_given |= name in reading.instead
    if option.value == "no" and value is not None:
        return 1, f"a value for `{name}`, which takes none"
    if option.value == "needed" and value is None:
        if at + 1 >= len(reading.words):
            return 1, f"`{name}` and no value for it"
        took, value = 2, reading.words[at + 1]
        text = value if isinstance(value, str) else ""
        if text.startswith("-") and len(text) > 1 and not option.any and not _NUMBER.fullmatch(text):
            return took, f"`{name} {value}`: a value that looks like an option"
    return took, _value_problem(option, name, value, reading)


def _value_problem(option: _Option, name: str, value: Word | None, reading: _OptionReading) -> str | None:
    if isinstance(value, Unknown) and value.many and not reading.program.unknown:
        return f"`{name} {value}`, which may be more than one word; quote it"
    if option.sed and not (isinstance(value, str) and PLAIN["sed"](value)):
        return f"`{name} {value}`: not {OPERANDS['sed'].partition(',')[0]}"
    if option.null and value != "/dev/null":
        return f"`{name} {value}`, which would be written"
    if option.text and _SIGNATURE.search(str(value or "")):
        return f"`{name} {value}`, which runs the program that checks signatures"
    if value and reading.strict and not option.text and reading.places.outside(value):
        return f"`{name} {value}`, which leaves the workspace"
    if reading.program.project and not option.text and _RUN_BY_OTHERS.search(str(value or "")):
        return f"`{name} {value}`, a file that other programs run"
    return None


def _operand_problem(kind: Operands, reading: _OptionReading) -> str | None:
    loose = reading.loose
    if kind == "test":
        return _test_problem(reading.operands) or _leaving(kind, reading)
    if kind == "any" or not reading.operands:
        return _without_operands(kind, reading)
    if kind == "none" and loose:
        return f"`{loose[0]}`: it is known to be harmless only without operands"
    if kind == "one" and (len(reading.operands) > 1 or _are_many(loose)) and loose:
        return f"`{loose[-1]}`: a second file would be written"
    if kind == "directory" and (len(reading.operands) > 1 or reading.operands[0] == "-" or _are_many(loose)):
        return f"`{reading.operands[-1]}`: one directory by name, inside the workspace"
    if kind in ("inside", "directory") and (later := [word for word in loose if _is_unknown_place(word)]):
        return f"`{later[0]}`, which is known only when the line runs"
    if kind == "inside" and (listed := [word for word in loose if str(word).startswith("@")]):
        return f"`{listed[0]}`: more arguments, from a file"
    if kind in _FIRST and not reading.text_given and (problem := _first_problem(kind, reading)) is not None:
        return problem
    if reading.program.project and (odd := [word for word in loose if _RUN_BY_OTHERS.search(str(word))]):
        return f"`{odd[0]}`, a file that other programs run"
    if kind == "names" and (name := next((word for word in loose if not _may_be_set(word)), None)) is not None:
        return f"`{name}`: setting it may change what runs"
    if kind == "sets" and (problem := next(filter(None, map(_setting_problem, loose)), None)) is not None:
        return problem
    if kind in _EACH and (odd := [word for word in loose if not _fits(_EACH[kind], word)]):
        return f"`{odd[0]}`: not {OPERANDS[kind].partition(',')[0]}"
    if kind in WRITING:
        return _writing_problem(kind, reading)
    return _leaving(kind, reading)


def _without_operands(kind: Operands, reading: _OptionReading) -> str | None:
    if kind == "directory":
        return "no directory, which is the home directory"
    if kind == "edited" and not reading.text_given:
        return "no script"
    if kind in ("jobs", "local"):
        return f"none of {OPERANDS[kind].partition(':')[0]}"
    return None


def _is_unknown_place(word: Word) -> bool:
    return isinstance(word, Unknown) and word.glob is None


def _are_many(words: Sequence[Word]) -> bool:
    return any(isinstance(word, Unknown) and word.many for word in words)


def _fits(pattern: re.Pattern[str], word: Word) -> bool:
    if isinstance(word, Unknown) and pattern is _EACH["jobs"]:
        return word.text in ("$!", '"$!"')
    if isinstance(word, Unknown) and pattern is _EACH["local"]:
        return False
    if isinstance(word, Unknown):
        return word.number == "digits" or (word.glob is not None and pattern.fullmatch(word.glob) is not None)
    return pattern.fullmatch(word) is not None


def _may_be_set(word: Word) -> bool:
    return isinstance(word, str) and assignment_problem(word, None) is None


def _setting_problem(word: Word) -> str | None:
    """What is wrong with `NAME` or `NAME=value` after `export`."""
    name, equals, value = str(word).partition("=")
    if isinstance(word, Unknown) and (word.many or "=" not in word.prefix):
        return f"`{word}`, which is known only when the line runs"
    problem = assignment_problem(name, value if equals and isinstance(word, str) else None)
    return None if problem is None else f"`{word}`: {problem}"


_FIRST = {"format": "format", "sed": "sed", "edited": "sed", "awk": "awk", "jq": "jq"}
WRITING = ("written", "edited", "moved")


def _first_problem(kind: Operands, reading: _OptionReading) -> str | None:
    first = reading.operands[0]
    if kind == "edited" and first == "" and len(reading.operands) > 1:
        first = reading.operands[1]  # BSD's sed takes a suffix as a word of its own
    if first not in reading.loose or (isinstance(first, str) and PLAIN[_FIRST[kind]](first)):
        return None
    return f"`{first}`: not {OPERANDS[kind].partition(',')[0]}"


_PUBLISHES = r"(?!.*(?:publish|deploy|release|upload|push|ship))"
_TARGET = r"(?!.*://)[A-Za-z0-9_.@][A-Za-z0-9_./:@-]*"
_EACH = {
    "targets": re.compile(_TARGET, re.ASCII),
    "scripts": re.compile(_PUBLISHES + _TARGET, re.ASCII | re.IGNORECASE),
    "plus": re.compile(r"\+.*", re.DOTALL),
    "jobs": re.compile(r"%[0-9%+-]?"),
    "local": re.compile(
        r"(?:https?://)?(?:localhost|127\.0\.0\.1)(?::[0-9]{1,5})?(?:[/?][\w./~%&=?,:;+-]*)?",
        re.ASCII | re.IGNORECASE,
    ),
    "new": re.compile(r"(?:\./)?(?!\.)(?!.*/\.).*", re.DOTALL),
    "refs": re.compile(r"(?!.*\.[A-Za-z]\w{0,4}$)[A-Za-z0-9_@][A-Za-z0-9_./@{}^~-]*|-", re.ASCII),
}


_HIDDEN = re.compile(
    r"(?:^|/)\.(?!\.?(?:/|$))|/\./?$"
)  # a name that starts with a dot, or all that is in a directory


def _writing_problem(kind: Operands, reading: _OptionReading) -> str | None:
    """What is written must be a place that Write may write; where things are put into a directory, that too."""
    paths = list(reading.operands)
    if kind == "edited" and not reading.text_given:
        paths = paths[2:] if paths[:1] == [""] else paths[1:]
    if kind == "moved":
        if len(paths) < 2 or isinstance(paths[-1], Unknown):
            return f"`{paths[-1]}`, where what is written is known only when the line runs"
        paths += [
            f"{paths[-1]}/{str(path).rstrip('/').rpartition('/')[2]}" for path in paths[:-1] if isinstance(path, str)
        ]
    for path in paths:
        if kind == "moved" and _HIDDEN.search(str(path)) and not reading.places.knows_protected(path):
            return f"`{path}`: what is put there may be run by other programs"
        if (problem := reading.places.write_problem(path)) is not None:
            return f"`{path}`: {problem}"
    return None


_TEST_UNARY = frozenset("-b -c -d -e -f -g -h -k -n -p -r -s -t -u -w -x -z -G -L -N -O -S".split())
_TEST_BINARY = frozenset("= == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef".split())


def _test_problem(words: Sequence[Word]) -> str | None:
    """`test` may run a command in what it takes for a variable's name, so every operator must be known."""
    words = words[1:] if words[:1] == ["!"] else words
    if all(isinstance(word, str) for word in words):
        known = _TEST_UNARY | _TEST_BINARY | {"-a", "-o", "!", "(", ")"}
        odd = next((word for word in words if str(word).startswith("-") and word not in known), None)
        return None if odd is None or str(odd)[1:].isdigit() else f"`{odd}`: not an option known to be harmless"
    if many := [word for word in words if _are_many([word])]:
        return f"`{many[0]}`, which may become several words; quote it"
    match list(words):
        case [_]:
            return None
        case [str(operator), _] if operator in _TEST_UNARY:
            return None
        case [_, str(operator), _] if operator in _TEST_BINARY:
            return None
        case _:
            return "a test whose operators are not all known"


def _leaving(kind: Operands, reading: _OptionReading) -> str | None:
    if not reading.strict or kind in ("text", "format", "plus", "names", "sets", "jobs", "local"):
        return None
    first_is_text = kind in ("text paths", "sed", "awk", "jq") and not reading.text_given
    paths = reading.operands[1:] if first_is_text else reading.operands
    if len(reading.loose) < len(reading.operands):
        loose = frozenset(reading.loose)  # a line may have thousands of words
        paths = [word for word in paths if word in loose]
    leaving = next((word for word in paths if reading.places.outside(word)), None)
    return f"`{leaving}`, which leaves the workspace" if leaving is not None else None
