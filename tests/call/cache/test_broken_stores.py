"""A store that is full, read-only, locked, damaged or gone costs the cache: the answer arrives and says so."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from cache_stores import RedisServer
from gripfast.call.cache import OutputCache, Store
from gripfast.errors import NotFound, ToolError
from gripfast.host.stores.redis_store import RedisStore
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import ImagePart, Part, PartsResult, TextPart, TextResult, ToolMessage

pytestmark = pytest.mark.anyio

BIG = "".join(f"line {number}\n" for number in range(100_000))  # a file
SMALL = BIG[:100_000]  # a row


async def lost(store: Store, why: str) -> None:
    """Every way in gives its answer and the reason; none raises, none names a path."""
    cache = OutputCache(store, session="one")
    for text in (BIG, SMALL):
        content, ref = await cache.fit(TextResult(text))
        assert ref is None
        assert isinstance(content, str)
        assert content.startswith("line 0\nline 1\n")
        assert why in content.splitlines()[-1]
        assert not re.search("/tmp|/outputs-1|[.]sock", content.splitlines()[-1])
    sink = cache.sink()
    sink.write(BIG.encode())
    streamed = await sink.finish()
    assert streamed.ref is None
    assert streamed.text.startswith("line 0\n")
    assert streamed.text.endswith("line 99999\n")
    assert why in streamed.text
    image: tuple[Part, ...] = (TextPart("seen"), ImagePart(b"x" * 100_000, "image/png"))
    assert await cache.fit(PartsResult(image)) == (image, None)
    (trimmed, _) = cache.trim([ToolMessage("1", "Read", SMALL), ToolMessage("2", "Read", "new")], budget=1)
    assert str(trimmed.content).startswith(f"[tool output trimmed; not stored: {why}")


async def test_a_place_that_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    await lost(EmbeddedStore(tmp_path / "cache"), "the output cache failed: Not a directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_directory_that_may_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o500)
    await lost(EmbeddedStore(tmp_path / "cache"), "the output cache failed: Permission denied")


async def test_a_directory_of_someone_elses(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache" / "outputs-1").symlink_to(tmp_path / "elsewhere")
    await lost(
        EmbeddedStore(tmp_path / "cache"), "the output cache's directory is not a directory of this user's own"
    )
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_an_index_that_another_process_keeps_locked(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path, patience=0.1)
    await OutputCache(store).fit(TextResult(BIG))
    store.close()
    other = sqlite3.connect(tmp_path / "outputs-1" / "index.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        await lost(EmbeddedStore(tmp_path, patience=0.1), "the output cache failed: database is locked")
    finally:
        other.close()
    assert len(list((tmp_path / "outputs-1" / "files").iterdir())) == 1, "nothing half-written stays"


FULL_DISK = """
import resource, sys, asyncio
from pathlib import Path
from gripfast.call.cache import OutputCache
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import TextResult
store = EmbeddedStore(Path(sys.argv[1]))
small = "".join(f"line {n}\\n" for n in range(10_000))
big = small * 50
async def main():
    cache = OutputCache(store)
    _, before = await cache.fit(TextResult(small))
    assert before is not None
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
    content, ref = await cache.fit(TextResult(big))
    assert ref is None, "stored beyond the limit"
    assert "the rest was not stored: the output cache failed: File too large" in content, content[-300:]
    sink = cache.sink()
    for _ in range(20):
        sink.write(big.encode())
    streamed = await sink.finish()
    assert streamed.ref is None and "File too large" in streamed.text
    assert (await cache.window(before.id)).total == 10_000
