"""Secrets of the user's own, in files that nobody else can read."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from gripfast.errors import InvalidArgument
from gripfast.host.program.own import in_use
from gripfast.host.program.places import private_directory, state_directory

SHORTEST = 16


def http_token(*, new: bool = False) -> tuple[str, Path]:
    """The user's own token for the HTTP server, made at its first use, and the file it is kept in."""
    directory = private_directory(state_directory())
    path = directory / "http-token"
    if new:
        path.unlink(missing_ok=True)
    if not path.exists():
        _make_token(path)
    return read_tokens(path)[0][1], path


def _make_token(path: Path) -> None:
    """Written whole before it has its name, so that a second server that starts now finds a token or none."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        with contextlib.suppress(FileExistsError):  # somebody was faster: theirs counts
            os.link(fresh, path, follow_symlinks=False)
    finally:
        os.unlink(fresh)


def read_tokens(path: Path | str) -> list[tuple[str, str]]:
    """Tokens with the names of who has them: a line is `TOKEN` or `NAME TOKEN`, `#` starts a comment.

    Raises InvalidArgument for a file that others can read or change, or that has no good token in it.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as fault:
        raise InvalidArgument(f"the token file {str(path)!r} can't be read: {fault.strerror}") from None
    in_use(path, secret=True)
    with os.fdopen(fd, encoding="utf-8", errors="replace") as file:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077:
            raise InvalidArgument(f"the token file {str(path)!r} is open to others; run: chmod 600 {path}")
        lines = [line.split("#")[0].split() for line in file.read(1 << 20).splitlines()]
    found = [(_name(words, number), words[-1]) for number, words in enumerate(lines, 1) if words]
    if not found or any(len(token) < SHORTEST for _, token in found):
        raise InvalidArgument(
            f"the token file {str(path)!r} needs tokens of {SHORTEST} characters at least, a line each"
        )
    return found


def _name(words: list[str], number: int) -> str:
    return words[0] if len(words) > 1 else f"token {number}"
