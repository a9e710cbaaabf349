"""Guards that only a race or a broken system would need, with the race or the break brought about by hand."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gripfast.errors import Conflict, NotFile, SandboxViolation
from gripfast.host.files import beneath, guard, opening, writing
from gripfast.host.files import fs as fs_module
from gripfast.host.files.beneath import Strategy, chosen_strategy, strategy_works
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope
from gripfast.host.kernel import openat2


class Meddling:
    """The system, with something done by somebody else just before a chosen call."""

    def __init__(self, name: str, meddle: Callable[[], None], when: Callable[..., bool]) -> None:
        self._name = name
        self._meddle = meddle
        self._when = when
        self._done = False

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name != self._name:
            return real

        def call(*args: Any, **options: Any) -> Any:
            if not self._done and self._when(*args, **options):
                self._done = True
                self._meddle()
            return real(*args, **options)

        return call


def is_last_open(*args: Any, **_: Any) -> bool:
    return args[0] == "a.txt"


def test_openat2_that_does_not_refuse_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The probe looks at openat2 itself: with its flags gone it must fall back to the walk."""
    if not strategy_works("openat2"):
        pytest.skip("no openat2 here")
    careless = openat2._OpenHow(openat2.DIRECTORY_FLAGS, 0, 0)  # pyright: ignore[reportPrivateUsage] - the guard itself
    monkeypatch.setattr(openat2, "_HOW_AT", ctypes.byref(careless))
    chosen_strategy.cache_clear()
    try:
        assert not strategy_works("openat2")
        assert chosen_strategy() == "walk"
    finally:
        chosen_strategy.cache_clear()


def test_a_strategy_that_does_not_work_is_not_taken(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fs_module, "strategy_works", lambda name: False)  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    with pytest.raises(ValueError, match="does not work"):
        ScopedFs(Scope.workspace(root), strategy="walk")


def test_a_file_swapped_for_a_link_after_the_look_is_not_followed(
    fs: ScopedFs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap() -> None:
        (root / "src" / "a.txt").unlink()
        os.symlink("../../out/secret.txt", root / "src" / "a.txt")

    monkeypatch.setattr(opening, "os", Meddling("open", swap, is_last_open))
    with pytest.raises(SandboxViolation):
        fs.read(WorkPath("src/a.txt"))


def test_a_file_swapped_for_a_fifo_after_the_look_neither_hangs_nor_opens(
    fs: ScopedFs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swap() -> None:
        (root / "src" / "a.txt").unlink()
        os.mkfifo(root / "src" / "a.txt")

    monkeypatch.setattr(opening, "os", Meddling("open", swap, is_last_open))
    caught: list[BaseException] = []

    def read() -> None:
        try:
            fs.read(WorkPath("src/a.txt"))
        except NotFile as error:
            caught.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it hangs"
    assert len(caught) == 1


def test_a_fifo_is_not_even_opened(fs: ScopedFs, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "fifo")
    opened: list[str] = []
    note = Meddling("open", lambda: opened.append("opened"), lambda *args, **_: args[0] == "fifo")
    monkeypatch.setattr(opening, "os", note)
    with pytest.raises(NotFile):
        fs.read(WorkPath("fifo"))
    assert opened == []


def test_a_directory_moved_out_while_it_is_opened_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not strategy_works("openat2"):
        pytest.skip("no openat2 here")
    fs = ScopedFs(Scope.workspace(root), strategy="openat2")
    away = Meddling("readlink", lambda: os.rename(root / "src", tmp_path / "out" / "src"), lambda *_, **__: True)
    monkeypatch.setattr(beneath, "os", away)
    with pytest.raises(SandboxViolation, match="moved"):
        fs.read(WorkPath("src/a.txt"))


def test_a_workspace_that_was_moved_away_is_refused_until_it_is_back(
    root: Path, tmp_path: Path, strategy: Strategy
) -> None:
    fs = ScopedFs(Scope.workspace(root), strategy=strategy)
    os.rename(root, tmp_path / "elsewhere")
    with pytest.raises(SandboxViolation, match="it was moved"):
        fs.read(WorkPath("src/a.txt"))
    os.rename(tmp_path / "elsewhere", root)
    assert fs.read(WorkPath("src/a.txt")) == "inside\n"


def test_a_link_named_like_a_protected_thing_is_not_written_through(fs: ScopedFs, root: Path) -> None:
    os.symlink("src", root / ".vscode")
    with pytest.raises(SandboxViolation, match="protected"):
        fs.write(WorkPath(".vscode/tasks.json"), "{}")


def test_a_change_within_one_tick_of_the_clock_is_found_by_content(
    fs: ScopedFs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same inode, size and times: only the content tells. A young file is never trusted by its times."""
    target, reads = root / "src" / "a.txt", ReadLog()
    just_now = target.stat().st_ctime_ns + 1_000_000
    monkeypatch.setattr(guard.time, "time_ns", lambda: just_now)
    with fs.open_read(WorkPath("src/a.txt")) as file:
        file.record(reads)
        before = file.stat
    target.write_text("INSIDE\n")
    identity = guard.Identity.of(before)
    monkeypatch.setattr(guard.Identity, "of", classmethod(lambda cls, found: identity))  # pyright: ignore[reportUnknownLambdaType,reportUnknownArgumentType]
    with pytest.raises(Conflict):
        fs.write(WorkPath("src/a.txt"), "mine\n", reads=reads)


def test_a_file_that_appears_at_the_last_moment_is_not_replaced_by_a_new_one(
    fs: ScopedFs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = writing._unchanged  # pyright: ignore[reportPrivateUsage] - the moment that is meant

    def meddled(*args: Any) -> bool:
        answer = real(*args)
        (root / "new.txt").write_text("theirs")
        return answer

    monkeypatch.setattr(writing, "_unchanged", meddled)
    seen: list[bytes | None] = []

    def make(before: bytes | None) -> bytes:
        seen.append(before)
        return before if before is not None else b"mine"

    fs.change(WorkPath("new.txt"), make)
    assert (root / "new.txt").read_text() == "theirs"
    assert seen == [None, b"theirs"]
