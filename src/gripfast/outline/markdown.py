"""The headings of a Markdown text, as sections: `#` and underlined ones, not those in code or in the front matter."""

from __future__ import annotations

import re

from gripfast.outline.definition import Definition, Parsed, nested

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_NO_PARAGRAPH = re.compile(r" {0,3}(?:[-*+>|]|\d+[.)]|$)| {4}|\t")


def headings(text: str) -> Parsed:
    """Each heading is a section that reaches to the next one of its level or a higher one."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    sections: list[tuple[tuple[int, int], Definition]] = []
    ends: list[int] = [len(lines)] * 7  # of a section of each level, seen from below
    for first, head, level, name in reversed(_levels(lines)):
        end = min(ends[: level + 1])
        ends[level] = first - 1
        sections.append(((first, end), Definition("section", name, first, first, head, end)))
    return Parsed(nested(sections))


def _levels(lines: list[str]) -> list[tuple[int, int, int, str]]:
    """First row, last row, level and words of every heading."""
    found: list[tuple[int, int, int, str]] = []
    fence, row = "", _front_matter(lines)
    paragraph = 0  # the row its first line is on
    while row < len(lines):
        line = lines[row].rstrip("\r")
        row += 1
        if mark := _FENCE.match(line):
            fence = _after(fence, mark[1], line)
            paragraph = 0
        elif fence:
            continue
        elif heading := _HEADING.match(line):
            found.append((row, row, len(heading[1]), (heading[2] or "").strip()))
            paragraph = 0
        elif paragraph and (under := _UNDERLINE.match(line)):
            found.append((paragraph, row, 1 if under[1][0] == "=" else 2, lines[paragraph - 1].strip()))
            paragraph = 0
        else:
            paragraph = 0 if _NO_PARAGRAPH.match(line) else paragraph or row
    return found


def _front_matter(lines: list[str]) -> int:
    if lines and lines[0].rstrip() == "---":
        return next((row for row, line in enumerate(lines[1:200], 2) if line.rstrip() in ("---", "...")), 0)
    return 0


def _after(fence: str, mark: str, line: str) -> str:
    """The fence that is open after a line of backticks or tildes."""
    if not fence:
        return mark
    closes = mark.startswith(fence) and not line.strip().strip(mark[0])
    return "" if closes else fence
