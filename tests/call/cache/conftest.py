"""The stores that the tests of the cache use."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cache_stores import Clock, RedisServer, Stores
from gripfast.builtin.tools import TOOLS
from gripfast.call.cache import OutputCache, Store


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    yield from _redis()


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A store that a test may break."""
    yield from _redis()


def _redis() -> Iterator[RedisServer]:
    binary = shutil.which("redis-server")
    if binary is None or shutil.which("redis-cli") is None:
        pytest.skip("redis-server is not installed")
    with tempfile.TemporaryDirectory(prefix="hf-redis-") as directory:
        server = RedisServer(binary, Path(directory))
        yield server
        server.kill()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["embedded", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Stores]:
    if request.param == "embedded":
        stores = Stores(tmp_path / "cache", clock)
    else:
        server: RedisServer = request.getfixturevalue("shared_redis")
        server.command("flushall")
        stores = Stores(server.url, clock)
    yield stores
    stores.close()


@pytest.fixture
def store(stores: Stores) -> Store:
    return stores.make()


@pytest.fixture
def cache(store: Store) -> OutputCache:
    made = OutputCache(store, session="one")
    made.read_with(TOOLS)
    return made
