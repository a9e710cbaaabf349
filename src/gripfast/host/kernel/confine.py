"""Starts a program that can read only beneath given places, where the kernel offers Landlock.

A program that walks a tree by path can be led out of it by a link that is swapped in meanwhile. Only the thread that
starts the program is restricted: the child inherits the restriction (see landlock(7)), and the thread then ends.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence

from gripfast.host.kernel.landlock import (
    EXECUTE,
    READ_DIR,
    READ_FILE,
    add_rule,
    create_ruleset,
    landlock_version,
    restrict_thread,
)
from gripfast.records import dataclass

# What the loader reads to start a dynamically linked program, see ld.so(8).
_LOADER = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/nix/store", "/gnu/store")


@dataclass(frozen=True, slots=True)
class Child:
    """A started program, and whether Landlock restricts it."""

    process: subprocess.Popen[bytes]
    confined: bool


@functools.cache
def can_confine() -> bool:
    """Whether this kernel offers Landlock to this process."""
    return landlock_version() >= 1


def start_confined(start: Callable[[], subprocess.Popen[bytes]], program: str, beneath: Sequence[int | str]) -> Child:
    """Runs `start` in a thread that, like everything it starts, can read only `program` and what is `beneath`."""
    ruleset = _ruleset(program, beneath) if can_confine() else -1
    if ruleset < 0:
        return Child(start(), False)
    try:
        return _in_a_thread(lambda: _restricted(ruleset, start))
    finally:
        os.close(ruleset)


def _restricted(ruleset: int, start: Callable[[], subprocess.Popen[bytes]]) -> Child:
    held = restrict_thread(ruleset)
    return Child(start(), held)


def _in_a_thread(work: Callable[[], Child]) -> Child:
    """Uses a new thread, never one of a pool: a thread can't drop its restriction again."""
    started: list[Child] = []
    failed: list[OSError] = []

    def run() -> None:
        try:
            started.append(work())
        except OSError as problem:
            failed.append(problem)

    thread = threading.Thread(target=run, name="gripfast-confined-start", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return started[0]


def _ruleset(program: str, beneath: Iterable[int | str]) -> int:
    try:
        ruleset = create_ruleset(EXECUTE | READ_FILE | READ_DIR)
    except OSError:
        return -1
    for place in (program, *(_LOADER if _is_dynamic(program) else ())):
        _allow(ruleset, place, EXECUTE | READ_FILE | READ_DIR)
    for place in beneath:
        _allow(ruleset, place, READ_FILE | READ_DIR)
    return ruleset


@functools.cache
def _is_dynamic(program: str) -> bool:
    """Whether a program is dynamically linked: then its first bytes name a loader (PT_INTERP in elf(5))."""
    with open(program, "rb") as file:
        return b"/ld" in file.read(4096)


def _allow(ruleset: int, place: int | str, access: int) -> None:
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC) if isinstance(place, str) else place
    except OSError:
        return  # a place that doesn't exist needs no rule
    try:
        for rights in (access, access & ~READ_DIR):  # the kernel refuses a directory right on a file
            with contextlib.suppress(OSError):
                add_rule(ruleset, descriptor, rights)
                return
    finally:
        if isinstance(place, str):
            os.close(descriptor)
