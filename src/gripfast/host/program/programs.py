"""Finds the programs that gripfast runs, only in places that no workspace can write."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from gripfast.text.below import is_below

_SYSTEM_PLACES = ("/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin")
_INSTALLED = ("site-packages", "dist-packages")


def find_program(name: str, within: Sequence[str] = (), *, on_path: bool = True) -> str:
    """The absolute path of a program: from the system's directories, then from PATH, but never from a workspace
    (`within`). Without knowing the workspace, PATH is not searched, since it may lead into it.

    If the user chose a workspace that contains the system's directories, such as `/`, root's own programs there are
    used if there is no other."""
    places = [*_SYSTEM_PLACES]
    if on_path:
        places += [place for place in os.environ.get("PATH", "").split(":") if place.startswith("/")]
    for place in places:
        if not is_below(os.path.realpath(place), *within) and (found := shutil.which(name, path=place)):
            return found
    return next(filter(None, (_of_the_system(name, place) for place in _SYSTEM_PLACES)), "")


def _of_the_system(name: str, place: str) -> str:
    found = shutil.which(name, path=place) or ""
    return found if found and os.stat(found).st_uid == 0 and os.stat(place).st_uid == 0 else ""


def interpreter() -> str:
    """The Python that runs the broker: the real file, not a virtual environment's link to it."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def installed_places() -> list[str]:
    """The directories where packages are installed. Not all of `sys.path`: the directory of the running script may be
    the workspace, and a module that a call has written there would run outside every sandbox."""
    return [place for place in sys.path if os.path.isabs(place) and os.path.basename(place) in _INSTALLED]
