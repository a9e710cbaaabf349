"""The output cache on the default store, compared with a plain file, a scan and plain rg."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from benchmarks import data
from benchmarks.harness import ROOT, Run, bound, compare
from gripfast import OutputCache
from gripfast.host.search.ripgrep import find_rg
from gripfast.host.stores.redis_store import RedisStore
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import TextResult

GROUP = "Output cache"
PATTERNS = {"a rare literal": "the needle is", "a common word": "mutex", "a regex": r"timer \w+ 159[0-9]+$"}


def measure(run: Run) -> None:
    with tempfile.TemporaryDirectory(dir=data.DATA.parent) as place, start_blocking_portal() as portal:
        store = EmbeddedStore(Path(place))
        cache = OutputCache(store, session="bench")
        _small(run, portal, cache)
        _storing(run, portal, cache, Path(place))
        _window(run, portal, cache)
        run.step(GROUP, "grep, against bare rg", lambda: _grep(run, portal, cache))
        _redis(run, portal, cache, Path(place))
        store.close()
    _memory(run)


def _small(run: Run, portal: BlockingPortal, cache: OutputCache) -> None:
    """The cost of an output that fits, which every call pays."""
    result, count = TextResult("a line of output\n" * 200), 10_000

    async def nothing() -> tuple[str, None]:
        return result.text, None

    async def many(call: Callable[[], Any]) -> None:
        for _ in range(count):
            await call()

    compare(
        run,
        GROUP,
        "an output that fits",
        {
            "gripfast": lambda: portal.call(many, lambda: cache.fit(result)),
            "an empty coroutine": lambda: portal.call(many, nothing),
        },
        at_most={"an empty coroutine": 10.0},
    )


def _storing(run: Run, portal: BlockingPortal, cache: OutputCache, place: Path) -> None:
    """Each round stores different content, because identical content is not written again."""
    body = data.text(10_000_000).read_text()
    numbers = itertools.count()

    def store() -> None:
        _, ref = portal.call(cache.fit, TextResult(f"{next(numbers)}\n{body}"))
        assert ref is not None

    def write() -> None:
        (place / f"plain-{next(numbers)}").write_bytes(f"{next(numbers)}\n{body}".encode())

    compare(
        run,
        GROUP,
        "storing 10 MB, with line index and no duplicates",
        {"gripfast": store, "writing it to a file": write},
        at_most={"writing it to a file": 2.0},
    )


def stored(portal: BlockingPortal, cache: OutputCache, path: Path) -> tuple[str, int]:
    """Streams a file's bytes into the cache; returns the ref and the number of lines."""
    sink = cache.sink(limit=2 * 1024**3)
    with path.open("rb") as file:
        while chunk := file.read(1 << 18):
            sink.write(chunk)
    streamed = portal.call(sink.finish)
    assert streamed.ref is not None, streamed.text
    return streamed.ref.id, streamed.lines


def _window(run: Run, portal: BlockingPortal, cache: OutputCache) -> None:
    size = 30_000_000 if run.quick else 1_000_000_000
    path = data.text(size)
    ref, lines = stored(portal, cache, path)
    first = lines - 3_000

    def scan() -> list[bytes]:
        with path.open("rb") as file:
            return list(itertools.islice(file, first, first + 2_000))

    compare(
        run,
        GROUP,
        f"2,000 lines near the end of {size // 1_000_000:,} MB",
        {"gripfast": lambda: portal.call(cache.window, ref, first, 2_000), "scanning for the lines": scan},
        at_most={"scanning for the lines": 1 / 5 if run.quick else 1 / 20},
        rounds=5,
        note="of 1 GB, in a full run: ≤ 0.05×" if run.quick else "",
    )


def _grep(run: Run, portal: BlockingPortal, cache: OutputCache) -> None:
    size = 100_000_000
    path = data.text(size)
    ref, _ = stored(portal, cache, path)
    for name, pattern in PATTERNS.items():

        async def grep(pattern: str = pattern) -> int:
            return (await cache.grep(ref, pattern, regex=True)).matches

        compare(
            run,
            GROUP,
            f"grep of {name} in {size // 1_000_000} MB, with the true total",
            {"gripfast": lambda grep=grep: portal.call(grep), "bare rg": lambda pattern=pattern: _rg(pattern, path)},
            at_most={"bare rg": 1.5},
        )


def _rg(pattern: str, path: Path) -> None:
    command = [find_rg(), "--no-config", "-n", "--no-heading", "-e", pattern, "--", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 18):
            pass


def _redis(run: Run, portal: BlockingPortal, embedded: OutputCache, place: Path) -> None:
    """The Redis store compared with the default one, through a local socket."""
    name = "storing 10 MB and a window near its end in Redis"
    binary = shutil.which("redis-server")
    if binary is None or shutil.which("redis-cli") is None:
        run.not_run(GROUP, name, "–", "no redis-server on this machine")
        return
    sys.path.append(str(ROOT / "tests"))
    from cache_stores import RedisServer

    body, numbers = data.text(10_000_000).read_text(), itertools.count(10**6)

    def round_trip(cache: OutputCache) -> None:
        _, ref = portal.call(cache.fit, TextResult(f"{next(numbers)}\n{body}"))
        assert ref is not None
        portal.call(cache.window, ref.id, -3_000, 2_000)

    server = RedisServer(binary, place)
    shared = RedisStore(server.url)
    try:
        sides = {
            "gripfast": lambda: round_trip(OutputCache(shared, session="bench")),
            "the embedded store": lambda: round_trip(embedded),
        }
        compare(run, GROUP, name, sides, rounds=5)
    finally:
        shared.close()
        server.kill()


PEAK = """
import asyncio, resource, sys
from pathlib import Path
from gripfast import OutputCache
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import TextResult

async def main():
    store = EmbeddedStore(Path(sys.argv[1]))
    cache = OutputCache(store)
    path = Path(sys.argv[3])
    if sys.argv[2] == "store":
        await cache.fit(TextResult(path.read_text()))
    sink = cache.sink(limit=2 * 1024**3)
    if sys.argv[2] != "store":
        with path.open("rb") as file:
            while chunk := file.read(1 << 18):
                sink.write(chunk)
    ref = (await sink.finish()).ref
    if sys.argv[2] == "window":
        await cache.window(ref.id, -3000, 2000)
    if sys.argv[2] == "grep":
        await cache.grep(ref.id, "e", before=2, after=2)
    store.close()

asyncio.run(main())
(own,) = [int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024)
"""


def _memory(run: Run) -> None:
    if sys.platform != "linux":
        run.not_run(GROUP, "memory", "≤ 64 MB", "read from /proc, on Linux")
        return
    big = data.text(30_000_000 if run.quick else 1_000_000_000)
    many = data.text(30_000_000 if run.quick else 100_000_000)
    for name, work, path in (
        ("storing 10 MB", "store", data.text(10_000_000)),
        (f"storing and a window of {big.stat().st_size // 1_000_000:,} MB", "window", big),
        (f"storing and grep of {many.stat().st_size // 1_000_000} MB, a match on nearly every line", "grep", many),
    ):
        what = f"memory of the whole process: {name}"
        run.step(GROUP, what, partial(_peak_of, run, what, work, path))


def _peak_of(run: Run, what: str, work: str, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=data.DATA.parent) as place:
        argv = [sys.executable, "-c", PEAK, place, work, str(path)]
        done = subprocess.run(argv, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    bound(run, GROUP, what, float(done.stdout), 64, "MB")
