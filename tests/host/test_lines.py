"""Windows of lines against a naive reference."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gripfast.errors import Conflict
from gripfast.host.files import guard, hashing, opened
from gripfast.host.files import lines as engine
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import ReadLog, digest_of
from gripfast.host.files.lines import data_chunks, tail_start, window
from gripfast.host.files.opened import OpenFile
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope

NO_BUDGET = 1 << 40


def naive(data: bytes) -> list[bytes]:
    """Lines as everybody means them."""
    lines = data.split(b"\n")
    ended = lines[:-1] if lines[-1] == b"" else lines
    last_open = lines[-1] != b""
    stripped = [line.removesuffix(b"\r") for line in ended]
    if last_open:
        stripped[-1] = ended[-1]
    return stripped


TEXTS = st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"bcd", b"\r", "é".encode(), b"x" * 300]), max_size=60).map(
    b"".join
)


@given(TEXTS, st.integers(0, 30), st.integers(1, 30), st.integers(1, 40))
@settings(max_examples=300)
def test_a_window_is_what_a_naive_split_gives_whatever_the_chunks(
    data: bytes, offset: int, limit: int, chunk: int
) -> None:
    chunks = (data[at : at + chunk] for at in range(0, len(data), chunk))
    got = window(chunks, offset, limit, budget=NO_BUDGET, count=True)
    want = naive(data)
    assert got.lines == want[offset : offset + limit]
    assert got.total == len(want)
    assert got.more == (offset + limit < len(want))
    if got.lines:
        assert got.newline == (got.more or data.endswith(b"\n"))


@given(TEXTS, st.integers(1, 40), st.integers(1, 50))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_tail_is_found_from_the_end(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, wanted: int, chunk: int
) -> None:
    path = tmp_path_factory.getbasetemp() / f"tail-{os.getpid()}"
    path.write_bytes(data)
    fd = os.open(path, os.O_RDONLY)
    before, engine.CHUNK = engine.CHUNK, chunk
    try:
        start, there = tail_start(fd, len(data), wanted)
    finally:
        engine.CHUNK = before
        os.close(fd)
    assert naive(data[start:]) == naive(data)[-wanted:]
    assert there == min(wanted, len(naive(data)))


@given(TEXTS, st.integers(0, 20), st.integers(1, 20), st.integers(1, 2000))
def test_a_budget_cuts_between_lines_and_the_rest_can_be_asked_for(
    data: bytes, offset: int, limit: int, budget: int
) -> None:
    got = window(data_chunks(data), offset, limit, budget=budget, count=True)
    want = naive(data)[offset : offset + limit]
    assert got.lines == want[: len(got.lines)]
    assert got.lines or not want
    assert got.total == len(naive(data))
    assert got.more == (offset + len(got.lines) < len(naive(data)))


def open_file(path: Path) -> OpenFile:
    fd = os.open(path, os.O_RDONLY)
    return OpenFile(fd, os.fstat(fd), str(path))


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("offset", [0, 3, 699, 700, -1, -3, -5000])
def test_marked_files_give_the_same_lines_small_or_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, small: bool, offset: int
) -> None:
    text = "".join(f"line {number} äö\u010a日本\r\n" for number in range(700))
    mark = b"\xfe\xff" if codec == "utf-16-be" else b""
    (tmp_path / "f").write_bytes(mark + text.encode(codec))
    if not small:
        for name in ("HASHED_BYTES", "COUNTED_BYTES"):
            monkeypatch.setattr(opened, name, 100)
        monkeypatch.setattr(engine, "CHUNK", 1001)
    with open_file(tmp_path / "f") as file:
        got = file.window(offset, 4)
    want = text.replace("\r\n", "\n").splitlines()
    start = offset if offset >= 0 else max(0, 700 + offset)
    assert [line.decode() for line in got.lines] == want[start : start + 4]


def test_a_very_long_line_is_kept_in_part_and_measured(tmp_path: Path) -> None:
    data = b"a\n" + b"x" * 5_000_000 + b"\nlast"
    got = window(data_chunks(data), 0, 10, budget=NO_BUDGET, count=True)
    assert [len(line) for line in got.lines] == [1, engine.KEPT, 4]
    assert got.long == {1: 5_000_000}
    assert got.total == 3


def test_the_tail_of_a_huge_sparse_file_is_read_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as out:
        out.truncate(20 << 30)
        out.seek(0, os.SEEK_END)
        out.write(b"\nlast but one\nlast\n")
    with open_file(path) as file:
        got = file.window(-2, 10)
    assert got.lines == [b"last but one", b"last"]
    assert got.first == -2


@given(TEXTS, st.integers(-30, 30), st.integers(1, 30))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_that_was_seen_before_shows_the_same_window(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, offset: int, limit: int
) -> None:
    path = tmp_path_factory.getbasetemp() / f"seen-{os.getpid()}"
    path.write_bytes(data)
    log = ReadLog()
    with _open(path) as first:
        assert not first.recall(log)
        want = first.window(offset, limit)
        log.record(str(path), first.stat, digest_of(data), want.total)
    with _settled(), _open(path) as known:
        log.record(str(path), known.stat, digest_of(data), want.total)
        assert known.recall(log)
        assert known.window(offset, limit) == want
        known.record(log)
    assert [(seen.digest, seen.lines) for seen in log.seen()] == [(digest_of(data), len(naive(data)))]


def test_only_a_file_that_can_be_nothing_else_is_taken_for_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\n")
    log = ReadLog()
    log.record(str(path), path.stat(), digest_of(b"one\n"))
    assert log.unchanged(str(path), path.stat()) is None, "it was just written: the clock may not have moved since"
    with _settled():
        log.record(str(path), path.stat(), digest_of(b"one\n"))
    assert log.unchanged(str(path), path.stat()) is not None
    assert log.unchanged(str(tmp_path / "b"), path.stat()) is None
    before = path.stat()
    path.write_bytes(b"two\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert log.unchanged(str(path), path.stat()) is None, "same size and time, but ctime tells"


def _open(path: Path) -> OpenFile:
    fd = os.open(path, os.O_RDONLY)
    return OpenFile(fd, os.fstat(fd), str(path))


@contextmanager
def _settled() -> Generator[None]:
    """As if every file were old."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "_SETTLED_NS", -(1 << 62))
        yield


