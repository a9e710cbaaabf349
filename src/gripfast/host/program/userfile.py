"""The user's own files, which their other programs read: named with `~`, replaced completely or not at all."""

from __future__ import annotations

import os
import tempfile

from gripfast.errors import InvalidArgument
from gripfast.text.below import is_below


def user_path(name: str) -> str:
    return os.path.abspath(os.path.expanduser(name))


absolute = user_path


def is_in_project(name: str) -> bool:
    """Whether a file is in the current directory, and so probably one that is committed, and not in the home."""
    here = os.getcwd()
    return is_below(user_path(name), here) and here != os.path.expanduser("~") and not name.startswith("~")


def read_user_file(path: str) -> str | None:
    """The text, or None if there is no such file."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidArgument(f"{path} can't be read: {fault}") from None


def write_user_file(path: str, text: str) -> None:
    """Replaces the file; its mode stays, and a link stays a link. Raises InvalidArgument if it can't be written."""
    real = os.path.realpath(path)
    try:
        os.makedirs(os.path.dirname(real), exist_ok=True)
        mode = os.stat(real).st_mode & 0o7777 if os.path.exists(real) else 0o600
        fd, temporary = tempfile.mkstemp(dir=os.path.dirname(real), prefix=".gripfast-")
        with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            os.fchmod(fd, mode)
        os.replace(temporary, real)
    except OSError as fault:
        raise InvalidArgument(f"{path} can't be written: {fault.strerror}") from None
