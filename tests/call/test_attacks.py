"""A thousand lines that must not run unasked, and three hundred that may."""

from __future__ import annotations

import pytest

from call.shell_lines import FAMILIES, attacks, lines_of
from holdfast.call.decision import Decision, PermissionRule
from holdfast.call.rules import Permissions
from holdfast.call.rulesets import rule_set

ROOT = ("/workspace/root",)
# What a person writes who trusts these programs and says nothing of places.
PROGRAMS = Permissions("ask", [rule for rule in rule_set("workspace").rules if rule.tool == "effect:run"])
SETS = {
    "programs": PROGRAMS,
    "read-only": rule_set("read-only").within(ROOT),
    "workspace": rule_set("workspace").within(ROOT),
}


def judged(permissions: Permissions, line: str) -> Decision:
    return permissions.judge(tool="Bash", effect="run", spellings=(line,))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_attack_is_allowed(family: str, name: str) -> None:
    if family == "outside" and name == "programs":
        pytest.skip("these rules say nothing of places")
    let_through = [line for line in attacks(family) if judged(SETS[name], line).action == "allow"]
    assert let_through == []


def test_there_are_at_least_three_hundred_attacks_in_ten_families() -> None:
    lines = [line for family in FAMILIES for line in attacks(family)]
    assert len(set(lines)) >= 300
    assert {"chaining", "quoting", "substitution", "redirection", "wrappers", "options", "environment"} < set(
        FAMILIES
    )
    assert {"git", "encoding", "length"} < set(FAMILIES)


@pytest.mark.parametrize("name", ["programs", "workspace"])
def test_ordinary_harmless_commands_are_allowed(name: str) -> None:
    lines = lines_of("harmless")
    refused = [
        (line, judged(SETS[name], line).reason) for line in lines if judged(SETS[name], line).action != "allow"
    ]
    assert len(lines) >= 200
    assert len(refused) <= 0.05 * len(lines), refused


def test_an_attack_is_stopped_also_where_everything_provable_is_allowed() -> None:
    """`*` with any option is as wide as rules get: what can't be proved is still asked."""
    widest = Permissions("allow", [PermissionRule("Bash", "*", "allow", any_options=True)])
    lines = [*attacks("substitution"), *(line for line in attacks("redirection") if "tee" not in line)]
    assert [line for line in lines if judged(widest, line).action == "allow"] == []


def test_a_rule_that_is_denied_is_found_in_attacks_that_use_it() -> None:
    denying = Permissions("ask", [*PROGRAMS.rules, PermissionRule("Bash", "rm *", "deny")])
    with_rm = [line for line in attacks("wrappers") if line.endswith("rm x") or "rm x'" in line.split("-c ")[-1][:6]]
    asked = [line for line in with_rm if judged(denying, line).action != "deny"]
    assert len(with_rm) > 20
    assert asked == []
