"""Rules that prove themselves: the examples and counterexamples a rule carries, run as tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.call.decision import Decision, PermissionRule
from holdfast.call.rules import Permissions
from holdfast.call.shown import shown


@dataclass(frozen=True, slots=True)
class Trial:
    """One example or counterexample, and what became of it. `fault` is None when it is as the rule says."""

    rule: PermissionRule
    subject: str
    fault: str | None


def trials(permissions: Permissions, effect_of: Callable[[str], str | None]) -> Iterator[Trial]:
    """Every example of every rule. `effect_of` gives the effect of a tool by its name, None for one not known."""
    for rule in permissions.rules:
        for subject in rule.examples:
            decision = _judged(permissions, rule, subject, effect_of)
            yield Trial(rule, subject, _fault_of_example(rule, subject, decision))
        for subject in rule.counterexamples:
            decision = _judged(permissions, rule, subject, effect_of)
            yield Trial(rule, subject, _fault_of_counterexample(rule, subject, decision))
    for layer in permissions.narrowed_by:
        yield from trials(layer, effect_of)


def _judged(
    permissions: Permissions, rule: PermissionRule, subject: str, effect_of: Callable[[str], str | None]
) -> Decision | None:
    tool, effect = _tool_of(rule, effect_of)
    return None if effect is None else permissions.judge(tool=tool, effect=effect, spellings=(subject,))


def _tool_of(rule: PermissionRule, effect_of: Callable[[str], str | None]) -> tuple[str, str | None]:
    """`*` is tried as a tool that reads, `effect:run` as one that runs."""
    if rule.tool == "*":
        return "*", "read"
    if rule.tool.lower().startswith("effect:"):
        return rule.tool, rule.tool.lower().removeprefix("effect:")
    return rule.tool, effect_of(rule.tool)


def _fault_of_example(rule: PermissionRule, subject: str, decision: Decision | None) -> str | None:
    if decision is None:
        return f"there is no tool {rule.tool}"
    if decision.action == rule.action:
        return None
    return f"`{shown(subject)}` should be {rule.action}, is {decision.action}: {decision.reason}"


def _fault_of_counterexample(rule: PermissionRule, subject: str, decision: Decision | None) -> str | None:
    if decision is None:
        return f"there is no tool {rule.tool}"
    if decision.rule is not rule or decision.action != rule.action:
        return None
    return f"`{shown(subject)}` should not be {rule.action} by this rule, but is"
