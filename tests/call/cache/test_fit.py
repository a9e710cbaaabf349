"""What a message shows of an output, and that the whole of it is kept."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gripfast.call.cache import CAP, OutputCache, Store
from gripfast.messages import (
    DocumentPart,
    ImagePart,
    JsonResult,
    OutputRef,
    Part,
    PartsResult,
    TextPart,
    TextResult,
    ToolResult,
)

LINES = "".join(f"line {number}\n" for number in range(20_000))


class _Untouchable:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the store was touched: {name}")


UNTOUCHABLE = cast(Store, _Untouchable())


def marker(text: str) -> str:
    (line,) = [line for line in text.split("\n") if line.startswith("[output cut: ")]
    return line


@pytest.mark.anyio
@pytest.mark.parametrize(
    "result",
    [
        TextResult(""),
        TextResult("x" * CAP),
        TextResult("é" * (CAP // 2)),
        JsonResult({"a": 1}, '{"a":1}'),
        PartsResult((TextPart("a"), ImagePart(b"png", "image/png"))),
    ],
)
async def test_what_fits_passes_unchanged_and_touches_no_store(result: ToolResult) -> None:
    cache = OutputCache(UNTOUCHABLE)
    content = result.parts if isinstance(result, PartsResult) else result.text
    assert await cache.fit(result) == (content, None)


@pytest.mark.anyio
async def test_a_tool_that_bounds_itself_is_never_cut() -> None:
    text = json.dumps(list(range(50_000)))
    assert await OutputCache(UNTOUCHABLE).fit(JsonResult(None, text), output="bounded") == (text, None)


@pytest.mark.anyio
@pytest.mark.parametrize("extra", [1, 2])
async def test_one_byte_over_the_cap_is_cut(cache: OutputCache, extra: int) -> None:
    content, ref = await cache.fit(TextResult("é" * (CAP // 2) + "x" * extra))
    assert ref is not None
    assert isinstance(content, str)
    assert len(content.encode()) <= CAP


@pytest.mark.anyio
async def test_the_marker_says_what_is_shown_and_which_tools_read_the_rest(cache: OutputCache) -> None:
    content, ref = await cache.fit(TextResult(LINES))
    assert isinstance(content, str)
    assert ref is not None
    shown = content.split("\n")[:-1]
    assert shown == LINES.split("\n")[: len(shown)]
    assert marker(content) == (
        f"[output cut: lines 1-{len(shown)} of 20000 shown, 204.0 KiB in total; continue with "
        f'tool_output_cache(ref_id="{ref.id}", offset={len(shown)}), search with '
        f'tool_output_cache_grep(ref_id="{ref.id}", pattern=...)]'
    )
    following = await cache.window(ref.id, len(shown), 1)
    assert following.lines[0].text == f"line {len(shown)}"


@pytest.mark.anyio
async def test_the_marker_names_no_tool_that_the_session_does_not_have(store: Store) -> None:
    content, ref = await OutputCache(store).fit(TextResult(LINES))
    assert isinstance(content, str)
    assert ref is not None
    assert marker(content).endswith(f"KiB in total; the whole output is stored as {ref.id}]")


@pytest.mark.anyio
async def test_head_and_tail_with_the_marker_between(cache: OutputCache) -> None:
    content, ref = await cache.fit(TextResult(LINES), output="head-tail")
    assert isinstance(content, str)
    assert ref is not None
    head, _, tail = content.partition(marker(content) + "\n")
    assert LINES.startswith(head)
    assert LINES.endswith(tail)
    assert len(content.encode()) <= CAP
    numbers = re.match(r"\[output cut: lines (\d+)-(\d+) of 20000 not shown", marker(content))
    assert numbers is not None
    hidden = await cache.window(ref.id, int(numbers[1]) - 1, 1)
    assert hidden.lines[0].text == f"line {head.count(chr(10))}"
    assert int(numbers[2]) == 20_000 - tail.count("\n")


@pytest.mark.anyio
@pytest.mark.parametrize("output", ["cached", "head-tail"])
async def test_one_very_long_line_gives_a_clipped_view_of_whole_characters(cache: OutputCache, output: Any) -> None:
    content, ref = await cache.fit(TextResult("漢" * 100_000), output=output)
    assert isinstance(content, str)
    assert ref is not None
    assert "\ufffd" not in content
    assert content.count("漢") > 15_000
    assert "line 1 of 1" in marker(content)


@pytest.mark.anyio
async def test_a_short_line_before_a_long_one_does_not_hide_it(cache: OutputCache) -> None:
    content, _ = await cache.fit(TextResult("short\n" + "x" * 100_000))
    assert isinstance(content, str)
    assert content.count("x") > 60_000
    assert "lines 1-1 of 2 and the beginning of line 2 shown" in marker(content)


@pytest.mark.anyio
async def test_large_json_is_kept_as_the_same_json_with_an_element_a_line(cache: OutputCache) -> None:
    row: dict[str, Any] = {"text": 'a, "b", \\ [c]\n,é', "empty": [], "none": None}
    value = {"rows": [{**row, "n": n} for n in range(5_000)]}
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    content, ref = await cache.fit(JsonResult(value, text))
    assert isinstance(content, str)
    assert ref is not None
    (part,) = await cache.parts(ref.id)
    assert isinstance(part, TextPart)
    assert json.loads(part.text) == value
    assert part.text.replace("\n", "") == text
    assert ref.line_count == 20_000
    assert "of 20000 shown" in marker(content)


@pytest.mark.anyio
async def test_images_and_documents_stay_in_the_message_and_are_kept_in_full(cache: OutputCache) -> None:
    image = ImagePart(bytes(range(256)) * 1000, "image/png", 16, 9)
    document = DocumentPart(b"\n%PDF\n" * 1000, "application/pdf", "a.pdf")
    parts: tuple[Part, ...] = (TextPart("before\nnext"), image, TextPart(""), TextPart("after\n"), document)
    content, ref = await cache.fit(PartsResult(parts))
    assert content == parts
    assert ref is not None
    assert await cache.parts(ref.id) == parts
    window = await cache.window(ref.id)
    texts = ["before", "next", "[image image/png, 256000 bytes]", "after", "[document application/pdf, 6000 bytes]"]
    assert [line.text for line in window.lines] == texts
    assert window.parts == (image, document)
    assert (await cache.window(ref.id, 3)).parts == (document,)
    assert (await cache.grep(ref.id, "PDF")).matches == 0, "the bytes of a document are not lines"


@pytest.mark.anyio
async def test_the_texts_of_parts_share_the_cap(cache: OutputCache) -> None:
    image = ImagePart(b"png", "image/png")
    parts: tuple[Part, ...] = (TextPart("first\n"), image, TextPart(LINES), image, TextPart("last"))
    content, ref = await cache.fit(PartsResult(parts))
    assert ref is not None
    assert isinstance(content, tuple)
    assert [type(part) for part in content] == [TextPart, ImagePart, TextPart, ImagePart]
    cut = content[2]
    assert isinstance(cut, TextPart)
    texts = sum(len(part.text.encode()) for part in content if isinstance(part, TextPart))
    assert texts <= CAP
    offset = re.search(r"offset=(\d+)", marker(cut.text))
    assert offset is not None
    following = await cache.window(ref.id, int(offset[1]), 1)
    assert following.lines[0].text == f"line {cut.text.count(chr(10))}"
    assert await cache.parts(ref.id) == parts


@pytest.mark.anyio
async def test_an_output_that_was_streamed_keeps_its_ref_and_is_not_stored_again() -> None:
    ref = OutputRef("0" * 16, 1_000_000, 10)
    cache = OutputCache(UNTOUCHABLE)
    assert await cache.fit(TextResult("view", ref)) == ("view", ref)
    content, kept = await cache.fit(TextResult(LINES, ref))
    assert kept == ref
    assert isinstance(content, str)
    assert ref.id in marker(content)


@pytest.mark.anyio
async def test_without_a_store_the_answer_says_that_the_rest_was_not_kept() -> None:
    content, ref = await OutputCache().fit(TextResult(LINES))
    assert ref is None
    assert isinstance(content, str)
    assert "the rest was not stored: this session has no output cache" in marker(content)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pieces=st.lists(
        st.tuples(
            st.text("ab é漢😀\r\x00", max_size=20), st.sampled_from([1, 100, 5_000]), st.sampled_from(["", "\n"])
        ),
        max_size=6,
    ),
    output=st.sampled_from(["cached", "head-tail"]),
)
def test_any_text_fits_and_only_says_lines_that_are_there(
    store: Store, pieces: list[tuple[str, int, str]], output: Any
) -> None:
    text = "".join((line + end) * times for line, times, end in pieces)

    async def check() -> None:
        content, ref = await OutputCache(store).fit(TextResult(text), output=output)
        assert isinstance(content, str)
        assert len(content.encode()) <= CAP
        if ref is None:
            assert content == text
            return
        head, _, tail = content.partition(marker(content))
        assert text.startswith(head.removesuffix("\n"))
        assert text.endswith(tail.removeprefix("\n"))
        assert len(head.encode()) + len(tail.encode()) > CAP // 4
        assert ref.byte_size == len(text.encode())

    anyio.run(check)
