"""Finds denied commands: behind wrappers, in strings that shells run, in lines that can't be proved.

Only used to deny. It may find too much or too little, so nothing is allowed because of it.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from gripfast.call.shell.programs import BEFORE_SUBCOMMAND, INTERPRETERS, WRAPPERS
from gripfast.call.shell.reader import read_script
from gripfast.call.shell.recogniser import LONGEST_LINE, Proved, recognise
from gripfast.call.shell.words import Script, Unknown, Word, is_left_to_rules

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

Words: TypeAlias = tuple[Word | None, ...]  # None is a word that only the shell will know

DEEPEST = 4  # strings inside strings
LONGEST_VIEW = 64  # words; a pattern has fewer

# Programs whose later words may start a command, only after one of these words.
_RUNS_AFTER = {
    "find": {"-exec", "-execdir", "-ok", "-okdir"},
    "fd": {"-x", "-X", "--exec", "--exec-batch"},
    "fdfind": {"-x", "-X", "--exec", "--exec-batch"},
    "git": {"bisect", "--exec", "-x", "rebase", "foreach", "filter-branch"},
    "go": {"-exec", "-toolexec"},
    "tar": {"--to-command", "--checkpoint-action"},
    **{name: {"run"} for name in ("uv", "poetry", "pipenv", "pdm", "hatch", "rye")},
    **{name: {"exec", "x", "dlx"} for name in ("npm", "pnpm", "yarn", "bun", "bundle")},
}


def sightings(commands: Iterable[Words], depth: int = 0) -> Iterator[tuple[Words, int]]:
    """Every command that may run, as words and the position where it starts."""
    for words in commands:
        if not words:
            continue
        yield words, 0
        name = _name(words[0])
        yield from _otherwise(name, words)
        if name in BEFORE_SUBCOMMAND:
            yield from _behind_options(words)
        if name in WRAPPERS or name in _RUNS_AFTER:
            starts = _inner_starts(name, words)
            yield from ((words, start) for start in starts)
            if depth < DEEPEST:
                yield from sightings(_commands_in_strings(words, starts), depth + 1)


def _name(word: Word | None) -> str:
    return word.rpartition("/")[2].lower() if isinstance(word, str) else ""


def _text(word: Word | None) -> str:
    """A known word; nothing for one that only the shell knows."""
    return word if isinstance(word, str) else ""


# Any later word of theirs may be the one that counts: `npm run -s deploy`, `make test release`.
_EACH_WORD = frozenset(
    "npm pnpm yarn bun make gmake mvn mvnw gradle gradlew cargo poetry pdm hatch flit uv docker podman find".split()
)
_EACH_OPTION = frozenset({"docker", "podman", "find"})


def _otherwise(name: str, words: Words) -> Iterator[tuple[Words, int]]:
    """Other ways to write the same command: options first, a module by its own name."""
    if name in _EACH_WORD:
        for at in range(1, min(len(words), LONGEST_VIEW)):
            if name in _EACH_OPTION or not _text(words[at]).startswith("-"):
                yield (words[0], *words[at : at + 2]), 0
    if name == "rm":
        options = [word for word in words[1:] if _text(word).startswith("-")]
        yield (words[0], *options[:LONGEST_VIEW]), 0
    if name.startswith("python") and "-m" in words[:-1]:
        yield words, words.index("-m") + 1


def _behind_options(words: Words) -> Iterator[tuple[Words, int]]:
    """`git -C x push` is also `git push`: whatever comes before the subcommand does not hide it."""
    for at in range(2, len(words)):
        if not any(not isinstance(word, str) or word.startswith("-") for word in words[at - 2 : at]):
            return
        yield (words[0], *words[at : at + LONGEST_VIEW]), 0


def _inner_starts(name: str, words: Words) -> range:
    """Behind a wrapper any later word may be the command; which one depends on its options."""
    if name in WRAPPERS:
        return range(1, len(words))
    runs_after = _RUNS_AFTER[name]
    first = next((at for at, word in enumerate(words) if word in runs_after), len(words))
    return range(first + 1, len(words))


def _texts_run(name: str, words: Words) -> range:
    """Where words may be run as shell lines. `npx` does so only with those before the package's name."""
    starts = _inner_starts(name, words)
    if name != "npx":
        return starts
    package = next((at for at, word in enumerate(words[1:], 1) if not _text(word).startswith("-")), len(words))
    options = {_text(word).partition("=")[0] for word in words[1:package]}
    if not options <= _NPX_FLAGS or package == len(words) or _name(words[package]) in WRAPPERS:
        return starts
    return range(1, package + 1)


_NPX_FLAGS = frozenset({"--no-install", "--no", "-y", "--yes", "-q", "--quiet"})
_MAY_BE_A_LINE = re.compile(r"[\s;|&$`(<>=]")


def _commands_in_strings(words: Words, starts: range) -> Iterator[Words]:
    """Words of a wrapper that are shell lines themselves: `sh -c 'rm x'`, `eval "rm x"`, `env -S 'rm x'`."""
    for start in starts:
        word = _text(words[start])
        if word and _MAY_BE_A_LINE.search(word):
            yield from commands_seen(word.partition("=")[2] if word.startswith("-") and "=" in word else word)


_IS_A_LINE = re.compile(r"[\s;|&$`(<>]")


