"""Several files changed as a whole: whichever system call fails, an error means that nothing was changed."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from gripfast.errors import ToolError
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope
from gripfast.host.record.together import NewContent, change_together

CALLS = ["rename", "unlink", "mkdir", "link", "fsync", "fchmod", "write", "open", "close"]


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else b"/" for path in root.rglob("*")}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_means_that_nothing_was_changed_and_no_error_that_all_was(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "ws"
    root.mkdir()
    before = {"a": b"old a\n", "b": b"old b\n"}
    after = {"a": b"new a\n", "n": b"/", "n/c": b"new c\n"}
    real, fs = getattr(os, name), ScopedFs(Scope.workspace(root))
    failed = 0
    for nth in range(1, 400):
        for path in sorted(root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        for path, data in before.items():
            (root / path).write_bytes(data)
        old_a, old_b = (fs.current(WorkPath.parse(path)) for path in "ab")
        files = [
            NewContent(str(root / "a"), old_a, b"new a\n", 0o644),
            NewContent(str(root / "b"), old_b, None),
            NewContent(str(root / "n/c"), None, b"new c\n"),
        ]
        count = 0

        def failing(*arguments: Any, nth: int = nth, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count != nth:
                return real(*arguments, **options)
            if name == "close":
                real(*arguments, **options)
            raise OSError(errno.ENOSPC, "injected")

        told = False
        with monkeypatch.context() as patch:
            patch.setattr(os, name, failing)
            try:
                change_together(fs, files, reads=ReadLog(required=False))
            except ToolError:
                told = True
        assert tree(root) == (before if told else after), f"{name} failed at use {nth}"
        failed += told
        if count < nth:
            break
    assert failed or name == "close"
    assert tree(root) == after
