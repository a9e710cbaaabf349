"""Draws the main ratios as plain SVG charts, readable on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from benchmarks.harness import Row

WIDTH, LABELS, BAR, STEP = 720, 270, 18, 28
LONGEST = 8.0  # times ours; a longer bar is cut, so that ours can still be seen
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 }
  .quiet { fill: #6e7781 }
  .ours { fill: #1a7f64 }
  .theirs { fill: #8c959f }
  .page { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
    .ours { fill: #3fb98f }
    .theirs { fill: #6e7681 }
    .page { fill: #0d1117 }
  }
"""
# A chart shows the rows of one name; each bar is the other side's time, or tokens, relative to ours.
CHARTS = {
    "calls": ("One tool call in process", "a trivial async tool", "time", "rules and cache check included"),
    "latency": ("One call to a server over stdio", "latency of reading 200 lines", "time", "median of single calls"),
    "start": (
        "Start of a server, until it has listed its tools",
        "start to tools/list",
        "time",
        "answered before the MCP SDK is loaded",
    ),
    "edits": (
        "Editing one line of a 1 MB file",
        "Edit of one line in a 1 MB file",
        "time",
        "ours is atomic and synced",
    ),
    "grep": ("Grep in a source tree", "Grep of a common literal", "time", "stable order and true total included"),
    "commands": ("A shell command that does nothing", "Bash of `true`", "time", "ours is in a sandbox"),
    "undo": (
        "Taking back what a command did to 1,000 files",
        "undo of 1,000",
        "time",
        "ours needs no git, and syncs",
    ),
    "patch": ("A patch of 100 hunks over 50 files", "a patch of 100 hunks", "time", "ours is all or nothing"),
    "outline": ("The outline of a large file", "tokens of a view", "tokens", "median of many files"),
}


def of(rows: Sequence[Row]) -> dict[str, str]:
    """The charts for which there are rows, by file name."""
    made: dict[str, str] = {}
    for name, (title, start, unit, subtitle) in CHARTS.items():
        mine = [row for row in rows if row.name.startswith(start) and ", against " in row.name]
        if any(row.value for row in mine):
            ratios = [(row.name.partition(", against ")[2], row.value) for row in mine]
            made[name] = chart(title, subtitle, ratios, unit)
    return made


def chart(title: str, subtitle: str, ratios: Sequence[tuple[str, float | None]], unit: str = "time") -> str:
    """Draws bars of time or tokens, ours first with length 1; None stands for a side that was not run."""
    bars = [("gripfast", 1.0), *((label, 1 / ratio if ratio else None) for label, ratio in ratios)]
    longest = min(LONGEST, max(length for _, length in bars if length is not None))
    height = 62 + STEP * len(bars)
    words = ", ".join(f"{label} {_told(length)}" for label, length in bars)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(f"{title}: {words}")}">',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>',
        f'<text class="title" x="8" y="22">{escape(title)}</text>',
        f'<text class="quiet" x="8" y="41">{unit}, gripfast = 1; shorter is better; {escape(subtitle)}</text>',
    ]
    for number, (label, length) in enumerate(bars):
        lines += _bar(56 + STEP * number, label, length, longest)
    return "\n".join([*lines, "</svg>", ""])


def _bar(top: int, label: str, length: float | None, longest: float) -> list[str]:
    width = 0.0 if length is None else max(1.0, (WIDTH - LABELS - 70) * min(length, longest) / longest)
    kind = "ours" if label == "gripfast" else "theirs"
    lines = [
        f'<text x="{LABELS - 10}" y="{top + 14}" text-anchor="end">{escape(label)}</text>',
        f'<rect class="{kind}" x="{LABELS}" y="{top}" width="{width:.1f}" height="{BAR}" rx="2"/>',
        f'<text class="quiet" x="{LABELS + width + 8:.1f}" y="{top + 14}">{_told(length)}</text>',
    ]
    return lines if length is None or length <= longest else [*lines, _cut(LABELS + width - 30, top)]


def _cut(left: float, top: int) -> str:
    """A slanted gap in a bar that is cut because it is too long."""
    corners = ((left, top + BAR + 1), (left + 8, top - 1), (left + 14, top - 1), (left + 6, top + BAR + 1))
    return f'<polygon class="page" points="{" ".join(f"{x:.1f},{y}" for x, y in corners)}"/>'


def _told(length: float | None) -> str:
    return "not run" if length is None else f"{length:.2g}×" if length < 10 else f"{length:.0f}×"
