"""What to do instead of commands that install or fetch something for more than the project."""

from __future__ import annotations

from collections.abc import Mapping

from gripfast.call.shell.words import Argv

_FETCHED = (
    "it fetches a program that the project does not name: add it to the project, then `uv sync` and `uv run {0}`"
)
_FOR_ALL = "it installs outside the workspace: add it to the project instead"
_INTO_VENV = "make one with `python3 -m venv .venv`, then `.venv/bin/pip install …`"
_NAMED = "name it in package.json, then `{0} install`"

_INSTEAD: Mapping[str, str] = {
    "uvx": _FETCHED,
    "uv tool run": _FETCHED,
    "pipx run": _FETCHED,
    "uv tool install": _FOR_ALL,
    "pipx install": _FOR_ALL,
    "cargo install": _FOR_ALL,
    "go install": _FOR_ALL,
    "gem install": _FOR_ALL,
    "pip install": _INTO_VENV,
    "pip3 install": _INTO_VENV,
    "python -m pip install": _INTO_VENV,
    "python3 -m pip install": _INTO_VENV,
    "uv pip install": "make one with `uv venv`, then `.venv/bin/pip install …`",
}
_GLOBAL = frozenset({"-g", "--global", "--location=global"})
_NODE = ("npm", "pnpm", "yarn", "bun")


def instead_of(argv: Argv) -> str:
    """What would work instead; empty if nothing is known."""
    words = [str(word) for word in argv]
    if words[0] in _NODE and words[1:2] and words[1] in ("i", "install", "add", "global"):
        if _GLOBAL & {*words} or words[1] == "global":
            return _FOR_ALL
        return _NAMED.format(words[0]) if any(not word.startswith("-") for word in words[2:]) else ""
    for length in (4, 3, 2, 1):
        advice = _INSTEAD.get(" ".join(words[:length])) if len(words) >= length else None
        if advice is not None:
            return advice.format(words[length] if len(words) > length else "…")
    return ""
