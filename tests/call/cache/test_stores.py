"""What every store does, run over the embedded one and over a real Redis."""

from __future__ import annotations

import secrets

import pytest

from cache_stores import Clock, Stores
from gripfast.call.cache import OutputCache, Store
from gripfast.errors import NotFound
from gripfast.messages import OutputRef, TextPart, TextResult

BIG = "".join(f"line {number} of a large output\n" for number in range(40_000))  # over a megabyte: a file, chunks
SMALL = "".join(f"row {number} of a small output\n" for number in range(4_000))  # under 256 KiB: a row, one chunk

pytestmark = pytest.mark.anyio


async def keep(cache: OutputCache, text: str) -> OutputRef:
    content, ref = await cache.fit(TextResult(text))
    assert ref is not None, content[-300:]
    return ref


async def whole(cache: OutputCache, ref_id: str) -> str:
    (part,) = await cache.parts(ref_id)
    assert isinstance(part, TextPart)
    return part.text


@pytest.mark.parametrize("text", [BIG, SMALL, "x" * 70_000, "é\r\n" * 100_000])
async def test_what_was_stored_comes_back_whole(cache: OutputCache, text: str) -> None:
    ref = await keep(cache, text)
    assert await whole(cache, ref.id) == text
    assert ref.byte_size == len(text.encode())
    assert ref.line_count == text.count("\n") + (not text.endswith("\n"))


async def test_outputs_survive_a_restart(stores: Stores) -> None:
    first = stores.make()
    refs = [await keep(OutputCache(first, session="one"), text) for text in (BIG, SMALL)]
    first.close()
    again = OutputCache(stores.make(), session="one")
    assert [await whole(again, ref.id) for ref in refs] == [BIG, SMALL]


async def test_another_session_cannot_read_a_ref_and_is_told_nothing_of_it(store: Store) -> None:
    ref = await keep(OutputCache(store, session="one"), BIG)
    with pytest.raises(NotFound) as foreign:
        await OutputCache(store, session="two").window(ref.id)
    with pytest.raises(NotFound) as unknown:
        await OutputCache(store, session="two").window("0" * 16)
    assert foreign.value.message.replace(ref.id, "0" * 16) == unknown.value.message


@pytest.mark.parametrize(
    "ref_id",
    [
        "",
        "nope",
        "0" * 16,
        "../../etc/passwd",
        "/etc/passwd",
        "x" * 1_000_000,
        "0" * 15 + "\n",
        "\0",
        "\ud800",
        "٠" * 16,
    ],
)
async def test_a_ref_that_is_none_is_not_found_and_the_answer_is_short(cache: OutputCache, ref_id: str) -> None:
    await keep(cache, SMALL)
    for call in (cache.window(ref_id), cache.grep(ref_id, "x"), cache.parts(ref_id)):
        with pytest.raises(NotFound, match="no output has the ref") as failure:
            await call
        assert len(failure.value.message) < 250


async def test_an_output_expires_after_its_time_and_says_so(stores: Stores, clock: Clock) -> None:
    cache = OutputCache(stores.make(ttl=100), session="one")
    ref = await keep(cache, BIG)
    clock.time += 99
    await cache.window(ref.id)
    clock.time += 2
    with pytest.raises(NotFound, match="has expired"):
        await cache.window(ref.id)


async def test_expired_is_still_told_from_unknown_after_collection(stores: Stores, clock: Clock) -> None:
    store = stores.make(ttl=100)
    cache = OutputCache(store, session="one")
    ref = await keep(cache, BIG)
    clock.time += 101
    store.collect()
    with pytest.raises(NotFound, match="has expired"):
        await cache.window(ref.id)
    with pytest.raises(NotFound, match="no output has the ref"):
        await OutputCache(store, session="two").window(ref.id)


async def test_over_quota_the_oldest_go_first(stores: Stores, clock: Clock) -> None:
    store = stores.make(quota=4_000_000)
    cache = OutputCache(store, session="one")
    refs: list[OutputRef] = []
    for number in range(6):
        refs.append(await keep(cache, f"{number}\n" + BIG))  # 1.2 MB each: three of them fit
        clock.time += 1
    store.collect()
    for ref in refs[:3]:
        with pytest.raises(NotFound, match="has expired"):
            await cache.window(ref.id)
    for ref in refs[3:]:
        assert (await cache.window(ref.id)).total == 40_001


async def test_equal_outputs_are_kept_once_and_read_under_both_refs(stores: Stores, clock: Clock) -> None:
    """Three times the same 1.2 MB are within a quota of 2 MB; so are three equal small ones."""
    store = stores.make(quota=2_000_000)
    refs: list[tuple[str, OutputRef, str]] = []
    for session in ("one", "two", "three"):
        for text in (BIG, SMALL):
            refs.append((session, await keep(OutputCache(store, session=session), text), text))
            clock.time += 1
    store.collect()
    for session, ref, text in refs:
        assert await whole(OutputCache(store, session=session), ref.id) == text


async def test_a_shared_content_lives_as_long_as_its_youngest_output(stores: Stores, clock: Clock) -> None:
    store = stores.make(ttl=100)
    old = await keep(OutputCache(store, session="one"), BIG)
    clock.time += 60
    young = await keep(OutputCache(store, session="two"), BIG)
    clock.time += 60
    store.collect()
    assert await whole(OutputCache(store, session="two"), young.id) == BIG
    with pytest.raises(NotFound, match="has expired"):
        await OutputCache(store, session="one").window(old.id)


async def test_outputs_of_one_length_head_and_tail_are_not_taken_for_equal(cache: OutputCache) -> None:
    other = BIG[:600_000] + "#" + BIG[600_001:]
    first, second = await keep(cache, BIG), await keep(cache, other)
    assert (await whole(cache, first.id), await whole(cache, second.id)) == (BIG, other)


async def test_an_output_larger_than_the_quota_is_said_to_be_lost(stores: Stores) -> None:
    cache = OutputCache(stores.make(quota=500_000), session="one")
    content, ref = await cache.fit(TextResult(BIG))
    assert ref is None
    assert isinstance(content, str)
    assert content.startswith("line 0 of")
    assert "the rest was not stored: the output cache holds no more than 500000 bytes" in content[-300:]


async def test_a_stream_that_is_given_up_leaves_nothing(stores: Stores, clock: Clock) -> None:
    store = stores.make(quota=3_000_000)
    cache = OutputCache(store, session="one")
    kept = await keep(cache, BIG)
    for _ in range(3):
        sink = cache.sink()
        sink.write(secrets.token_bytes(1_000_000))
        sink.abandon()
    clock.time += 1
    store.collect()
    assert await whole(cache, kept.id) == BIG
