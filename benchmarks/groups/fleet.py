"""What sharing sessions costs: a call with Redis against one with files, and what many open sessions take."""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import data
from benchmarks.harness import ROOT, Row, Run

sys.path[:0] = [str(ROOT / "tests")]

from cache_stores import RedisServer  # noqa: E402 - the servers of the tests
from fleet_servers import Person, Server, servers  # noqa: E402

GROUP = "Sessions that servers share"
_MOST_MS, _MOST_MB, _MOST_STATE = 1.0, 300, 4096
_FSYNC = "everysec"  # as the guide sets Redis up; the files are not synchronised at each call either


def measure(run: Run) -> None:
    if shutil.which("redis-server") is None:
        run.not_run(GROUP, "a call with Redis", f"≤ +{_MOST_MS:g} ms", "redis-server is not installed")
        return
    with tempfile.TemporaryDirectory(dir=data.DATA.parent) as place, tempfile.TemporaryDirectory() as short:
        root = Path(place, "project")
        root.mkdir()
        for number in range(20):
            (root / f"{number}.txt").write_text("one\ntwo\n", encoding="utf-8")
        redis = RedisServer(shutil.which("redis-server") or "", Path(short), keeps=True, fsync=_FSYNC)
        try:
            run.step(GROUP, "a call with Redis", lambda: _calls(run, root, Path(place), redis))
            run.step(GROUP, "open sessions", lambda: _sessions(run, root, Path(place, "many"), redis))
        finally:
            redis.kill()


def _calls(run: Run, root: Path, place: Path, redis: RedisServer) -> None:
    """Calls in turns, each of which changes the state; the medians are compared."""
    times: dict[str, list[float]] = {"files": [], "Redis": []}
    with servers(root, place, None, 1) as (files,), servers(root, place, redis.url, 1) as (shared,):
        person = Person(generation="newer", name="bench")
        for number in range(40 if run.quick else 400):
            for name, server in (("files", files), ("Redis", shared)):
                start = time.perf_counter()
                answer = person.call(server.port, "Read", file_path=f"{number % 20}.txt", limit=1 + number % 2)
                took = time.perf_counter() - start
                assert not answer.is_error, answer
                if number >= 20:
                    times[name].append(took * 1000)
        _state(run, person, shared, redis)
    both = {name: statistics.median(values) for name, values in times.items()}
    more = both["Redis"] - both["files"]
    note = f"{both['Redis']:.2f} ms with Redis, {both['files']:.2f} ms with files"
    figure = f"≤ +{_MOST_MS:g} ms"
    run.add(
        Row(
            GROUP,
            "a call with Redis, over one with files",
            figure,
            f"{more:+.2f} ms",
            "",
            more <= _MOST_MS,
            note,
            more,
        )
    )


def _state(run: Run, person: Person, server: Server, redis: RedisServer) -> None:
    """The size of a session's state in Redis, with ten todos, apart from the files it read."""
    todos = [{"id": f"todo-{number}", "content": f"Do the next thing, number {number}"} for number in range(10)]
    person.call(server.port, "write_todos", todos=todos)
    (key,) = redis.command("keys", "gripfast:1:state:*").decode().split()
    names = redis.command("hkeys", key).decode().splitlines()
    sizes = {name: len(name) + int(redis.command("hstrlen", key, name)) for name in names}
    reads = [size for name, size in sizes.items() if name.startswith("read ")]
    own = sum(sizes.values()) - sum(reads)
    note = f"and {sum(reads) / max(1, len(reads)):.0f} bytes for each file read"
    run.add(
        Row(GROUP, "state of a session", f"≤ {_MOST_STATE} bytes", f"{own} bytes", "", own <= _MOST_STATE, note, own)
    )


def _sessions(run: Run, root: Path, place: Path, redis: RedisServer) -> None:
    place.mkdir()
    count = 100 if run.quick else 1000
    with servers(root, place, redis.url, 1) as (server,):
        before = _megabytes(server)
        for number in range(count):
            answer = Person(generation="newer", name=f"{number}").call(server.port, "Read", file_path="1.txt")
            assert not answer.is_error, answer
        after = _megabytes(server)
    note = f"{before:.0f} MB before; {(after - before) / count * 1000:.0f} kB for each"
    name = f"{count} open sessions, memory of the server"
    run.add(Row(GROUP, name, f"≤ {_MOST_MB} MB", f"{after:.0f} MB", "", after <= _MOST_MB, note, after))


def _megabytes(server: Server) -> float:
    lines = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024
