"""Windows and searches of stored outputs, held against a naive model, over both stores."""

from __future__ import annotations

import re

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cache_stores import Stores
from gripfast.call.cache import OutputCache, Store
from gripfast.errors import InvalidArgument, InvalidRegex
from gripfast.messages import TextResult

PROPERTY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
# Lines that matter: empty, CR at odd places, long ones, other scripts, and blocks of many.
LINE = st.one_of(
    st.sampled_from(
        ["", "\r", "a\rb", "needle", "a needle here", "é" * 1999, "é" * 2000, "漢" * 2001, "x" * 300_000]
    ),
    st.text("ab-:1 \té漢😀", max_size=12),
)
CHUNK = st.tuples(LINE, st.sampled_from([1, 1, 1, 2, 50, 3000]), st.sampled_from(["\n", "\r\n"]))


def text_of(chunks: list[tuple[str, int, str]], end: str) -> str:
    return (
        "".join(f"{line}{ending}" * min(count, 1 + 2_000_000 // (len(line) + 1)) for line, count, ending in chunks)
        + end
    )


def model_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
        return [line.removesuffix("\r") for line in lines]
    return [line.removesuffix("\r") for line in lines]


async def stored(store: Store, text: str) -> tuple[OutputCache, str]:
    cache = OutputCache(store, session="one")
    sink = cache.sink(room=0)
    data = text.encode()
    for start in range(0, len(data), 100_000):
        await sink.feed(data[start : start + 100_000])
    ref = (await sink.finish()).ref
    assert ref is not None
    return cache, ref.id


@PROPERTY
@given(
    chunks=st.lists(CHUNK, min_size=1, max_size=6),
    end=st.sampled_from(["", "last", "last\r"]),
    offset=st.integers(-50, 4000),
    limit=st.integers(1, 400),
)
def test_a_window_is_the_slice_of_the_lines(
    store: Store, chunks: list[tuple[str, int, str]], end: str, offset: int, limit: int
) -> None:
    text = text_of(chunks, end)

    async def check() -> None:
        cache, ref = await stored(store, text)
        window = await cache.window(ref, offset, limit)
        lines = model_lines(text)
        first = max(0, len(lines) + offset) if offset < 0 else offset
        expected = lines[first : first + limit]
        assert window.total == len(lines)
        assert [line.text for line in window.lines] == [line[:2000] for line in expected][: len(window.lines)]
        assert [line.number for line in window.lines] == list(range(first + 1, first + 1 + len(window.lines)))
        for line, full in zip(window.lines, expected, strict=False):
            cut = len(full.encode()) - len(line.text.encode())
            assert line.cut in ((cut, cut + 1) if len(full) > 2000 else (0,)), "the CR of a line end counts"
        shown = sum(len(line.text.encode()) for line in window.lines)
        assert shown <= 64 * 1024
        if len(window.lines) < len(expected):
            assert shown + len(expected[len(window.lines)][:2000].encode()) > 40 * 1024

    anyio.run(check)


@PROPERTY
@given(
    chunks=st.lists(CHUNK, min_size=1, max_size=6),
    end=st.sampled_from(["", "needle", "-"]),
    pattern=st.sampled_from(["needle", "a", "-", ":", "é", "漢漢", "1-", r"[ab]+\s", "(a|b)-", r"n\w+e h", "a.b"]),
    regex=st.booleans(),
    before=st.integers(0, 3),
    after=st.integers(0, 3),
    max_matches=st.integers(1, 30),
)
def test_a_search_finds_what_a_loop_over_the_lines_finds(
    store: Store,
    chunks: list[tuple[str, int, str]],
    end: str,
    pattern: str,
    regex: bool,
    before: int,
    after: int,
    max_matches: int,
) -> None:
    text = text_of(chunks, end)
    lines = model_lines(text)
    wanted = re.compile(pattern if regex else re.escape(pattern))
    # ripgrep's line end in regexes is CR LF, so "." does not stand for a CR
    hits = [at for at, line in enumerate(lines) if any(wanted.search(piece) for piece in re.split("\r", line))]

    async def check() -> None:
        cache, ref = await stored(store, text)
        found = await cache.grep(ref, pattern, regex=regex, before=before, after=after, max_matches=max_matches)
        assert found.matches == len(hits)
        matched = [hit.number for hit in found.hits if hit.is_match]
        assert matched == [at + 1 for at in hits[:max_matches]][: len(matched)]
        numbers = [hit.number for hit in found.hits]
        assert numbers == sorted(set(numbers))
        for hit in found.hits:
            number, is_match = hit.number, hit.is_match
            line = lines[number - 1]
            assert hit.text == line or (len(line.encode()) > 2000 and "bytes cut]" in hit.text)
            near = [at for at in hits[:max_matches] if -after <= at - (number - 1) <= before]
            assert near, "a row that is neither a match nor near one"
            assert is_match or number - 1 not in hits[:max_matches]
        if sum(len(hit.text.encode()) for hit in found.hits) < 200_000:
            around = {n for at in hits[:max_matches] for n in range(at - before, at + after + 1)}
            expected = {n + 1 for n in around if 0 <= n < len(lines)}
            beyond = {at + 1 for at in hits[max_matches:]}
            assert expected - beyond <= set(numbers) <= expected

    anyio.run(check)


@pytest.fixture
async def numbered(cache: OutputCache) -> tuple[OutputCache, str]:
    _, ref = await cache.fit(TextResult("".join(f"entry {n}\r\n" for n in range(50_000))))
    assert ref is not None
    return cache, ref.id


@pytest.mark.anyio
@pytest.mark.parametrize("pattern", ["(", "[a", r"a{1000}{1000}{1000}", "*", r"(?<=a)b", "x{2,1}"])
async def test_a_bad_regex_is_refused_in_the_engines_words(numbered: tuple[OutputCache, str], pattern: str) -> None:
    cache, ref = numbered
    with pytest.raises(InvalidRegex, match="can't be used") as failure:
        await cache.grep(ref, pattern, regex=True)
    assert pattern in failure.value.message
    assert len(failure.value.message) < 600 and "PCRE" not in failure.value.message


@pytest.mark.anyio
@pytest.mark.parametrize("pattern", ["", "a\nb", "a\0b", "\ud800", "x" * 1_000_000])
async def test_a_pattern_that_no_line_could_have_is_refused(numbered: tuple[OutputCache, str], pattern: str) -> None:
    cache, ref = numbered
    with pytest.raises(InvalidArgument, match="pattern"):
        await cache.grep(ref, pattern)


@pytest.mark.anyio
@pytest.mark.parametrize("pattern", [r"(e+)+\d$", r"(.*)*x", r"(x+x+)+y", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
async def test_patterns_that_explode_elsewhere_end(cache: OutputCache, pattern: str) -> None:
    _, ref = await cache.fit(TextResult("x" * 50 + "\n" + "e" * 100_000))
    assert ref is not None
    with anyio.fail_after(60):
        found = await cache.grep(ref.id, pattern, regex=True)
    assert not found.timed_out


@pytest.mark.anyio
async def test_a_dollar_matches_before_a_crlf(numbered: tuple[OutputCache, str]) -> None:
    cache, ref = numbered
    found = await cache.grep(ref, r"entry 4999\d$", regex=True)
    assert [hit.text for hit in found.hits] == [f"entry 4999{n}" for n in range(10)]


@pytest.mark.anyio
@pytest.mark.parametrize("regex", [False, True])
async def test_dashes_and_options_are_patterns(stores: Stores, regex: bool) -> None:
    patterns = ("--version", "-e", "--", "--pre=id", "-n", "--files", "-")
    cache, ref = await stored(stores.make(), "".join(f"<{pattern}>\n" for pattern in patterns))
    for pattern in patterns:
        hits = [hit.text for hit in (await cache.grep(ref, pattern, regex=regex)).hits]
        assert hits == [f"<{text}>" for text in patterns if pattern in text]


@pytest.mark.anyio
async def test_a_line_of_many_megabytes_is_shown_clipped_and_searched_in_pieces(stores: Stores) -> None:
    line = "a" * 3_000_000 + "needle" + "b" * 7_000_000
    cache, ref = await stored(stores.make(), f"first\n{line}\nlast needle\n")
    window = await cache.window(ref)
    assert [item.text[:10] for item in window.lines] == ["first", "a" * 10, "last needl"]
    assert window.lines[1].cut == len(line) - 2000
    found = await cache.grep(ref, "needle", after=1)
    assert [hit.number for hit in found.hits if hit.is_match] == [2, 3]
    assert all("needle" in hit.text and len(hit.text) < 2100 for hit in found.hits if hit.is_match)


@pytest.mark.anyio
async def test_nul_bytes_and_broken_utf8_are_searched_like_any_others(cache: OutputCache) -> None:
    sink = cache.sink(room=0)
    sink.write(b"\xff\xfea\0 needle\n\xc3 needle \xe2\x82\nother\n")
    ref = (await sink.finish()).ref
    assert ref is not None
    found = await cache.grep(ref.id, "needle")
    assert [hit.number for hit in found.hits] == [1, 2]
    assert [line.text for line in (await cache.window(ref.id)).lines][2] == "other"
    assert "\ufffd needle" in (await cache.window(ref.id)).lines[1].text


@pytest.mark.anyio
async def test_giving_up_ends_the_search(stores: Stores) -> None:
    cache, ref = await stored(stores.make(), "x" * 79 + "\n")
    with anyio.move_on_after(0) as scope:
        await cache.grep(ref, "x")
    assert scope.cancelled_caught
