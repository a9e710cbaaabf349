"""Parses a docstring into its first paragraph and its `Args:` entries."""

from __future__ import annotations

import re

from gripfast.records import dataclass

_SECTION = re.compile(r"(args|arguments|parameters|params):\s*\Z", re.IGNORECASE)
_ENTRY = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)\Z")


@dataclass(frozen=True, slots=True)
class Docstring:
    summary: str
    arguments: dict[str, str]


def parse_docstring(text: str) -> Docstring:
    """Parses a docstring whose indentation `inspect.getdoc` has already removed."""
    summary: list[str] = []
    lines = text.splitlines()
    for line in lines:
        if not line.strip() or _SECTION.match(line):
            break
        summary.append(line.strip())
    return Docstring(" ".join(summary), _entries(lines))


def _entries(lines: list[str]) -> dict[str, str]:
    entries: dict[str, str] = {}
    inside, indent, current = False, 0, ""
    for line in lines:
        if not inside:
            inside = bool(_SECTION.match(line))
            continue
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if depth == 0:
            break
        entry = _ENTRY.match(line.strip())
        if entry and (not entries or depth <= indent):
            indent, current = depth, entry[1]
            entries[current] = entry[2]
        elif current:
            entries[current] = f"{entries[current]} {line.strip()}".strip()
    return entries
