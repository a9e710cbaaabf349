"""The part of ripgrep's command line that Grep and Glob share."""

from __future__ import annotations

import os

from gripfast.host.search.ignore_files import in_a_repository, rules_above
from gripfast.host.search.search_types import SearchPlace


def common_arguments(place: SearchPlace, include_ignored: bool) -> list[str]:
    arguments = ["--no-config", "--hidden", "--color=never", "--no-ignore-global", "--no-ignore-messages"]
    arguments += ["--glob=!.git", *(f"--iglob=!{hidden}" for hidden in place.hidden)]
    if include_ignored:
        arguments.append("--no-ignore")
    elif not in_a_repository(place.root_path):
        arguments.append("--no-require-git")
    if not place.below and not rules_above(place.root_path):
        arguments.append("--no-ignore-parent")  # nothing up there counts, and looking it up for each file is slow
    if place.file is not None or _is_small(place):
        arguments.append("-j1")
    return arguments


def _is_small(place: SearchPlace) -> bool:
    """Whether a place is a handful of files in one directory: threads would cost more than they bring."""
    try:
        directory = os.open(place.below or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.root)
    except OSError:
        return True
    try:
        with os.scandir(directory) as entries:
            for count, entry in enumerate(entries):
                if count >= 50 or (entry.is_dir(follow_symlinks=False) and entry.name != ".git"):
                    return False
    finally:
        os.close(directory)
    return True


def target(place: SearchPlace) -> str:
    return f"./{place.below}" if place.below else "./"


def type_hint(name: str | None) -> list[str]:
    """A glob on names as a file type: unlike rg's --glob, a type does not bring back what .gitignore hides."""
    return [f"--type-add=gripfast:{name}", "--type=gripfast"] if name else []
