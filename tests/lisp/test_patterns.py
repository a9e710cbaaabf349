"""Patterns mean what they mean to CL-PPCRE. `ppcre_cases.json` holds what CL-PPCRE 2.1.1 answered on SBCL."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import regex

from gripfast.lisp.patterns import BadLispPattern, Budget, Pattern, PatternTimeout, translate

CASES: list[list[Any]] = json.loads(Path(__file__).with_name("ppcre_cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("pattern", "text", "expected"), CASES)
def test_a_pattern_finds_what_cl_ppcre_finds(pattern: str, text: str, expected: list[int] | str | None) -> None:
    try:
        found = regex.compile(translate(pattern), regex.VERSION0).search(text)
        answer: object = found and [found.start(), found.end()]
    except (BadLispPattern, regex.error):
        answer = "error"
    assert answer == expected


@pytest.mark.parametrize("pattern", ["(" * 5_000, "a" * 5_000, "(" * 200 + ")" * 200, "a{99999999999999999999}"])
def test_patterns_without_measure_are_refused(pattern: str) -> None:
    with pytest.raises(BadLispPattern):
        Pattern(pattern, Budget(1, time.monotonic))


def test_a_pattern_that_explodes_is_stopped() -> None:
    pattern = Pattern("(a|aa)+$", Budget(0.2, time.monotonic))
    with pytest.raises(PatternTimeout, match="took too long"):
        pattern.search("a" * 100 + "b")


def test_the_budget_is_shared_by_all_searches() -> None:
    now = [0.0]
    pattern = Pattern("a", Budget(1, lambda: now[0]))
    assert pattern.search("a")
    now[0] = 2.0
    with pytest.raises(PatternTimeout):
        pattern.search("a")
