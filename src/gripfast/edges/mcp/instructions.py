"""What the server tells a client's model at the start: how its tools work together."""

from __future__ import annotations

from collections.abc import Collection

# Each line of the instructions, after the tools it mentions. It is sent only if all of those tools are served.
_LINES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(), "Relative paths start in the workspace; places outside it are refused."),
    (frozenset({"Glob", "Grep"}), "Find files with Glob and text with Grep rather than with shell commands."),
    (
        frozenset({"Read", "Edit"}),
        "Read a file before you Edit or Write it; if it changed meanwhile, Read it again.",
    ),
    (
        frozenset({"Bash"}),
        "Bash keeps its directory between calls, but not its variables, and says which files changed.",
    ),
    (
        frozenset(),
        "A note in [brackets] says what an answer leaves out and which call continues it; «NAME» is a hidden secret.",
    ),
)


def instructions_for(tools: Collection[str]) -> str:
    """At most five lines, about the tools that are served."""
    return "\n".join(line for names, line in _LINES if names <= set(tools))
