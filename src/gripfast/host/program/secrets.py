"""The user's own secrets, in files that nobody else can read."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from gripfast.host.program.places import private_directory, state_directory
from gripfast.host.program.token_file import parse_tokens, token_text


def http_token(*, new: bool = False) -> tuple[str, Path]:
    """The user's own token for the HTTP server, created at its first use, and the file that holds it."""
    directory = private_directory(state_directory())
    path = directory / "http-token"
    if new:
        path.unlink(missing_ok=True)
    if not path.exists():
        _make_token(path)
    return parse_tokens(token_text(path), str(path))[0].token, path


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
