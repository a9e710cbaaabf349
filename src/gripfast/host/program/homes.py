"""The user's own directories, as the XDG base directory specification names them.

https://specifications.freedesktop.org/basedir-spec/latest/
"""

from __future__ import annotations

import os


def state_home() -> str:
    """`$XDG_STATE_HOME`, or else `~/.local/state`. Raises RuntimeError if there is no home directory."""
    return _base("XDG_STATE_HOME", ".local", "state")


def cache_home() -> str:
    """`$XDG_CACHE_HOME`, or else `~/.cache`. Raises RuntimeError if there is no home directory."""
    return _base("XDG_CACHE_HOME", ".cache")


def _base(variable: str, *otherwise: str) -> str:
    named = os.environ.get(variable, "")
    if os.path.isabs(named):
        return named
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise RuntimeError("there is no home directory")
    return os.path.join(home, *otherwise)
