"""A permission rule, and the decision that rules lead to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Literal, TypeAlias, get_args

from gripfast.records import dataclass
from gripfast.text.globs import BadPattern
from gripfast.text.patterns import check_pattern

Action: TypeAlias = Literal["allow", "ask", "deny"]
ACTIONS: tuple[Action, ...] = get_args(Action)
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_VERDICTS = {"allow": "allowed by", "ask": "asked about because of", "deny": "denied by"}
_EFFECTS = ("read", "write", "run")


@dataclass(frozen=True)
class PermissionRule:
    """One rule: a tool, a pattern for what it acts on, and the action to take.

    `tool` is a tool's name in any case, `*`, or `effect:read`, `effect:write`, `effect:run` for all tools with
    that effect. `pattern` is a path glob for tools on files, or the words of a command for tools that run commands.
    `any_options` accepts every option of the commands it allows. `undoable` limits it to commands whose every change
    the session's record can undo; one that asks is about what can't be undone, so not about a call that keeps
    nothing. `source` says where the rule comes from.
    """

    tool: str
    pattern: str = "*"
    action: Action = "ask"
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
    any_options: bool = False
    source: str = ""
    undoable: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", tuple(self.examples))
        object.__setattr__(self, "counterexamples", tuple(self.counterexamples))
        if self.action not in ACTIONS:
            raise ValueError(f"unknown action {self.action!r}; use one of {', '.join(ACTIONS)}")
        if not self.tool.strip():
            raise ValueError("a rule needs a tool: a name, `*`, effect:read, effect:write or effect:run")
        if self.tool.lower().startswith("effect:") and self.tool.lower()[7:] not in _EFFECTS:
            raise ValueError(f"unknown effect {self.tool!r}; use effect:read, effect:write or effect:run")
        from gripfast.call.shell.commands import command_pattern  # noqa: PLC0415 - not for rules of our own

        check_pattern(self.pattern)
        command_pattern(self.pattern)
        if ".." in self.pattern.split("/") and " " not in self.pattern:
            raise BadPattern(f"{self.pattern!r} contains `..`; rules match resolved paths, so write that path")

    @classmethod
    def of_our_own(cls, tool: str, pattern: str, action: Action, **more: bool) -> PermissionRule:
        """A rule of a ready-made set, unchecked: tests check them all, and at every start that would take long."""
        rule = object.__new__(cls)
        given = {"tool": tool, "pattern": pattern, "action": action, **more}
        for one in fields(cls):
            object.__setattr__(rule, one.name, given.get(one.name, one.default))
        return rule

    def __str__(self) -> str:
        where = f" ({self.source})" if self.source else ""
        return f"{self.action} {self.tool} `{self.pattern}`{where}"

    @property
    def verdict(self) -> str:
        """What it does with a call that it matches, as the end of a sentence."""
        where = f" ({self.source})" if self.source else ""
        return f"{_VERDICTS[self.action]} the rule {self.tool} `{self.pattern}`{where}"

    def is_about(self, tool: str, effect: str) -> bool:
        return self.tool.lower() in ("*", tool.lower(), f"effect:{effect}")

    def holds_for(self, tool: str, effect: str, stands_for: tuple[str, ...] = ()) -> bool:
        """Whether it applies to a tool. If it asks or denies, it applies to tools that stand for that one too."""
        if self.is_about(tool, effect):
            return True
        return self.action != "allow" and any(self.is_about(name, effect) for name in stands_for)


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided and why. `rule` is None if the default applied or the command could not be analysed. `parts`
    are the decisions about each command of a line."""

    action: Action
    reason: str
    rule: PermissionRule | None = None
    commands: tuple[tuple[str, ...], ...] = ()
    parts: tuple[Decision, ...] = ()
    leading: str = ""  # the command's leading words as a pattern, where an "always" may cover all that follows
    by_sandbox: bool = False  # denied only because the sandbox would refuse it, whatever a person says


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The strictest decision; the first one among equals."""
    return max(decisions, key=lambda decision: (_STRICTNESS[decision.action], not decision.by_sandbox))
