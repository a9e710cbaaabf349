"""Each step of a decision, taken out once: what it holds back goes through, so a test somewhere goes red."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gripfast.builtin.rulesets import rule_set
from gripfast.call import command_lines, rules
from gripfast.call.command_lines import LineRules
from gripfast.call.decision import Action, Decision, PermissionRule
from gripfast.call.rules import FileRules, Permissions
from gripfast.call.shell import commands, denied, options, recogniser, workspace
from gripfast.text import patterns


def one_spelling(path: str) -> tuple[str, ...]:
    return (path,)


READ_ONLY = rule_set("read-only")
LS = Permissions("ask", [PermissionRule("Bash", "ls *", "allow")])
NO_RM = Permissions("allow", [PermissionRule("Bash", "rm *", "deny"), PermissionRule("Bash", "git push *", "deny")])


def bash(permissions: Permissions, line: str) -> Callable[[], Action]:
    def judged() -> Action:
        fresh = Permissions(permissions.default_action, permissions.rules, permissions.inside_only)
        return fresh.judge(tool="Bash", effect="run", spellings=(line,)).action

    return judged


def write(permissions: Permissions, *spellings: str) -> Callable[[], Action]:
    def judged() -> Action:
        fresh = Permissions(permissions.default_action, permissions.rules, narrowed_by=permissions.narrowed_by)
        return fresh.judge(tool="Write", effect="write", spellings=spellings).action

    return judged


def allowing(pattern: str) -> Permissions:
    return Permissions("ask", [PermissionRule("*", pattern, "allow")])


def denying(pattern: str) -> Permissions:
    return Permissions("allow", [PermissionRule("*", pattern, "deny")])


def nothing(*_: Any, **__: Any) -> None:
    return None


def never(*_: Any) -> bool:
    return False


def none_of_them(*_: Any) -> tuple[()]:
    return ()


def first_of(decisions: Any) -> Decision:
    return next(iter(decisions))


def always_allowed(*_: Any) -> Decision:
    return Decision("allow", "")


def by_base_name(glob: patterns.WordGlob, word: str) -> bool:
    return glob.matches(word.rpartition("/")[2])


WIDER = re.compile(recogniser._TOKEN.pattern.replace(r"[\w", r"[$><\w"))  # pyright: ignore[reportPrivateUsage] - the step itself


@dataclass(frozen=True)
class Step:
    name: str
    where: Any
    what: str
    without: Any
    probe: Callable[[], Action]
    held: Action = "ask"


STEPS = [
    Step("a cap on the length", recogniser, "_too_long", nothing, bash(LS, "ls " + "a" * 9000)),
    Step("no characters that can't be shown", recogniser, "_odd_character", nothing, bash(LS, "ls '\x1b[2K'")),
    Step("a closed alphabet", recogniser, "_TOKEN", WIDER, bash(LS, "ls $x > out")),
    Step("no tilde that bash expands", recogniser, "_expands_tilde", nothing, bash(READ_ONLY, "ls a=~")),
    Step(
        "no assignments and no syntax in front",
        recogniser,
        "_not_a_program",
        nothing,
        bash(Permissions("allow"), "PATH=. mytool"),
    ),
    Step("every command of the line", command_lines, "strictest", first_of, bash(LS, "ls; mytool")),
    Step(
        "what is not proved is not allowed",
        LineRules,
        "_judge_unproved",
        always_allowed,
        bash(LS, "ls ${!x}"),
    ),
    Step("a deny in the line", command_lines, "_first_caught", nothing, bash(NO_RM, "rm x"), "deny"),
    Step(
        "a deny seen in what is not proved",
        command_lines,
        "walked",
        none_of_them,
        bash(NO_RM, "f() { rm x; }"),
        "deny",
    ),
    Step("a deny behind a wrapper", denied, "_inner_starts", none_of_them, bash(NO_RM, "sudo rm x"), "deny"),
    Step(
        "a deny in a text for a shell",
        denied,
        "_commands_in_strings",
        none_of_them,
        bash(NO_RM, "sh -c 'rm x'"),
        "deny",
    ),
    Step("a deny behind options", denied, "_behind_options", none_of_them, bash(NO_RM, "git -C x push"), "deny"),
    Step("a deny in any case", commands, "folded", str, bash(NO_RM, "RM x"), "deny"),
    Step("the tables of options", command_lines, "open_words_problem", nothing, bash(READ_ONLY, "find . -delete")),
    Step("operands that change things", options, "_operand_problem", nothing, bash(READ_ONLY, "hostname evil")),
    Step(
        "values that look like options",
        options,
        "_NUMBER",
        re.compile(".*"),
        bash(READ_ONLY, "find . -maxdepth -delete"),
    ),
    Step("a bare name is no path", commands, "_strictly", by_base_name, bash(LS, "./ls")),
    Step(
        "what can run anything is spelled out",
        commands,
        "WRAPPERS",
        frozenset[str](),
        bash(allowing("env *"), "env x"),
    ),
    Step(
        "what changes later words",
        command_lines,
        "SHELL_STATE",
        frozenset[str](),
        bash(Permissions("allow"), "declare A=b"),
    ),
    Step(
        "texts for a shell are proved too",
        command_lines,
        "unproved_text",
        nothing,
        bash(Permissions("allow"), "sh -c '$x'"),
    ),
    Step("words that leave the workspace", workspace.Workspace, "outside", never, bash(READ_ONLY, "cat /etc/passwd")),
    Step(
        "every spelling of a path",
        FileRules,
        "judge",
        lambda self, spellings: self._judge_one(spellings[0]),  # type: ignore[no-any-return]
        write(denying(".git"), "src/link", ".git/config"),
        "deny",
    ),
    Step(
        "what is closed is closed below",
        patterns.PathGlob,
        "covers",
        patterns.PathGlob.matches,
        write(denying(".git/*"), ".git/hooks/x"),
        "deny",
    ),
    Step(
        "paths are compared without case",
        patterns,
        "foldings",
        one_spelling,
        write(denying(".git"), ".GIT/config"),
        "deny",
    ),
    Step(
        "names are names in the workspace",
        patterns,
        "_leaves_workspace",
        never,
        write(allowing("**/*.md"), "/home/a.md"),
    ),
    Step(
        "a layer that narrows",
        rules,
        "strictest",
        first_of,
        write(Permissions("allow", narrowed_by=(denying("a"),)), "a"),
        "deny",
    ),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_without_this_step_something_gets_through(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    assert step.probe() == step.held
    patterns.path_glob.cache_clear()
    commands.command_pattern.cache_clear()
    monkeypatch.setattr(step.where, step.what, step.without)
    assert step.probe() != step.held
    patterns.path_glob.cache_clear()
    commands.command_pattern.cache_clear()
