"""Whether one absolute path is below another, judged by the text alone."""

from __future__ import annotations


def is_below(path: str, *bases: str) -> bool:
    """Whether an absolute path is one of these directories or below one."""
    return f"{path}/".startswith(tuple(f"{base.rstrip('/')}/" for base in bases))


def after(base: str, path: str) -> str | None:
    """What follows a directory in a path; None when the path is not below it."""
    if path == base:
        return ""
    prefix = f"{base.rstrip('/')}/"
    return path[len(prefix) :] if path.startswith(prefix) else None
