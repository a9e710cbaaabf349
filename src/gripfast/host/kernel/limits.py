"""Limits of this process, see getrlimit(2)."""

from __future__ import annotations

import resource

_ENOUGH = 65536
_usual: list[int] = []


def raise_descriptor_limit() -> None:
    """Lets this process open as many files as the system allows it to, for a server with many clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _usual.append(soft)


def usual_descriptor_limit() -> int | None:
    """The limit before it was raised, which commands still get: some programs slow down with a high one."""
    return _usual[0] if _usual else None
