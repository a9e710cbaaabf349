"""The stores that the tests of the cache use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cache_stores import Clock, RedisServer, Stores, running_redis
from gripfast.builtin.tools import TOOLS
from gripfast.call.cache import OutputCache, Store


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    yield from running_redis()


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A store that a test may break."""
    yield from running_redis()


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
