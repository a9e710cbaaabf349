"""One permission rule, and the decision that rules come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from holdfast.call.globs import BadPattern, check_pattern
from holdfast.call.shell.commands import command_pattern

Action: TypeAlias = Literal["allow", "ask", "deny"]
ACTIONS: tuple[Action, ...] = get_args(Action)
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_EFFECTS = ("read", "write", "run")


@dataclass(frozen=True)
class PermissionRule:
    """One line of the rules: which tool, on what, and what then.

    `tool` is a tool's name in any case, `*`, or `effect:read`, `effect:write`, `effect:run` for all tools of
    that effect. `pattern` is a path glob for tools on files, words for tools that run commands. `any_options`
    vouches for every option of the commands it allows. `source` says where the rule was written.
    """

    tool: str
    pattern: str = "*"
    action: Action = "ask"
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
    any_options: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "examples", tuple(self.examples))
        object.__setattr__(self, "counterexamples", tuple(self.counterexamples))
        if self.action not in ACTIONS:
            raise ValueError(f"action {self.action!r}: use one of {', '.join(ACTIONS)}")
        if not self.tool.strip():
            raise ValueError("a rule needs a tool: its name, `*`, or effect:read, effect:write, effect:run")
        if self.tool.lower().startswith("effect:") and self.tool.lower()[7:] not in _EFFECTS:
            raise ValueError(f"tool {self.tool!r}: use effect:read, effect:write or effect:run")
        check_pattern(self.pattern)
        command_pattern(self.pattern)
        if ".." in self.pattern.split("/") and " " not in self.pattern:
            raise BadPattern(f"{self.pattern!r}: paths are matched without `..`; write where it leads")

    def __str__(self) -> str:
        where = f" ({self.source})" if self.source else ""
        return f"{self.action} {self.tool} `{self.pattern}`{where}"

    def is_about(self, tool: str, effect: str) -> bool:
        mine = self.tool.lower()
        return mine in ("*", tool.lower(), f"effect:{effect}")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided and why; the rule is None for the default and for what can't be proved."""

    action: Action
    reason: str
    rule: PermissionRule | None = None
    commands: tuple[tuple[str, ...], ...] = ()


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The first of those that allow least."""
    return max(decisions, key=lambda decision: _STRICTNESS[decision.action])
