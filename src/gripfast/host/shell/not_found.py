"""What would have worked where a program was not found by its name."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence

from gripfast.host.kernel.regular import beginning_of
from gripfast.host.shell.environment import NODE_PROGRAMS, PYTHON_PROGRAMS, command_path
from gripfast.text.below import is_below

_OTHER_NAMES = {"python": ("python3",), "pip": ("pip3", "python3 -m pip"), "node": ("nodejs",), "fd": ("fdfind",)}
_LARGEST = 1024 * 1024


def programs_named(name: str, directory: str, roots: Sequence[str]) -> list[str]:
    """Ways to run a program that is not on PATH, as a command line in `directory` would write them; at most two."""
    if "/" in name:
        return []
    return list(dict.fromkeys((*_of_the_project(name, directory, roots), *_of_the_system(name, roots))))[:2]


def _of_the_project(name: str, directory: str, roots: Sequence[str]) -> Iterator[str]:
    for above in _upwards(directory, roots):
        for folder in (*PYTHON_PROGRAMS, NODE_PROGRAMS):
            if os.access(f"{above}/{folder}/{name}", os.X_OK):
                yield os.path.relpath(f"{above}/{folder}/{name}", directory)
        if name in _scripts(f"{above}/package.json"):
            place = "" if above == directory else f" --prefix {os.path.relpath(above, directory)}"
            yield f"npm{place} run {name}"


def _upwards(directory: str, roots: Sequence[str]) -> Iterator[str]:
    while is_below(directory, *roots):
        yield directory
        directory = os.path.dirname(directory) if directory != "/" else ""


def _scripts(file: str) -> set[str]:
    try:
        found = json.loads(beginning_of(file, _LARGEST) or b"{}")["scripts"]
        return {str(name) for name in found}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def _of_the_system(name: str, roots: Sequence[str]) -> Iterator[str]:
    path = command_path(roots, sandboxed=True)
    for other in _OTHER_NAMES.get(name, ()):
        if shutil.which(other.split()[0], path=path):
            yield other
