"""Profiles: named choices of tools, each with the price of its words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.errors import InvalidArgument
from holdfast.tool.definition import Tool
from holdfast.tool.near import near
from holdfast.tool.providers import definitions

_CACHE = ("tool_output_cache", "tool_output_cache_grep")
_READING = ("Read", "Glob", "Grep")
_BASE = ("Read", "Write", "Edit", "Glob", "Grep", "Bash", "BashOutput", "KillBash")

# None: every tool there is.
PROFILES: dict[str, tuple[str, ...] | None] = {
    "full": None,
    "agent": (*_BASE, *_CACHE, "write_todos", "done"),
    "read-only": (*_READING, "read_file", "tree", "lisp-read-file", *_CACHE),
    "seed-000": ("lisp-read-file",),
    "seed-001": ("read_file",),
    "seed-002": ("tree",),
    "seed-003": _CACHE,
    "seed-004": _BASE,
}
DEFAULT = "full"


def pick(
    tools: Sequence[Tool], profile: str | None = None, names: Sequence[str] = (), always: Iterable[Tool] = ()
) -> list[Tool]:
    """The tools of a profile, or those named; tools of one's own (`always`) come with any profile."""
    known = {tool.name: tool for tool in tools}
    if names:
        return [known[_found(name, list(known), "tool")] for name in dict.fromkeys(names)]
    wanted = PROFILES[_found(profile or DEFAULT, list(PROFILES), "profile")]
    if wanted is None:
        return list(tools)
    own = {tool.name for tool in always}
    return [tool for tool in tools if tool.name in wanted or tool.name in own]


def _found(name: str, known: list[str], kind: str) -> str:
    if name in known:
        return name
    meant = near(name, known)
    hint = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(known)}"
    raise InvalidArgument(f"no {kind} named {name!r}; {hint}")


def price(tools: Iterable[Tool]) -> int:
    """About how many tokens the definitions cost a model: the bytes of what it is sent, by four."""
    return sum(map(price_of, tools))


def price_of(tool: Tool) -> int:
    sent: Any = definitions([tool], "anthropic")[0]
    return -(-len(json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode()) // 4)
