"""Parses a docstring into its first paragraph and its `Args:` entries."""

from __future__ import annotations

import re

from gripfast.records import dataclass

_SECTION = r"(?i)(args|arguments|parameters|params):\s*\Z"
_ENTRY = r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)\Z"


@dataclass(frozen=True, slots=True)
class Docstring:
    summary: str
    arguments: dict[str, str]


def parse_docstring(text: str) -> Docstring:
    """Parses a docstring whose indentation `inspect.getdoc` has already removed."""
    summary: list[str] = []
    lines = text.splitlines()
    for line in lines:
        if not line.strip() or re.match(_SECTION, line):
            break
        summary.append(line.strip())
    return Docstring(" ".join(summary), _entries(lines))


def _entries(lines: list[str]) -> dict[str, str]:
    entries: dict[str, str] = {}
    inside, indent, current = False, 0, ""
    for line in lines:
        if not inside:
            inside = bool(re.match(_SECTION, line))
            continue
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            continue
        if depth == 0:
            break
        entry = re.match(_ENTRY, line.strip())
        if entry and (not entries or depth <= indent):
            indent, current = depth, entry[1]
            entries[current] = entry[2]
        elif current:
            entries[current] = f"{entries[current]} {line.strip()}".strip()
    return entries
