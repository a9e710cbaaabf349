"""Whether a project's lock file lists the package of a program, so that running the program downloads nothing new."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from typing import Any, cast

from gripfast.text.below import is_below

_LARGEST = 64 << 20


def is_locked(directory: str, name: str, roots: tuple[str, ...]) -> bool:
    """Whether a lock file in a directory or above it, inside the roots, lists the package or its program."""
    place = os.path.realpath(directory or ".")
    while is_below(place, *roots):
        if any(name in _named(os.path.join(place, file), *_stamp(os.path.join(place, file))) for file in _READERS):
            return True
        place = os.path.dirname(place)
    return False


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=16)
def _named(path: str, _time: int, size: int) -> frozenset[str]:
    if not 0 < size <= _LARGEST:
        return frozenset()
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return frozenset(_READERS[os.path.basename(path)](file.read()))
    except (OSError, ValueError):
        return frozenset()


def _of_npm(text: str) -> set[str]:
    """The packages in an npm lock file of version 2 or 3, and the programs they install."""
    names: set[str] = set()
    packages = cast("dict[str, Any]", json.loads(text)).get("packages", {})
    for place, package in cast("dict[str, dict[str, Any]]", packages).items():
        if place.startswith("node_modules/"):
            names.add(place.rpartition("node_modules/")[2])
        names.update(package.get("bin", ()) if isinstance(package.get("bin"), dict) else ())
    return names


_KNOWN_PROGRAMS = {
    "typescript": ("tsc", "tsserver"),
    "@biomejs/biome": ("biome",),
    "@playwright/test": ("playwright",),
}


def _of_pnpm(text: str) -> set[str]:
    return _with_programs(set(re.findall(r"^ {2}'?/?((?:@[\w.-]+/)?[\w.-]+)@", text, re.MULTILINE)))


def _of_yarn(text: str) -> set[str]:
    return _with_programs(set(re.findall(r'^"?((?:@[\w.-]+/)?[\w.-]+)@', text, re.MULTILINE)))


def _with_programs(names: set[str]) -> set[str]:
    return names.union(*(_KNOWN_PROGRAMS.get(name, ()) for name in names))


_READERS = {"package-lock.json": _of_npm, "pnpm-lock.yaml": _of_pnpm, "yarn.lock": _of_yarn}