def unproved_text(words: Words, depth: int = 0) -> str | None:
    """A text that a wrapper may run and that can't itself be proved: `sh -c 'echo $x'`; None if there is none."""
    name = _name(words[0])
    if name not in WRAPPERS and name not in _RUNS_AFTER:
        return None
    for start in _texts_run(name, words):
        word = _text(words[start])
        if not _IS_A_LINE.search(word) or (word == ";" and name == "find"):
            continue
        commands = _read(word)
        if commands is None or depth == DEEPEST:
            return word
        inner = (unproved_text(argv, depth + 1) for argv in commands)
        if (deeper := next((text for text in inner if text is not None), None)) is not None:
            return deeper
    return None


def _read(line: str) -> Sequence[Words] | None:
    """The commands of a line that can be proved."""
    proof = recognise(line)
    if isinstance(proof, Proved):
        return proof.commands
    script = read_script(line)
    if not isinstance(script, Script) or any(
        is_left_to_rules(name, value) for part in script.commands for name, value in part.assigned
    ):
        return None
    return [command.words for command in script.commands if command.words]


def commands_seen(line: str) -> Sequence[Words]:
    """The commands of any line, proved or not."""
    read = _read(line)
    return walked(line) if read is None else read


def unknown_where_run(words: Words) -> Word | None:
    """A word that only the shell knows, and that a program may run as a command or file; None if there is none."""
    name = _name(words[0])
    unknown = [word for word in words[1:] if isinstance(word, Unknown)]
    if not unknown:
        return None
    if name == "npx":
        starts = _texts_run(name, words)
        return next((word for word in words[starts.start : starts.stop] if isinstance(word, Unknown)), None)
    if name in WRAPPERS or name in _RUNS_ALL:
        return unknown[0]
    if name in _RUNS_AFTER:
        inner = [word for word in words[_inner_starts(name, words).start :] if isinstance(word, Unknown)]
        return next((word for word in unknown if word.many and word.may_be_option), inner[0] if inner else None)
    if name in INTERPRETERS:
        for before, word in itertools.pairwise(words):
            if before == "-m":
                return None
            if isinstance(word, Unknown):
                return word
            if not _text(word).startswith("-") and not _text(before).startswith("-"):
                return None
    return None


# Their words choose what runs, wherever they stand: variables of make, targets of ssh.
_RUNS_ALL = frozenset(
    "make gmake ninja just task rake ssh docker podman kubectl at batch tmux screen npm pnpm".split()
)


def walked(line: str) -> Sequence[Words]:
    """The commands that tree-sitter's bash grammar finds in a line, unless the line is too long."""
    data = line.encode("utf-8", "replace")[:LONGEST_LINE]
    seen: list[Words] = []
    fed: list[str] = []
    for node in _nodes(_parser().parse(data).root_node):
        if node.type == "command":
            seen.append(tuple(_text_of(child) for child in _words_of(node)))
        elif node.type in ("heredoc_body", "herestring_redirect"):
            fed.append(_decoded(node).removeprefix("<<<").strip().strip("'\""))
        elif node.type == "declaration_command":
            seen.append(tuple(_decoded(node).split()))
    if any(_name(words[0]) in WRAPPERS for words in seen if words):
        seen += [("sh", "-c", text) for text in fed]  # a shell may read it as its input
    return seen


@lru_cache(maxsize=1)
def _language() -> Language:
    import tree_sitter_bash  # noqa: PLC0415  # loaded when a line can't be proved, not with gripfast
    from tree_sitter import Language  # noqa: PLC0415  # the same

    return Language(tree_sitter_bash.language())


def _parser() -> Parser:
    """A parser for this line alone: they are cheap, and two threads can't share one."""
    from tree_sitter import Parser  # noqa: PLC0415  # the same

    return Parser(_language())


def _nodes(root: Node) -> Iterator[Node]:
    """Every node, without recursion: a line may nest thousands deep."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.named_children))


_NOT_WORDS = frozenset({"variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect"})


def _words_of(command: Node) -> Iterator[Node]:
    for child in command.children:
        if child.type == "command_name":
            yield child.children[0] if child.children else child
        elif child.type not in _NOT_WORDS:
            yield child


_UNKNOWN = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
)


def _text_of(node: Node) -> str | None:
    """The word as the program would get it, or None if the shell expands something in it."""
    match node.type:
        case "raw_string":
            return _decoded(node)[1:-1]
        case "ansi_c_string":
            return _ansi(_decoded(node)[2:-1])
        case "string" | "translated_string" | "concatenation":
            return _joined(node)
        case kind if kind in _UNKNOWN:
            return None
        case _:
            return re.sub(r"\\\n", "", _decoded(node)).replace("\\", "")


def _joined(node: Node) -> str | None:
    if node.type == "concatenation":
        parts = [_text_of(child) for child in node.children]
        return None if None in parts else "".join(part for part in parts if part is not None)
    if any(child.type in _UNKNOWN for child in node.children):
        return None
    text = _decoded(node)
    return re.sub(r'\\(["\\$`])', r"\1", text[text.index('"') + 1 : -1])


_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|.)", re.DOTALL)
_NAMED = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


def _ansi(text: str) -> str:
    """The text between `$'` and `'`, as bash reads it."""
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) > 1 and code[0] in "xuU":
        return chr(min(int(code[1:], 16), sys.maxunicode))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    return _NAMED.get(code, escape[0])


def _decoded(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
