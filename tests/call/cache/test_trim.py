"""A history is trimmed to its budget, oldest first, and what is trimmed can be read again."""

from __future__ import annotations

import copy
import re
from functools import reduce
from operator import getitem
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gripfast.call.cache import OutputCache, Store
from gripfast.call.cache.trim import default_budget
from gripfast.messages import ImagePart, OutputRef, TextPart, ToolMessage


def output(number: int, tokens: int, ref: OutputRef | None = None) -> ToolMessage:
    return ToolMessage(f"call_{number}", "Read", f"{number:04d}" * tokens, output_ref=ref)


@pytest.mark.parametrize(
    ("window", "budget"),
    [(8_000, 20_000), (80_000, 20_000), (200_000, 50_000), (400_000, 100_000), (2_000_000, 100_000)],
)
def test_the_budget_is_a_quarter_of_the_window_within_bounds(window: int, budget: int) -> None:
    assert default_budget(window) == budget


def test_the_oldest_become_their_refs_and_the_newest_stay(store: Store) -> None:
    cache = OutputCache(store)
    history = [output(n, 10_000, OutputRef(f"{n:016d}", 40_000, 1)) for n in range(8)]
    trimmed = cache.trim(history, context_window=200_000)
    assert [message.content for message in trimmed[:4]] == [f"[tool output trimmed; ref={n:016d}]" for n in range(4)]
    assert trimmed[4:] == history[4:]
    assert [message.tool_call_id for message in trimmed] == [message.tool_call_id for message in history]
    assert [message.output_ref for message in trimmed] == [message.output_ref for message in history]


def test_within_budget_nothing_changes() -> None:
    history = [output(n, 5_000) for n in range(10)]
    assert OutputCache().trim(history, context_window=200_000) == history


def test_an_output_that_was_never_stored_is_stored_when_it_is_trimmed(store: Store) -> None:
    cache = OutputCache(store)
    image = ImagePart(b"png" * 100, "image/png")
    parts = ToolMessage("call_0", "Read", (TextPart("seen\n" * 500), image))
    trimmed = cache.trim([parts, output(1, 1_000), output(2, 100)], budget=100)
    refs = [re.fullmatch(r"\[tool output trimmed; ref=([0-9a-f]{16})\]", str(item.content)) for item in trimmed[:2]]
    assert all(refs)
    stored = [anyio.run(cache.parts, ref[1]) for ref in refs if ref]
    assert stored == [parts.content, (TextPart("0001" * 1_000),)]


def test_other_messages_of_the_history_pass_through() -> None:
    history: list[object] = [{"role": "user"}, output(0, 9_000), "assistant", output(1, 9_000), output(2, 9_000)]
    trimmed = OutputCache().trim(history, budget=10_000)
    assert [trimmed[0], trimmed[2], trimmed[4]] == [history[0], history[2], history[4]]


def test_without_a_store_the_trimmed_message_says_it_was_not_kept() -> None:
    trimmed = OutputCache().trim([output(0, 9_000), output(1, 100)], budget=200)
    assert trimmed[0].content == "[tool output trimmed; not stored: this session has no output cache]"


def test_a_counter_of_ones_own_decides() -> None:
    history = [output(n, 10) for n in range(4)]
    words = OutputCache().trim(history, budget=2, count=lambda text: 0 if text.startswith("[") else 1)
    assert [message.content == before.content for message, before in zip(words, history, strict=True)] == [
        False,
        False,
        True,
        True,
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=st.lists(st.integers(0, 3_000), max_size=12), budget=st.integers(0, 12_000))
def test_trimming_keeps_to_the_budget_is_pure_and_settles(store: Store, sizes: list[int], budget: int) -> None:
    cache = OutputCache(store)
    history = [output(number, size) for number, size in enumerate(sizes)]
    before = copy.deepcopy(history)
    trimmed = cache.trim(history, budget=budget)
    assert history == before
    changed = [new != old for new, old in zip(trimmed, history, strict=True)]
    large = [size > 20 for size in sizes]
    used = sum(-(-len(message.text) // 4) for message in trimmed)
    if used > budget:
        assert all(was or not big for was, big in zip(changed[:-1], large[:-1], strict=True)), "all went that could"
    kept = [at for at, was in enumerate(changed) if not was and large[at]]
    gone = [at for at, was in enumerate(changed) if was]
    assert not gone or not kept or max(gone) < min(kept), "oldest first"
    assert not changed or not changed[-1], "the newest stays"
    assert cache.trim(trimmed, budget=budget) == trimmed


def test_a_message_that_had_no_ref_has_the_ref_of_its_output_when_it_is_trimmed(store: Store) -> None:
    cache = OutputCache(store)
    first = cache.trim([output(0, 9_000), output(1, 9_000)], budget=10_000)[0]
    assert first.output_ref is not None
    assert first.content == f"[tool output trimmed; ref={first.output_ref.id}]"
    assert first.output_ref.byte_size == 36_000


LONG = "x" * 40_000
OPENAI: dict[str, Any] = {"role": "tool", "tool_call_id": "a", "content": LONG}
OPENAI_PARTS: dict[str, Any] = {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": LONG}]}
RESPONSES: dict[str, Any] = {"type": "function_call_output", "call_id": "a", "output": LONG}
ANTHROPIC: dict[str, Any] = {
    "role": "user",
    "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": LONG, "is_error": False},
        {"type": "text", "text": "and now?"},
    ],
}
GEMINI: dict[str, Any] = {
    "role": "user",
    "parts": [{"function_response": {"name": "f", "response": {"output": LONG}}}],
}


@pytest.mark.parametrize(
    ("message", "keys"),
    [
        (OPENAI, ["content"]),
        (OPENAI_PARTS, ["content"]),
        (RESPONSES, ["output"]),
        (ANTHROPIC, ["content", 0, "content"]),
        (GEMINI, ["parts", 0, "function_response", "response", "output"]),
    ],
)
def test_outputs_in_the_messages_of_providers_are_trimmed_in_their_place(
    store: Store, message: dict[str, Any], keys: list[Any]
) -> None:
    cache, before = OutputCache(store), copy.deepcopy(message)
    told: dict[str, Any] = {"role": "user", "content": "hello"}
    trimmed: list[Any] = cache.trim([told, message, copy.deepcopy(message)], budget=11_000)
    assert message == before
    assert (trimmed[0], trimmed[2]) == (told, message)
    ref = re.fullmatch(r"\[tool output trimmed; ref=([0-9a-f]{16})\]", str(reduce(getitem, keys, trimmed[1])))
    assert ref
    (kept,) = anyio.run(cache.parts, ref[1])
    assert isinstance(kept, TextPart) and LONG in kept.text
    assert cache.trim(trimmed, budget=11_000) == trimmed


def test_a_message_object_that_may_hold_an_output_is_refused_not_ignored() -> None:
    class FunctionMessage:
        tool_call_id = "a"
        content = LONG

    with pytest.raises(TypeError, match="trim can't read a FunctionMessage; give it"):
        OutputCache().trim([FunctionMessage()], budget=1)
    with pytest.raises(TypeError, match="finds no output in a message of the role 'function'"):
        OutputCache().trim([{"role": "function", "name": "f"}], budget=1)
