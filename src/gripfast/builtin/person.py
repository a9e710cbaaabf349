"""The person a session works for, for tools that ask questions."""

from __future__ import annotations

from typing import Any, Protocol


class Person(Protocol):
    async def fill_in(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        """Shows the person a form with flat JSON Schema properties. None if they decline or nobody is there."""
        ...


class Nobody:
    async def fill_in(self, message: str, schema: dict[str, Any]) -> dict[str, Any] | None:
        return None
