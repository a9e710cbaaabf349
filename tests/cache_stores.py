"""Real stores for tests: the default store in a scratch directory, a redis-server on a private socket."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from gripfast.host.stores.redis_store import RedisStore
from gripfast.host.stores.store import EmbeddedStore


class RedisServer:
    """A redis-server that can be killed and started again in the middle of a test."""

    def __init__(
        self, binary: str, directory: Path, *, keeps: bool = False, password: str = "", fsync: str = "always"
    ) -> None:
        """`keeps`: it has its data again after a restart; `fsync`: how soon what it was given is on the disk."""
        self.url = f"unix://:{password}@{directory}/redis.sock" if password else f"unix://{directory}/redis.sock"
        self._cli = ["redis-cli", "-s", f"{directory}/redis.sock", *(["-a", password] if password else [])]
        self._argv = [binary, "--port", "0", "--unixsocket", f"{directory}/redis.sock", "--save", ""]
        self._argv += ["--appendonly", "yes" if keeps else "no", "--appendfsync", fsync, "--dir", str(directory)]
        self._argv += ["--requirepass", password] if password else []
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while subprocess.run([*self._cli, "ping"], capture_output=True).stdout != b"PONG\n":
            assert time.monotonic() < deadline, "redis-server did not start"
            time.sleep(0.02)

    def command(self, *words: str) -> bytes:
        return subprocess.run([*self._cli, *words], capture_output=True, check=True).stdout

    def stall(self) -> None:
        """Makes the server accept connections without ever answering."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def running_redis(*, keeps: bool = False, password: str = "") -> Iterator[RedisServer]:
    """A redis-server for a fixture; skips the test where there is none."""
    binary = shutil.which("redis-server")
    if binary is None or shutil.which("redis-cli") is None:
        import pytest  # noqa: PLC0415 - benchmarks use the rest without it

        pytest.skip("redis-server is not installed")
    with tempfile.TemporaryDirectory(prefix="hf-redis-") as directory:
        server = RedisServer(binary, Path(directory), keeps=keeps, password=password)
        try:
            yield server
        finally:
            server.kill()


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time


class Stores:
    """Opens stores of one kind on the same data, as another process or a restart would."""

    def __init__(self, place: Path | str, clock: Clock) -> None:
        self._place = place
        self._clock = clock
        self._made: list[EmbeddedStore | RedisStore] = []

    def make(self, *, quota: int = 2**30, ttl: float = 1000.0) -> EmbeddedStore | RedisStore:
        if isinstance(self._place, Path):
            store = EmbeddedStore(self._place, quota=quota, ttl=ttl, now=self._clock, patience=0.2)
        else:
            store = RedisStore(self._place, quota=quota, ttl=ttl, now=self._clock, timeout=5.0)
        self._made.append(store)
        return store

    def close(self) -> None:
        for store in self._made:
            store.close()
