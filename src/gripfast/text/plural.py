"""A number and what it counts, in words."""

from __future__ import annotations


def plural(count: int, what: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
