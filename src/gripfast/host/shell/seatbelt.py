"""The sandbox of shell commands on macOS: the walls as a profile for sandbox-exec(1).

The profile language (SBPL) has no public reference; the profiles in /System/Library/Sandbox/Profiles are its best
examples. Of the rules that match an operation, the last one decides.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from gripfast.text.below import is_below

PROGRAM = "/usr/bin/sandbox-exec"
# What a program may write to although it is in no root: a sink, the terminal, its own descriptors.
_DEVICES = ("null", "zero", "tty", "ptmx", "dtracehelper")
_TERMINALS = r'(regex #"^/dev/ttys[0-9]+$")'


def profile(
    write: Sequence[str], *, protected: Sequence[str] = (), denied: Sequence[str] = (), network: bool = True
) -> str:
    """Writing only below `write`, there not at protected places, and denied places are not even read.

    All are real paths: a rule that names /tmp never matches, since that is a link to /private/tmp.
    """
    devices = [f"(literal {quoted(f'/dev/{name}')})" for name in _DEVICES]
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        f"(allow file-write* {' '.join([*devices, _TERMINALS, *_trees([*write, '/dev/fd'])])})",
        *(f"(deny file-write-unlink (literal {quoted(path)}))" for path in _on_the_way(write, [*protected, *denied])),
        *(f"(deny file-write* {tree})" for tree in _trees(protected)),
        *(f"(deny file-read* file-write* {tree})" for tree in _trees(denied)),
        *([] if network else ["(deny network*)"]),
    ]
    return "\n".join(lines) + "\n"


def quoted(path: str) -> str:
    """A path as a string of the profile language."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _trees(paths: Iterable[str]) -> Iterator[str]:
    return (f"(subpath {quoted(path)})" for path in paths)


def _on_the_way(write: Sequence[str], closed: Iterable[str]) -> list[str]:
    """The directories between a root and a closed place: renamed, they would carry it to a path no rule names."""
    found: dict[str, None] = {}
    for path in closed:
        above = os.path.dirname(path)
        while is_below(above, *write) and above not in found:
            found[above] = None
            above = os.path.dirname(above)
    return sorted(found)
