"""Limits of this process, see getrlimit(2): https://man7.org/linux/man-pages/man2/getrlimit.2.html"""

from __future__ import annotations

import resource

_ENOUGH = 65536
_usual: list[int] = []


def raise_descriptor_limit() -> None:
    """Raises the soft limit on open files to the hard limit, for a server with many clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _usual.append(soft)


def usual_descriptor_limit() -> int | None:
    """The limit before it was raised. Commands still get it, because some programs are slow with a high limit."""
    return _usual[0] if _usual else None
