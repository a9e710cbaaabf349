"""Lines that run nothing but git, and git nothing else: what such a line changes in the working tree, git changed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gripfast.call.shell.reader import read_script
from gripfast.call.shell.words import Command, Script

_MOVING = frozenset(
    "switch checkout merge rebase reset restore stash cherry-pick revert bisect rm sparse-checkout am pull".split()
)
_BESIDE = frozenset("status log diff show branch rev-parse add tag reflog ls-files fetch".split())
_NO_EDITOR = ("core.editor=true", "core.editor=:")
# Options by which git runs a program or writes a file; git takes them shortened too.
_NOT = tuple("exec upload-pack strategy ext-diff textconv output interactive edit gpg-sign patch".split())
_SHORT = {"rebase": "xsi", "merge": "sS", "pull": "sS", "cherry-pick": "sS", "revert": "sS", "am": "i", "bisect": ""}
_COUNTED = re.compile(r"-[nc]?\+?\d+|-[nc]|\+?\d+")


def runs_git_alone(line: str) -> bool:
    """Whether a line is proved to run git commands that move files, and beside them nothing but `cd`, `echo`, and
    `head`, `tail`, `cat` and `wc` at the end of a pipe."""
    script = read_script(line)
    if not isinstance(script, Script) or script.values or script.is_fed:
        return False
    moved = False
    for command in script.commands:
        words = _plain(command)
        git = _of_git(words[1:]) if words[:1] == ["git"] else []
        if not (_is_harmless(git) if git else _is_beside(words)):
            return False
        moved |= bool(git) and git[0] in _MOVING
    return moved


def _plain(command: Command) -> list[str]:
    """The words of a command; none if some are not known, or if it sets variables or opens files."""
    opened = [redirect for redirect in command.redirects if redirect.target != "/dev/null"]
    words = [word for word in command.words if isinstance(word, str)]
    is_plain = not command.assigned and not opened and not command.repeated and len(words) == len(command.words)
    return words if is_plain else []


def _of_git(words: Sequence[str]) -> list[str]:
    """The subcommand and what follows it; none behind an option by which git may run something."""
    match words:
        case ["--no-pager", *rest]:
            return _of_git(rest)
        case ["-C", _, *rest]:
            return _of_git(rest)
        case ["-c", setting, *rest] if setting in _NO_EDITOR:
            return _of_git(rest)
        case _:
            return [*words]


def _is_harmless(words: Sequence[str]) -> bool:
    name = words[0] if words else ""
    if name not in _MOVING | _BESIDE or (name == "bisect" and "run" in words):
        return False
    return not any(_may_run(name, word) for word in words[1:])


def _may_run(name: str, word: str) -> bool:
    if word.startswith("--"):
        option = word[2:].partition("=")[0]
        return bool(option) and any(one.startswith(option) for one in _NOT)
    return word.startswith("-") and any(letter in _SHORT.get(name, "p") for letter in word[1:])


def _is_beside(words: Sequence[str]) -> bool:
    match words:
        case ["cd", place]:
            return not place.startswith("-")
        case ["echo" | "true" | ":" | "pwd", *_]:
            return True
        case ["head" | "tail" | "wc" | "cat", *rest]:
            return all(_COUNTED.fullmatch(word) or word == "-l" for word in rest)
        case _:
            return False
