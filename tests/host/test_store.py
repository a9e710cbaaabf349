"""The embedded store on its disk: private, shared by processes, and sound after kill -9."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from gripfast.call.cache import OutputCache
from gripfast.host.program.places import cache_directory
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import TextPart, TextResult

SOURCE = str(Path(__file__).parents[2] / "src")
BIG = "".join(f"line {number}\n" for number in range(100_000))


def python(script: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def keep(store: EmbeddedStore, text: str) -> str:
    async def fit() -> str:
        _, ref = await OutputCache(store, session="one").fit(TextResult(text))
        assert ref is not None
        return ref.id

    return anyio.run(fit)


def whole(store: EmbeddedStore, ref_id: str) -> str:
    (part,) = anyio.run(OutputCache(store, session="one").parts, ref_id)
    assert isinstance(part, TextPart)
    return part.text


def files(directory: Path) -> list[Path]:
    return sorted((directory / "outputs-1" / "files").iterdir())


def test_it_lives_in_the_users_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "gripfast"
    for odd in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", odd)
        assert cache_directory() == Path.home() / ".cache" / "gripfast"


def test_making_a_store_touches_nothing(tmp_path: Path) -> None:
    EmbeddedStore(tmp_path / "cache").close()
    assert not (tmp_path / "cache").exists()


def test_only_the_user_may_look(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        store = EmbeddedStore(tmp_path / "cache")
        keep(store, BIG)
        keep(store, BIG[:100_000])
        modes = {
            str(path.relative_to(tmp_path)): stat.S_IMODE(path.lstat().st_mode)
            for path in (tmp_path / "cache" / "outputs-1").rglob("*")
        }
        store.close()
    finally:
        os.umask(before)
    assert len(modes) >= 5
    assert {mode for path, mode in modes.items() if not path.endswith("/files")} == {0o600}
    assert stat.S_IMODE((tmp_path / "cache" / "outputs-1").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "cache" / "outputs-1" / "files").stat().st_mode) == 0o700


def test_a_directory_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / "outputs-1").mkdir()
    (tmp_path / "outputs-1").chmod(0o777)
    store = EmbeddedStore(tmp_path)
    keep(store, BIG)
    store.close()
    assert stat.S_IMODE((tmp_path / "outputs-1").stat().st_mode) == 0o700


def test_a_ref_is_not_the_name_of_a_file(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    ref = keep(store, BIG)
    assert all(ref not in path.name for path in (tmp_path / "outputs-1").rglob("*"))
    store.close()


def test_equal_outputs_are_one_file(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    refs = {keep(store, BIG) for _ in range(3)}
    assert len(refs) == 3
    assert len(files(tmp_path)) == 1
    store.close()


WRITER = """
import sys, asyncio
from pathlib import Path
from gripfast.call.cache import OutputCache
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import TextResult
store = EmbeddedStore(Path(sys.argv[1]), patience=30)
async def main():
    cache = OutputCache(store, session="one")
    for number in range(12):
        size = 300_000 if number % 3 == 0 else 80_000
        text = "".join(f"{sys.argv[2]} {number} {n}\\n" for n in range(size // 10))
        content, ref = await cache.fit(TextResult(text))
        assert ref is not None, content[-300:]
        print(ref.id, flush=True)
asyncio.run(main())
store.close()
"""


def test_several_processes_share_one_store(tmp_path: Path) -> None:
    writers = [python(WRITER, str(tmp_path), name) for name in ("alpha", "beta", "gamma")]
    store = EmbeddedStore(tmp_path, patience=30)
    for name, writer in zip(("alpha", "beta", "gamma"), writers, strict=True):
        out, err = writer.communicate(timeout=120)
        assert writer.returncode == 0, err.decode()
        refs = out.decode().split()
        assert len(refs) == 12
        for number, ref in enumerate(refs):
            assert whole(store, ref).startswith(f"{name} {number} 0\n{name} {number} 1\n")
    store.close()


FOREVER = """
import sys, hashlib, secrets
from pathlib import Path
from gripfast.call.cache.lines import LineCount
from gripfast.host.stores.store import EmbeddedStore
store = EmbeddedStore(Path(sys.argv[1]))
while True:
    for size in (1_000, 100_000, 700_000):
        data = secrets.token_bytes(size)
        count = LineCount()
        count.add(data)
        writer = store.writer("one")
        for start in range(0, size, 150_000):
            writer.write(data[start:start + 150_000])
        print(writer.commit(count.card().pack()), hashlib.sha256(data).hexdigest(), flush=True)
"""


def test_kill_9_at_any_moment_loses_no_committed_output_and_leaves_no_litter(tmp_path: Path) -> None:
    committed: dict[str, str] = {}
    for round_ in range(6):
        writer = python(FOREVER, str(tmp_path))
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(3 + round_)]
        time.sleep(secrets.randbelow(20) / 1000)
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate(timeout=60)
        whole_lines = (b"".join(lines) + rest).rpartition(b"\n")[0].decode().splitlines()
        committed.update((ref, digest) for ref, digest in (line.split() for line in whole_lines))
    store = EmbeddedStore(tmp_path)
    for ref, digest in committed.items():
        stored = store.find("one", ref)
        assert hashlib.sha256(store.read(stored, 0, stored.size)).hexdigest() == digest
    old = time.time() - 3600
    for path in files(tmp_path):
        os.utime(path, (old, old))
    store.collect()
    for ref in committed:
        store.find("one", ref)
    store.close()
    index = sqlite3.connect(tmp_path / "outputs-1" / "index.db")
    known = {name for (name,) in index.execute("SELECT name FROM blobs WHERE name IS NOT NULL")}
    index.close()
    assert {path.name for path in files(tmp_path)} == known


def test_the_collector_removes_strays_but_not_what_is_being_written(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    ref = keep(store, BIG)
    other = EmbeddedStore(tmp_path)
    sink = OutputCache(other, session="one").sink()
    sink.write(BIG.encode() * 2)
    stray, fresh = (tmp_path / "outputs-1" / "files" / name for name in ("stray", "fresh"))
    stray.write_bytes(b"x")
    old = time.time() - 3600
    for path in files(tmp_path):
        os.utime(path, (old, old))
    fresh.write_bytes(b"x")
    store.collect()
    assert not stray.exists()
    assert fresh.exists(), "its writer may not have locked it yet"
    streamed = anyio.run(sink.finish)
    assert streamed.ref is not None
    assert whole(other, streamed.ref.id) == BIG * 2
    assert whole(store, ref) == BIG
    store.close()
    other.close()


def test_collection_starts_by_itself_in_the_background(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path, quota=3_000_000)
    for number in range(8):
        keep(store, f"{number}\n" + BIG)
    store.close()  # waits for a run that is under way
    store = EmbeddedStore(tmp_path, quota=3_000_000)
    keep(store, "last\n" + BIG)
    store.close()
    assert len(files(tmp_path)) <= 3


def test_a_window_of_a_large_output_reads_little_of_it(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    cache = OutputCache(store, session="one")
    ref = keep(store, BIG * 40)
    read: list[int] = []
    original = store.read
    store.read = lambda stored, start, size: read.append(size) or original(stored, start, size)  # type: ignore[method-assign]
    window = anyio.run(cache.window, ref, 3_990_000, 2_000)
    assert window.lines[0].text == "line 90000"
    assert len(window.lines) == 2_000
    assert sum(read) < 300_000
    store.close()


ONE_LONG_LINE = """
import resource, sys, asyncio
from pathlib import Path
from gripfast.call.cache import OutputCache
from gripfast.host.stores.store import EmbeddedStore
store = EmbeddedStore(Path(sys.argv[1]))
async def main():
    cache = OutputCache(store)
    sink = cache.sink()
    for _ in range(100):
        sink.write(b"x" * 1_000_000)
    sink.write(b"needle\\n")
    ref = (await sink.finish()).ref
    found = await cache.grep(ref.id, "needle")
    assert [hit.number for hit in found.hits] == [1], found
    assert len((await cache.window(ref.id)).lines[0].text) == 2000
asyncio.run(main())
store.close()
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
(own,) = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")]
assert max(children, own) < 64 * 1024, (children, own)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_line_of_a_hundred_megabytes_takes_little_memory(tmp_path: Path) -> None:
    done = python(ONE_LONG_LINE, str(tmp_path))
    _, err = done.communicate(timeout=120)
    assert done.returncode == 0, err.decode()
