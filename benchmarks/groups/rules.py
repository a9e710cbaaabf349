"""Permission rules: the cost of a decision, how it grows, and what is allowed."""

from __future__ import annotations

import random
import statistics
import sys
from functools import partial

from benchmarks.harness import ROOT, Run, bound, processor_seconds
from gripfast.builtin.rulesets import rule_set
from gripfast.call.rules import Permissions

GROUP = "Permission rules"


def measure(run: Run) -> None:
    sys.path.append(str(ROOT / "tests"))
    from call.shell_lines import FAMILIES, attacks, lines_of

    rules = rule_set("read-only")
    lines = [_long_line(75 * turn, 75) for turn in range(100 if run.quick else 400)]
    times = sorted(processor_seconds(partial(_judge, rules, line)) * 1000 for line in lines)
    spread = f"{times[len(times) // 4]:.2f}–{times[3 * len(times) // 4]:.2f}"
    name, note = (
        f"a decision on a line of {len(lines[0])} bytes",
        "a new line each time; processor time",
    )
    bound(run, GROUP, name, statistics.median(times), 1, "ms", spread=spread, note=note)
    _level_two(run)
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
    _against_bash(run)


def _level_two(run: Run) -> None:
    """Lines with variables, globs and redirections; judged without a machine, so that reading them is what costs."""
    rules = rule_set("workspace")
    lines = [_mixed_line(turn) for turn in range(100 if run.quick else 400)]
    times = sorted(processor_seconds(partial(_judge, rules, line)) * 1000 for line in lines)
    name = f"a decision on a line of {len(lines[0])} bytes with loops, globs and redirections"
    bound(run, GROUP, name, statistics.median(times), 1, "ms", note="a new line each time; processor time")


_LOOP = 'for f in src/{0:06d}*.py; do grep -n "x{0}" "$f" 2>/dev/null | head -5 > out.txt; done; '


def _mixed_line(turn: int) -> str:
    return (_LOOP.format(turn) * 11)[:1024].rpartition("for")[0] + "ls # end"


def _against_bash(run: Run) -> None:
    from call.bash_oracle import BASH, differences
    from call.level_two import unproved

    count = 500 if run.quick else 20_000
    name = f"generated lines that real bash runs otherwise than was proved, of {count:,}"
    if BASH is None:
        run.not_run(GROUP, name, "≤ 0 lines", "no bash on this machine")
    else:
        seed = random.SystemRandom().randrange(1_000_000)  # other lines on each run; the note says how to repeat them
        bound(run, GROUP, name, len(differences(count, seed)), 0, "lines", note=f"seed {seed}")
        count = 300 if run.quick else 5_000
        name = f"programs that real bash runs and that were not proved, in {count:,} lines of level two"
        bound(run, GROUP, name, len(unproved(count, seed)), 0, "programs", note=f"seed {seed}")


def _long_line(start: int, words: int) -> str:
    return "cat " + " ".join(f"f-{number:06d}.txt" for number in range(start, start + words))


def _judge(rules: Permissions, line: str) -> str:
    return rules.judge(tool="Bash", effect="run", spellings=(line,)).action


def _growth(run: Run, rules: Permissions) -> None:
    def cost(words: int) -> float:
        return statistics.median(
            processor_seconds(partial(_judge, rules, _long_line(turn, words))) for turn in range(100)
        )

    grown = cost(600) / cost(60)
    bound(run, GROUP, "ten times the line", grown, 13, "× the time", note="10 would be linear; processor time")
    mixed = _mixed_cost(90) / _mixed_cost(9)
    name = "ten times the line with loops, globs and redirections"
    bound(run, GROUP, name, mixed, 13, "× the time", note="10 would be linear; processor time")


def _mixed_cost(loops: int) -> float:
    """The cost of a line with so many loops. Ninety of them are 7 KB: longer lines are not read."""
    rules = rule_set("workspace")
    lines = [_LOOP.format(turn) * loops + "ls" for turn in range(1000 * loops, 1000 * loops + 100)]
    return statistics.median(processor_seconds(partial(_judge, rules, line)) for line in lines)
