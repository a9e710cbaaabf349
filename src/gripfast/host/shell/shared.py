"""What a session settles about its commands before the first one runs: light, since most sessions run none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gripfast.host.files.fs import ScopedFs
from gripfast.host.shell.sandbox import SandboxMode, choose

MAX_OUTPUT = 30_000
"""How many characters of a command's output an answer shows unless somebody says otherwise."""

BegunSecret: TypeAlias = Callable[[bytes], int]
"""How many bytes at the end of an output may be the beginning of something that is not to be shown."""


def no_secret_begun(_: bytes) -> int:
    return 0


def share_tmp(fs: ScopedFs, sandbox: SandboxMode) -> None:
    """From now on file tools see the session's temporary directory where commands do. Where everything may be
    written, `/tmp` stays the machine's for them."""
    everywhere = any(directory.real == "/" for directory in fs.scope.write)
    fs.tmp.is_tmp = lambda: not everywhere and choose(sandbox).has_private_tmp
