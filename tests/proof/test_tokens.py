"""What the tools cost a model, by a tokenizer that models use."""

from __future__ import annotations

import pytest
from benchmarks.groups.tokens import MOST_FOR_AGENT, OFF, count_tokens, definition_tokens

from gripfast.builtin.tools import TOOLS
from gripfast.edges.mcp.instructions import instructions_for
from gripfast.edges.profiles import PROFILES, pick, price


def test_the_agent_profile_costs_at_most_2000_tokens() -> None:
    count = definition_tokens("agent")
    if count is None:
        pytest.skip("no node, or no network for its tokenizer")
    assert count <= MOST_FOR_AGENT


@pytest.mark.parametrize("profile", PROFILES)
def test_the_estimate_of_a_profile_is_near_the_count(profile: str) -> None:
    count = definition_tokens(profile)
    if count is None:
        pytest.skip("no node, or no network for its tokenizer")
    assert abs(price(pick(TOOLS, profile)) - count) <= OFF * count


def test_the_instructions_cost_at_most_120_tokens() -> None:
    counts = count_tokens([instructions_for([tool.name for tool in TOOLS])])
    if counts is None:
        pytest.skip("no node, or no network for its tokenizer")
    assert counts[0] <= 120
