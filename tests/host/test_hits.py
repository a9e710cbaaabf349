"""Reading what ripgrep prints: in pieces of any size, in bounded memory, the first hits by path."""

from __future__ import annotations

import itertools
import tracemalloc

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gripfast.host.search.hits import ChosenLines, FileHits, FirstHits, HitLine, HitReader, window

NAMES = st.text(st.sampled_from("ab/\n:-. 1"), min_size=1, max_size=8).map(lambda name: f"x{name}")
LINES = st.dictionaries(
    st.integers(1, 40), st.tuples(st.booleans(), st.text(st.sampled_from("ab:-1é\r "), max_size=12)), min_size=1
)
FILES = st.dictionaries(NAMES, LINES, max_size=8)


def printed(files: dict[str, dict[int, tuple[bool, str]]], between: bytes = b"\n") -> bytes:
    """As `rg --heading --null -n` prints them, in the order they are given."""
    blocks: list[bytes] = []
    for name, lines in files.items():
        body = "".join(f"{n}{':' if lines[n][0] else '-'}{lines[n][1]}\n" for n in sorted(lines))
        blocks.append(f"./{name}\0{body}".encode())
    return between.join(blocks)


def read(data: bytes, cuts: list[int], into: FirstHits) -> HitReader:
    reader = HitReader(into, context=True)
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        reader.feed(data[start:end])
    reader.close()
    return reader


@settings(max_examples=60)
@given(
    FILES,
    st.lists(st.integers(0, 10_000), max_size=6),
    st.integers(0, 12),
    st.integers(1, 12),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_any_pieces_give_the_window_that_a_naive_reader_gives(
    files: dict[str, dict[int, tuple[bool, str]]], cuts: list[int], offset: int, limit: int, between: bytes
) -> None:
    first = FirstHits(offset + limit, by_file=False)
    read(printed(files, between), cuts, first)
    shown = window(first.in_order(), offset, limit, before=0, after=0)
    matches = [
        (name, number, text.removesuffix("\r"))
        for name, lines in sorted(files.items(), key=lambda item: item[0].encode())
        for number, (is_match, text) in sorted(lines.items())
        if is_match
    ]
    assert [(hits.path, line.number, line.text) for hits in shown for line in hits.lines] == matches[
        offset : offset + limit
    ]
    assert first.matches == len(matches)
    assert first.files == len({name for name, _, _ in matches})


@settings(max_examples=150)
@given(FILES, st.lists(st.integers(0, 10_000), max_size=3), st.integers(0, 5), st.integers(1, 5), st.integers(1, 3))
@example({"x": {1: (True, ""), 2: (True, ""), 3: (False, "")}}, [], 0, 1, 2)
def test_a_window_with_context_does_not_depend_on_how_much_was_kept(
    files: dict[str, dict[int, tuple[bool, str]]], cuts: list[int], offset: int, limit: int, around: int
) -> None:
    just_enough = FirstHits(offset + limit, by_file=False, after=around)
    everything = FirstHits(10_000, by_file=False, after=around)
    read(printed(files), cuts, just_enough)
    read(printed(files), cuts, everything)
    a, b = (window(kept.in_order(), offset, limit, before=0, after=around) for kept in (just_enough, everything))
    assert a == b


@settings(max_examples=50)
@given(FILES, st.integers(1, 6))
def test_files_come_by_path_whatever_the_order_they_are_found_in(
    files: dict[str, dict[int, tuple[bool, str]]], room: int
) -> None:
    first = FirstHits(room, by_file=True)
    read(printed(files), [], first)
    matching = sorted((n for n in files if any(m for m, _ in files[n].values())), key=str.encode)
    assert [hits.path for hits in first.in_order()] == matching[:room]
    assert first.files == len(matching)


def test_a_binary_file_is_counted_and_the_files_around_it_are_whole() -> None:
    notice = b': binary file matches (found "\\0" byte around offset 7)\n'
    data = b"./a\x001:one\n\n./b" + notice + b"\n./c\x001:two\n./c" + notice + b"\n./d\x001:three\n"
    for size in (1, 3, 1000):
        first = FirstHits(100, by_file=False)
        reader = HitReader(first)
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
        reader.close()
        assert [hits.path for hits in first.in_order()] == ["a", "c", "d"]
        assert (first.matches, reader.binary_files) == (3, 2)


def test_memory_is_bounded_by_what_is_asked_for_not_by_what_is_found() -> None:
    tracemalloc.start()
    try:
        first = FirstHits(100, by_file=False)
        reader = HitReader(first)
        block = b"".join(b"%d:some text that matches\n" % n for n in range(1, 2000))
        for number in range(100, 0, -1):
            reader.feed(b"\n./dir/f%04d\0" % number + block)
        reader.close()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert first.matches == 100 * 1999
    assert [hits.path for hits in first.in_order()] == ["dir/f0001"]
    assert peak < 5_000_000


def test_a_line_of_any_length_is_cut_around_its_match_without_being_held() -> None:
    tracemalloc.start()
    try:
        chosen = ChosenLines({b"f": {7}})
        reader = HitReader(chosen, columns=True)
        reader.feed(b"./f\x007:20000001:")
        for _ in range(200):
            reader.feed(b"x" * 100_000)
        reader.feed(b"NEEDLE" + b"y" * 1_000_000 + b"\n8:1:z\n")
        reader.close()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    line = chosen.found["f", 7]
    assert "xNEEDLEy" in line.text and len(line.text) == 500
    assert line.cut_before + 500 + line.cut_after == 21_000_006
    assert peak < 3_000_000


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(0, 10), st.integers(1, 10), st.integers(0, 3))
def test_a_window_shows_its_matches_with_their_context_and_no_other_match(
    gaps: list[int], offset: int, limit: int, around: int
) -> None:
    numbers = [sum(gaps[: n + 1]) + n + 1 for n in range(len(gaps))]
    shown = {n for number in numbers for n in range(number - around, number + around + 1) if n > 0}
    lines = tuple(HitLine(n, n in numbers, "t") for n in sorted(shown | set(numbers)))
    found = window([FileHits("f", len(numbers), lines)], offset, limit, before=around, after=around)
    got = [line.number for hits in found for line in hits.lines if line.is_match]
    assert got == numbers[offset : offset + limit]
    near = {n for number in got for n in range(number - around, number + around + 1)}
    assert all(line.number in near for hits in found for line in hits.lines)
