"""The context budget: the oldest tool outputs of a history give way to their refs, the newest stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from holdfast.messages import ImagePart, TextPart, ToolMessage

Message = TypeVar("Message")
Count = Callable[[str], int]

IMAGE_TOKENS = 1600
"""What providers charge for a large image, whatever its bytes."""

_TRIMMED = "[tool output trimmed; "


def default_budget(context_window: int) -> int:
    """A quarter of the window, within 20,000 and 100,000 tokens."""
    return min(100_000, max(20_000, context_window // 4))


def trim(
    messages: Sequence[Message],
    *,
    budget: int,
    count: Count | None,
    ref_of: Callable[[ToolMessage], str],
) -> list[Message | ToolMessage]:
    """New messages within `budget` tokens of tool output. `ref_of` keeps an output that has no ref yet."""
    history: list[Message | ToolMessage] = list(messages)
    outputs = [(at, message) for at, message in enumerate(messages) if isinstance(message, ToolMessage)]
    total = sum(tokens(message, count) for _, message in outputs)
    for at, message in outputs[:-1]:
        if total <= budget:
            break
        if (smaller := _trimmed(message, tokens(message, count), count, ref_of)) is not None:
            total += tokens(smaller, count) - tokens(message, count)
            history[at] = smaller
    return history


def tokens(message: ToolMessage, count: Count | None) -> int:
    content = (TextPart(message.content),) if isinstance(message.content, str) else message.content
    return sum(_part_tokens(part, count or _by_bytes) for part in content)


def _part_tokens(part: object, count: Count) -> int:
    match part:
        case TextPart(text):
            return count(text)
        case ImagePart(data):
            return min(IMAGE_TOKENS, -(-len(data) // 4))
        case _:
            return -(-len(getattr(part, "data", b"")) // 4)


def _by_bytes(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // 4)


def _trimmed(
    message: ToolMessage, cost: int, count: Count | None, ref_of: Callable[[ToolMessage], str]
) -> ToolMessage | None:
    """The message with its ref for content, or None where that would save nothing."""
    if message.text.startswith(_TRIMMED):
        return None
    longest = replace(message, content=f"{_TRIMMED}ref={'0' * 24}]")
    if cost <= tokens(longest, count):
        return None
    return replace(message, content=f"{_TRIMMED}{ref_of(message)}]")
