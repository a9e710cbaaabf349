"""The person on the other side of a session, for tools that have something to ask."""

from __future__ import annotations

from typing import Any, Protocol


class Person(Protocol):
    async def fill_in(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Puts a form before the person: flat properties of JSON Schema. None if they decline, or nobody is there."""
        ...


class Nobody:
    async def fill_in(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        return None
