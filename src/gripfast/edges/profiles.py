"""Profiles: named choices of tools, and what the definitions of tools cost in tokens.

Each tool declares the profiles it belongs to: `@tool(..., profiles=("agent", "codex"))`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from gripfast.errors import InvalidArgument
from gripfast.framework.definition import Tool
from gripfast.framework.providers import definitions
from gripfast.text.near import did_you_mean

FULL = "full"
"""The profile of every tool there is, and the default."""

BYTES_OF_A_TOKEN = 4.4
"""In definitions as providers are sent them, by the tokenizer o200k."""

PROFILES = (FULL, "agent", "read-only", "codex", "lisp")


def pick(
    tools: Sequence[Tool], profile: str | None = None, names: Sequence[str] = (), always: Iterable[Tool] = ()
) -> list[Tool]:
    """The tools of a profile, or those named. A user's own tools (`always`) come with every profile."""
    known = {tool.name: tool for tool in tools}
    if names:
        return [known[_found(name, known, "tool")] for name in dict.fromkeys(names)]
    chosen = _found(profile or FULL, PROFILES, "profile")
    own = {tool.name for tool in always}
    taken = [tool for tool in tools if chosen in (FULL, *tool.traits.profiles) or tool.name in own]
    return taken if chosen == FULL else [tool.without(*tool.traits.seldom) for tool in taken]


def _found(name: str, known: Collection[str], kind: str) -> str:
    if name in known:
        return name
    raise InvalidArgument(f"no {kind} named {name!r}; {did_you_mean(name, known)}")


def price(tools: Iterable[Tool]) -> int:
    """About how many tokens the definitions cost a model.

    An estimate by size: `scripts/bench --only tokens` counts with a tokenizer, and a test compares the two.
    """
    return sum(map(price_of, tools))


def price_of(tool: Tool) -> int:
    sent: Any = definitions([tool], "anthropic")[0]
    return round(len(json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode()) / BYTES_OF_A_TOKEN)
