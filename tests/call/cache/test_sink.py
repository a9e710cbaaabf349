"""Streams into the cache: from threads and the loop, in bounded memory, and whole."""

from __future__ import annotations

import sys
import threading
from typing import cast

import anyio
import pytest
from anyio import to_thread
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gripfast.call.cache import CAP, OutputCache, Store
from gripfast.errors import Internal
from gripfast.messages import TextPart


async def kept(cache: OutputCache, ref_id: str) -> str:
    (part,) = await cache.parts(ref_id)
    assert isinstance(part, TextPart)
    return part.text


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(
        st.tuples(st.sampled_from([b"", b"a\n", b"\n", "é漢\r\n".encode(), b"x" * 70_000]), st.integers(1, 3000)),
        max_size=8,
    ),
    from_loop=st.booleans(),
)
def test_however_it_is_cut_a_stream_is_kept_whole(
    store: Store, pieces: list[tuple[bytes, int]], from_loop: bool
) -> None:
    chunks = [piece * min(times, 1 + 700_000 // (len(piece) + 1)) for piece, times in pieces]
    data = b"".join(chunks)

    async def check() -> None:
        cache = OutputCache(store)
        sink = cache.sink()
        for chunk in chunks:
            await sink.feed(chunk) if from_loop else sink.write(chunk)
        streamed = await sink.finish()
        text = data.decode()
        assert streamed.size == len(data)
        assert streamed.lines == text.count("\n") + (text != "" and not text.endswith("\n"))
        assert len(streamed.text.encode()) <= CAP - 4096 or streamed.ref is None
        if streamed.ref is None:
            assert streamed.text == text
        else:
            assert await kept(cache, streamed.ref.id) == text

    anyio.run(check)


@pytest.mark.anyio
async def test_two_threads_and_the_loop_write_one_stream_and_nothing_is_lost(
    cache: OutputCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gripfast.call.cache.sink.FLUSH", 4_000)  # so that blocks fill up while others write
    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    sink = cache.sink()

    def produce(name: bytes) -> None:
        for number in range(20_000):
            sink.write(b"%s %05d\n" % (name, number))

    async with anyio.create_task_group() as group:
        group.start_soon(to_thread.run_sync, produce, b"out")
        group.start_soon(to_thread.run_sync, produce, b"err")
        for number in range(5_000):
            await sink.feed(b"loop %05d\n" % number)
    sys.setswitchinterval(switching)
    streamed = await sink.finish()
    assert streamed.ref is not None
    lines = (await kept(cache, streamed.ref.id)).splitlines()
    for name, count in (("out", 20_000), ("err", 20_000), ("loop", 5_000)):
        assert [line for line in lines if line.startswith(name)] == [f"{name} {n:05d}" for n in range(count)]


@pytest.mark.anyio
async def test_a_stream_can_be_read_while_it_runs(cache: OutputCache) -> None:
    sink = cache.sink()
    data = b"".join(b"line %d\n" % number for number in range(60_000))
    for start in range(0, len(data), 7_000):
        sink.write(data[start : start + 7_000])
        assert sink.read(max(0, start - 50), 10) == data[max(0, start - 50) :][:10]
    seen = b""
    while piece := sink.read(len(seen), 50_000):
        seen += piece
    assert seen == data
    sink.abandon()


@pytest.mark.anyio
async def test_past_its_limit_a_stream_keeps_the_beginning_shows_the_end_and_says_so(cache: OutputCache) -> None:
    sink = cache.sink(limit=300_000)
    for number in range(60_000):
        sink.write(b"line %05d\n" % number)
    streamed = await sink.finish()
    assert streamed.ref is not None
    assert (streamed.ref.byte_size, streamed.ref.line_count) == (300_000, 27_273)
    assert (streamed.size, streamed.lines) == (660_000, 60_000)
    assert "only the first 293.0 KiB were stored" in streamed.text
    assert streamed.text.endswith("line 59999\n")
    window = await cache.window(streamed.ref.id, -2)
    assert [line.text for line in window.lines] == ["line 27271", "line 272"]


@pytest.mark.anyio
async def test_a_character_split_between_two_writes_is_whole(cache: OutputCache) -> None:
    sink = cache.sink()
    for byte in "漢字é😀".encode():
        sink.write(bytes([byte]))
    assert (await sink.finish()).text == "漢字é😀"


class Failing:
    """A store that takes `good` writes and then no more, as a disk that fills up."""

    def __init__(self, good: int) -> None:
        self.good = good
        self.abandoned = threading.Event()

    def writer(self, session: str) -> Failing:
        return self

    def write(self, data: object) -> None:
        self.good -= 1
        if self.good < 0:
            raise Internal("the output cache failed: No space left on device")

    def commit(self, card: bytes) -> str:
        raise OSError(28, "No space left on device", "/home/someone/.cache/secret")

    def abandon(self) -> None:
        self.abandoned.set()

    def __getattr__(self, name: str) -> object:
        raise AssertionError(name)


@pytest.mark.anyio
@pytest.mark.parametrize("good", [0, 1, 100])
async def test_a_store_that_fails_in_mid_stream_costs_the_ref_and_not_the_view(good: int) -> None:
    store = Failing(good)
    sink = OutputCache(cast(Store, store)).sink()
    for number in range(100_000):
        sink.write(b"line %d\n" % number)
    streamed = await sink.finish()
    assert streamed.ref is None
    assert streamed.text.startswith("line 0\n")
    assert streamed.text.endswith("line 99999\n")
    assert "the rest was not stored: the output cache failed: No space left on device;" in streamed.text
    assert "secret" not in streamed.text
    assert store.abandoned.is_set()
    assert sink.read(0, 6) == b"line 0"
