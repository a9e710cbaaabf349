"""KnownSecrets: the secret values this machine gives away by their names, and texts without them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from gripfast.host.kernel.regular import beginning_of
from gripfast.text.redact import Redactor, assignments, secrets_in

_LARGEST = 256 * 1024
_MOST_FILES = 50
_EXAMPLES = (".example", ".sample", ".template", ".dist")

_Stamp = tuple[str, int, int, int]


class KnownSecrets:
    """From this program's environment and the `.env*` files at the top of the roots, read again when they change."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self._tops: tuple[_Stamp, ...] = ()
        self._files: tuple[str, ...] = ()
        self._stamps: tuple[_Stamp, ...] | None = None
        self._redactor = Redactor({})

    def current(self) -> Redactor:
        """The redactor for what is secret now."""
        tops = _stamps(self._roots)
        if tops != self._tops or self._stamps is None:
            self._tops, self._files = tops, tuple(name for root in self._roots for name in _env_files(root))
        stamps = _stamps(self._files)
        if stamps != self._stamps:
            found = {name: value for file in self._files for name, value in secrets_in(_variables(file)).items()}
            self._redactor = Redactor(found | secrets_in(os.environ))
            self._stamps = stamps
        return self._redactor

    def __call__(self, text: str) -> str:
        return self.current()(text)

    def begun_secret(self, data: bytes) -> int:
        """How many bytes at the end of an output may be the beginning of a secret."""
        return self.current().begun_secret(data)


def _stamps(paths: Sequence[str]) -> tuple[_Stamp, ...]:
    """What changes when one of these does. Every call looks, so there are no generators or context managers here."""
    stamps: list[_Stamp] = []
    for path in paths:
        try:
            found = os.lstat(path)
        except OSError:
            continue
        stamps.append((path, found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(stamps)


def _env_files(root: str) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        names = sorted(entry.name for entry in entries if entry.name == ".env" or entry.name.startswith(".env."))
        yield from (f"{root}/{name}" for name in names[:_MOST_FILES] if not name.endswith(_EXAMPLES))


def _variables(path: str) -> dict[str, str]:
    try:
        data = beginning_of(path, _LARGEST)
    except OSError:  # descriptors or memory ran out
        data = None
    return assignments((data or b"").decode("utf-8", "replace"))