asyncio.run(main())
store.close()
"""


def test_a_disk_that_fills_up_while_writing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], env=_environment(), capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    assert list((tmp_path / "outputs-1" / "files").iterdir()) == [], "half a file is left"


@pytest.mark.parametrize("damage", ["garbage", "zeros in the middle", "empty"])
async def test_a_damaged_index_is_made_anew_and_the_store_goes_on(tmp_path: Path, damage: str) -> None:
    store = EmbeddedStore(tmp_path)
    cache = OutputCache(store, session="one")
    refs = [(await cache.fit(TextResult(f"{number}\n{SMALL}")))[1] for number in range(10)]
    store.close()
    index = tmp_path / "outputs-1" / "index.db"
    data = index.read_bytes()
    broken = {"garbage": b"x" * 5000, "zeros in the middle": data[:4096] + bytes(len(data) - 4096), "empty": b""}
    index.write_bytes(broken[damage])
    cache = OutputCache(EmbeddedStore(tmp_path), session="one")
    for ref in refs:
        assert ref is not None
        with pytest.raises(ToolError):
            await cache.window(ref.id)
    _, again = await cache.fit(TextResult(BIG))
    if again is None:  # the damage was found only now
        _, again = await cache.fit(TextResult(BIG))
    assert again is not None
    assert (await cache.window(again.id)).total == 100_000


async def test_an_index_damaged_while_in_use_costs_one_answer_its_ref(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path)
    cache = OutputCache(store, session="one")
    await cache.fit(TextResult(SMALL))
    for name in ("index.db", "index.db-wal"):
        path = tmp_path / "outputs-1" / name
        with path.open("r+b") as file:
            file.write(b"\xff" * path.stat().st_size)
    contents = [await cache.fit(TextResult(f"{number}\n{BIG}")) for number in range(4)]
    assert all("line 0\nline 1\n" in str(content) for content, _ in contents)
    assert contents[-1][1] is not None, contents[-1][0][-300:]
    store.close()


@pytest.mark.parametrize("harm", ["removed", "cut", "grown"])
async def test_a_file_that_was_harmed_is_not_found_and_the_others_are(tmp_path: Path, harm: str) -> None:
    store = EmbeddedStore(tmp_path)
    cache = OutputCache(store, session="one")
    _, ref = await cache.fit(TextResult(BIG))
    (file,) = (tmp_path / "outputs-1" / "files").iterdir()
    _, other = await cache.fit(TextResult("other\n" + BIG))
    assert ref is not None
    assert other is not None
    if harm == "removed":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1] if harm == "cut" else file.read_bytes() + b"x")
    for call in (cache.window(ref.id), cache.grep(ref.id, "x"), cache.parts(ref.id)):
        with pytest.raises(NotFound, match="run the call again"):
            await call
    assert (await cache.window(other.id)).total == 100_001
    _, anew = await cache.fit(TextResult(BIG))
    assert anew is not None
    assert (await cache.window(anew.id)).total == 100_000, "a harmed file is no twin"
    store.close()


async def test_a_cache_directory_removed_while_in_use_costs_answers_their_refs(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "cache")
    cache = OutputCache(store, session="one")
    await cache.fit(TextResult(BIG))
    shutil.rmtree(tmp_path / "cache")
    content, _ = await cache.fit(TextResult("other\n" + BIG))
    assert str(content).startswith("other\nline 0\n")
    store.close()


async def test_no_redis_there(tmp_path: Path) -> None:
    await lost(RedisStore(f"unix://{tmp_path}/none.sock"), "the output cache failed: Redis can't be reached")


async def test_an_address_that_is_no_redis(tmp_path: Path) -> None:
    await lost(RedisStore("http:example"), "the output cache's address is not a Redis URL")


async def test_a_redis_that_goes_away_in_mid_stream_and_comes_back(own_redis: RedisServer) -> None:
    store = RedisStore(own_redis.url, timeout=2.0)
    cache = OutputCache(store, session="one")
    _, kept = await cache.fit(TextResult(BIG))
    assert kept is not None
    sink = cache.sink()
    sink.write(BIG.encode())
    own_redis.kill()
    sink.write(BIG.encode())
    streamed = await sink.finish()
    assert streamed.ref is None
    assert "the rest was not stored: the output cache failed: Redis can't be reached" in streamed.text
    assert streamed.text.endswith("line 99999\n")
    await lost(store, "the output cache failed: Redis can't be reached")
    with pytest.raises(ToolError, match="Redis can't be reached"):
        await cache.window(kept.id)
    own_redis.start()
    again = OutputCache(RedisStore(own_redis.url), session="one")
    _, ref = await again.fit(TextResult(BIG))
    assert ref is not None


@pytest.mark.parametrize("field", ["size", "created", "blob", None])
async def test_values_that_others_wrote_into_the_redis_are_an_error_in_words(
    own_redis: RedisServer, field: str | None
) -> None:
    cache = OutputCache(RedisStore(own_redis.url), session="one")
    _, ref = await cache.fit(TextResult(BIG))
    assert ref is not None
    key = next(word for word in own_redis.command("keys", "*out:*").decode().split() if ref.id in word)
    if field is None:
        own_redis.command("hdel", key, "size")
    else:
        own_redis.command("hset", key, field, "\udcff-no-number")
    with pytest.raises(ToolError):
        await cache.window(ref.id)


async def test_a_redis_that_is_full(own_redis: RedisServer) -> None:
    own_redis.command("config", "set", "maxmemory", "3mb")
    store = RedisStore(own_redis.url)
    content, ref = await OutputCache(store).fit(TextResult(BIG * 4))
    assert ref is None
    assert "the rest was not stored: the output cache failed: Redis is full" in str(content)


async def test_the_oldest_outputs_make_room_in_a_redis_that_is_full(own_redis: RedisServer) -> None:
    own_redis.command("config", "set", "maxmemory", "24mb")
    own_redis.command("config", "set", "maxmemory-policy", "noeviction")
    cache = OutputCache(RedisStore(own_redis.url), session="one")
    refs = [(await cache.fit(TextResult(f"{number}\n{BIG}")))[1] for number in range(40)]
    assert all(ref is not None for ref in refs), refs
    assert refs[-1] is not None and refs[0] is not None
    assert (await cache.window(refs[-1].id)).total > 100_000
    with pytest.raises(ToolError):
        await cache.window(refs[0].id)


async def test_a_redis_that_stops_answering_is_waited_for_once(
    own_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gripfast.host.stores.redis_link._PAUSE", 600.0)
    store = RedisStore(own_redis.url, timeout=0.3)
    own_redis.stall()
    with anyio.fail_after(30):
        await lost(store, "the output cache failed: Redis")
    own_redis.resume()
    content, _ = await OutputCache(store).fit(TextResult(BIG))
    assert "Redis does not answer" in str(content), "asked again at once"


async def test_a_redis_that_forgets_under_pressure_is_an_expired_ref(own_redis: RedisServer) -> None:
    cache = OutputCache(RedisStore(own_redis.url), session="one")
    _, ref = await cache.fit(TextResult(BIG))
    assert ref is not None
    (blob,) = own_redis.command("keys", "gripfast:1:blob:*").decode().split()
    own_redis.command("hdel", blob, "2")
    with pytest.raises(NotFound, match="has expired"):
        await cache.grep(ref.id, "line")
    own_redis.command("del", blob)
    with pytest.raises(NotFound, match="has expired"):
        await cache.window(ref.id)


def _environment() -> dict[str, str]:
    source = str(Path(__file__).parents[3] / "src")
    return {**os.environ, "PYTHONPATH": source}
