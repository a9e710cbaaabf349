"""The context budget: replaces the oldest tool outputs of a history by refs and keeps the newest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from gripfast.call.cache.outputs_in import outputs_in, with_output
from gripfast.call.cache.view import NO_STORE, SaveResult
from gripfast.messages import ImagePart, TextPart, ToolMessage

Message = TypeVar("Message")
Count = Callable[[str], int]

IMAGE_TOKENS = 1600
"""What providers charge for a large image, whatever its size in bytes."""

_TRIMMED = "[tool output trimmed; "


def default_budget(context_window: int) -> int:
    """A quarter of the window, but between 20,000 and 100,000 tokens."""
    return min(100_000, max(20_000, context_window // 4))


def trim(
    messages: Sequence[Message], *, budget: int, count: Count | None, save: Callable[[ToolMessage], SaveResult]
) -> list[Message | ToolMessage]:
    """The messages with at most `budget` tokens of tool output. `save` stores an output that has no ref yet."""
    history: list[Any] = list(messages)
    outputs = [(at, place) for at, message in enumerate(messages) for place in outputs_in(message)]
    total = sum(tokens(place.message, count) for _, place in outputs)
    for at, place in outputs[:-1]:
        if total <= budget:
            break
        smaller = _trimmed(place.message, tokens(place.message, count), count, save)
        if smaller is not None:
            total += tokens(smaller, count) - tokens(place.message, count)
            history[at] = with_output(history[at], place.keys, smaller.text) if place.keys else smaller
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
    message: ToolMessage, cost: int, count: Count | None, save: Callable[[ToolMessage], SaveResult]
) -> ToolMessage | None:
    """The message with a ref instead of its content, or None if that would not be shorter."""
    if message.text.startswith(_TRIMMED):
        return None
    longest = replace(message, content=f"{_TRIMMED}ref={'0' * 24}]")
    if cost <= tokens(longest, count):
        return None
    saved = save(message)
    where = f"ref={saved.ref.id}" if saved.ref else f"not stored: {saved.lost or NO_STORE}"
    return replace(message, content=f"{_TRIMMED}{where}]", output_ref=saved.ref)
