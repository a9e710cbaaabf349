"""Checks rules against the examples and counterexamples that they carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gripfast.call.decision import Decision, PermissionRule
from gripfast.call.rules import Permissions
from gripfast.records import dataclass
from gripfast.text.escape import escaped


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """One example or counterexample and its result. `fault` is None if the decision is the expected one."""

    rule: PermissionRule
    subject: str
    fault: str | None


def check_examples(permissions: Permissions, effect_of: Callable[[str], str | None]) -> Iterator[ExampleResult]:
    """Checks every example of every rule. `effect_of` returns a tool's effect by name, None for an unknown tool."""
    for rule in permissions.rules:
        for subject in rule.examples:
            decision = _decision(permissions, rule, subject, effect_of)
            yield ExampleResult(rule, subject, _fault_of_example(rule, subject, decision))
        for subject in rule.counterexamples:
            decision = _decision(permissions, rule, subject, effect_of)
            yield ExampleResult(rule, subject, _fault_of_counterexample(rule, subject, decision))
    for layer in permissions.narrowed_by:
        yield from check_examples(layer, effect_of)


def _decision(
    permissions: Permissions, rule: PermissionRule, subject: str, effect_of: Callable[[str], str | None]
) -> Decision | None:
    tool, effect = _tool_of(rule, effect_of)
    return None if effect is None else permissions.judge(tool=tool, effect=effect, spellings=(subject,))


def _tool_of(rule: PermissionRule, effect_of: Callable[[str], str | None]) -> tuple[str, str | None]:
    """The tool name and effect to check with: `*` counts as a reading tool, `effect:run` as a running one."""
    if rule.tool == "*":
        return "*", "read"
    if rule.tool.lower().startswith("effect:"):
        return rule.tool, rule.tool.lower().removeprefix("effect:")
    return rule.tool, effect_of(rule.tool)


def _fault_of_example(rule: PermissionRule, subject: str, decision: Decision | None) -> str | None:
    if decision is None:
        return f"there is no tool named {rule.tool}"
    if decision.action == rule.action:
        return None
    return f"`{escaped(subject)}`: expected {rule.action}, got {decision.action}: {decision.reason}"


def _fault_of_counterexample(rule: PermissionRule, subject: str, decision: Decision | None) -> str | None:
    if decision is None:
        return f"there is no tool named {rule.tool}"
    if decision.rule is not rule or decision.action != rule.action:
        return None
    return f"`{escaped(subject)}`: is a counterexample, but this rule matches it ({rule.action})"
