"""Permission rules: what a decision costs, how it grows, what is let through."""

from __future__ import annotations

import statistics
import sys

from benchmarks.harness import ROOT, Row, Run, bound, seconds
from holdfast.call.rules import Permissions
from holdfast.call.rulesets import rule_set

GROUP = "Permission rules"


def measure(run: Run) -> None:
    sys.path.append(str(ROOT / "tests"))
    from call.shell_lines import FAMILIES, attacks, lines_of

    rules = rule_set("read-only")
    line = "cat " + " ".join(f"file-{number:03d}.txt" for number in range(75))
    times = sorted(seconds(lambda: _judge(rules, line)) * 1000 for _ in range(50 if run.quick else 300))
    spread = f"{times[len(times) // 4]:.2f}–{times[3 * len(times) // 4]:.2f}"
    bound(run, GROUP, f"a decision on a line of {len(line)} bytes", statistics.median(times), 1, "ms", spread=spread)
    _growth(run, rules)
    strings = [line for family in FAMILIES for line in attacks(family)]
    allowed = sum(_judge(rules, line) == "allow" for line in strings)
    bound(
        run, GROUP, f"attack strings allowed, of {len(strings):,}", allowed, 0, "strings", note="rule set read-only"
    )
    harmless = lines_of("harmless")
    good = sum(_judge(rule_set("workspace"), line) == "allow" for line in harmless)
    share = 100 * good / len(harmless)
    name = f"harmless commands allowed, of {len(harmless)}"
    bound(run, GROUP, name, share, 95, "%", at_least=True, note="rule set workspace")


def _judge(rules: Permissions, line: str) -> str:
    return rules.judge(tool="Bash", effect="run", spellings=(line,)).action


def _growth(run: Run, rules: Permissions) -> None:
    def cost(size: int) -> float:
        line = "ls " + "a" * (size - 3)
        return statistics.median(seconds(lambda: _judge(rules, line)) for _ in range(50))

    grown = cost(8_000) / cost(800)
    run.add(Row(GROUP, "ten times the line", "–", f"{grown:.1f}× the time", note="10× would be linear", value=grown))