@pytest.fixture
def late_digests() -> Iterator[threading.Event]:
    """No digest is computed until the event is set."""
    go = threading.Event()
    hashing._thread().submit(go.wait, 60)  # pyright: ignore[reportPrivateUsage]
    yield go
    go.set()


def test_the_guard_knows_what_was_read_when_the_file_changes_before_its_digest_is_there(
    tmp_path: Path, late_digests: threading.Event
) -> None:
    file, log = tmp_path / "big.txt", ReadLog()
    file.write_bytes(b"one\n" * 100_000)
    before = file.stat()
    fs = ScopedFs(Scope.workspace(tmp_path))
    with fs.open_read(WorkPath.parse("big.txt")) as opened:
        opened.window(0, 10)
        opened.record(log)
    with file.open("r+b") as changed:  # the same size, and then the same times, as by a mapping into memory
        changed.write(b"two\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    late_digests.set()
    with pytest.raises(Conflict):
        log.check("big.txt", str(file), file.stat(), file.read_bytes())
    log.record(str(file), before, digest_of(b"one\n" * 100_000))
    with pytest.raises(Conflict):
        log.check("big.txt", str(file), file.stat(), file.read_bytes())


def test_nobody_is_given_an_entry_without_its_digest(tmp_path: Path, late_digests: threading.Event) -> None:
    file, log, data = tmp_path / "big.txt", ReadLog(), b"one\n" * 100_000
    file.write_bytes(data)
    promise = hashing.digest_soon(data)
    assert not isinstance(promise, str)
    log.record(str(file), file.stat(), promise)
    threading.Timer(0.05, late_digests.set).start()
    assert [seen.digest for seen in log.seen()] == [digest_of(data)]
    log.record(str(file), file.stat(), hashing.digest_soon(data))
    changed = log.take_changes()[str(file)]
    assert changed is not None
    assert changed.digest == digest_of(data)


def test_a_newer_digest_is_not_replaced_by_one_that_was_promised_before(
    tmp_path: Path, late_digests: threading.Event
) -> None:
    file, log = tmp_path / "big.txt", ReadLog()
    file.write_bytes(b"new")
    log.record(str(file), file.stat(), hashing.digest_soon(b"old\n" * 100_000))
    log.record(str(file), file.stat(), digest_of(b"new"))
    late_digests.set()
    log.check("big.txt", str(file), file.stat(), b"new")
    assert [seen.digest for seen in log.seen()] == [digest_of(b"new")]
