"""Files that grow, never end or are held by others: an answer comes, and after a cancel nothing happens."""

from __future__ import annotations

import fcntl
import os
import random
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from builtin.conftest import Bench
from gripfast.framework import definition
from gripfast.host.files import opened
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope

pytestmark = pytest.mark.anyio


def _grows_when_read(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Every read of a file makes it longer by twice as much."""
    pread = os.pread

    def growing(fd: int, size: int, at: int) -> bytes:
        with path.open("ab") as file:
            file.write(b"more\n" * (2 * (1 << 20) // 5))
        if path.stat().st_size > 256 << 20:
            raise AssertionError("it would have read for ever")
        return pread(fd, size, at)

    monkeypatch.setattr(os, "pread", growing)


async def test_a_file_that_grows_as_fast_as_it_is_read_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    _grows_when_read(monkeypatch, bench.put("log", "start\n"))
    words = await bench.fails("SIZE_LIMIT_EXCEEDED", "Read", file_path="log")
    assert words == "`log` grows as fast as it is read; read it when it has stopped growing"


async def test_a_large_file_that_grows_is_read_as_it_was_when_it_was_opened(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.put("log", b"line\n" * ((17 << 20) // 5))
    lines = path.stat().st_size // 5
    _grows_when_read(monkeypatch, path)
    assert f"has {lines} lines" in await bench.ok("Read", file_path="log", offset=1 << 40)


@pytest.mark.parametrize("offset", [10**12, -(10**12)])
async def test_a_file_too_large_to_be_looked_through_is_told_with_what_to_do(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    path = bench.put("hole", b"text\n" * 10_000)
    os.truncate(path, 1 << 38)
    monkeypatch.setattr(opened, "SCAN_SECONDS", 0.1)
    words = await bench.fails("TIMEOUT", "Read", file_path="hole", offset=offset)
    assert f"`hole` has {1 << 38} bytes" in words and "search for the text instead" in words


def _end_of_changes(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    ended, change = threading.Event(), ScopedFs.change

    def watched(*words: Any, **named: Any) -> Any:
        try:
            return change(*words, **named)
        finally:
            ended.set()

    monkeypatch.setattr(ScopedFs, "change", watched)
    return ended


@pytest.mark.parametrize("tool", ["Write", "Edit"])
async def test_a_write_that_was_cancelled_while_it_waited_is_never_done(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """Somebody holds the directory's lock: the call is given up, and must not write when the lock is free again."""
    monkeypatch.setattr(definition, "GRACE_SECONDS", 0.05)
    bench.put("a.txt", "old\n")
    await bench.ok("Read", file_path="a.txt")
    held = os.open(bench.root, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    arguments = {"content": "new\n"} if tool == "Write" else {"old_string": "old", "new_string": "new"}
    ended = _end_of_changes(monkeypatch)
    with anyio.move_on_after(0.3) as gave_up:
        await bench.call(tool, file_path="a.txt", **arguments)
    assert gave_up.cancelled_caught
    os.close(held)
    assert await anyio.to_thread.run_sync(ended.wait, 30)
    assert bench.bytes_of("a.txt") == b"old\n"
    assert os.listdir(bench.root) == ["a.txt"]


def test_the_last_word_before_a_change_can_stop_it(tmp_path: Path) -> None:
    fs = ScopedFs(Scope.workspace(tmp_path))

    def no() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fs.write(WorkPath.parse("new/a.txt"), "x", last_word=no)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "old", "new"),
    [
        (b"line\n" * 50_000, "\n", "\n\n"),
        (b"line\r\n" * 50_000, "\n", "\n\n"),
        (b"a" * 400_000, "a", "b"),
        (b"\r\n" + b"a" * 200_000, "a", "b\n"),
        (b"a\n\n\n\n\n\n\n\n\n" * 30_000, "a", "b"),
    ],
    ids=["lines", "crlf", "one line", "lines of one line", "far apart"],
)
async def test_many_replacements_cost_what_they_are_worth(bench: Bench, content: bytes, old: str, new: str) -> None:
    """Once each of them looked through the whole file, and held up the server for minutes."""
    bench.put("many.txt", content)
    await bench.ok("Read", file_path="many.txt", limit=1)
    started = time.process_time()
    words = await bench.ok("Edit", file_path="many.txt", old_string=old, new_string=new, replace_all=True)
    assert time.process_time() - started < 20
    assert "replacements (exact)" in words


async def test_more_replacements_than_can_be_held_are_refused(bench: Bench) -> None:
    bench.put("many.txt", b"a" * 600_000)
    await bench.ok("Read", file_path="many.txt", limit=1)
    arguments = {"file_path": "many.txt", "old_string": "a", "new_string": "b", "replace_all": True}
    assert "occurs 600000 times" in await bench.fails("SIZE_LIMIT_EXCEEDED", "Edit", **arguments)


async def test_a_missing_name_among_names_made_to_be_compared_for_long_is_told_at_once(bench: Bench) -> None:
    letters = random.Random(1)
    for number in range(3_000):
        bench.put("".join(letters.choices("ab", k=190)) + str(number), b"")
    started = time.process_time()
    await bench.fails("NOT_FOUND", "Read", file_path="".join(letters.choices("ab", k=195)))
    assert time.process_time() - started < 5
