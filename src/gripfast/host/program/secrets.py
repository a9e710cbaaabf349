"""The user's own secrets, in files that nobody else can read."""

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
    """The user's own token for the HTTP server, created at its first use, and the file that holds it."""
    directory = private_directory(state_directory())
    path = directory / "http-token"
    if new:
        path.unlink(missing_ok=True)
    if not path.exists():
        _make_token(path)
    return read_tokens(path)[0][1], path


def _make_token(path: Path) -> None:
    """Writes the file completely before it gets its name, so that another server never reads half a token."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        with contextlib.suppress(FileExistsError):  # another server was faster: its token counts
            os.link(fresh, path, follow_symlinks=False)
    finally:
        os.unlink(fresh)


def read_tokens(path: Path | str) -> list[tuple[str, str]]:
    """Tokens and the names of their owners. A line is `TOKEN` or `NAME TOKEN`; `#` starts a comment.

    Raises InvalidArgument if others can read or change the file, or if a token in it is too short.
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
            f"the token file {str(path)!r} needs tokens of at least {SHORTEST} characters, one per line"
        )
    return found


def _name(words: list[str], number: int) -> str:
    return words[0] if len(words) > 1 else f"token {number}"
