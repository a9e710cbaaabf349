"""tool_output_cache and tool_output_cache_grep through the session's own door."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gripfast.builtin.session import open_session
from gripfast.call.run import Session
from gripfast.framework.definition import tool
from gripfast.host.files.scope import Scope
from gripfast.host.stores.store import EmbeddedStore
from gripfast.messages import ImagePart, Part, TextPart

pytestmark = pytest.mark.anyio

IMAGE = ImagePart(b"\x89PNG" * 30_000, "image/png", 4, 4)


@tool
def count_up(lines: int) -> str:
    """Prints numbers."""
    return "".join(f"number {n}\n" for n in range(lines))


@tool
def one_line(size: int) -> str:
    """Prints one long line."""
    return "x" * size + "needle" + "y" * size


@tool
def coloured() -> str:
    """Prints in colour."""
    return "\x1b[31mred\x1b[0m\u202e 100%\n" * 10_000


@tool
def picture() -> list[Part]:
    """Shows a picture."""
    return [TextPart("a picture:"), IMAGE]


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    store = EmbeddedStore(tmp_path / "cache")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    scope = Scope.workspace(str(workspace))
    async with open_session(scope, tools=[count_up, one_line, coloured, picture], cache=store) as session:
        yield session
    store.close()


async def ref_of(session: Session, name: str, **arguments: int) -> str:
    message = await session.call(name, arguments)
    assert message.output_ref is not None, message.content
    return message.output_ref.id


async def test_a_window_is_numbered_like_read_and_says_how_to_go_on(session: Session) -> None:
    ref = await ref_of(session, "count_up", lines=20_000)
    message = await session.call("tool_output_cache", {"ref_id": ref, "offset": 9_999, "limit": 2})
    assert message.content == (
        " 10000\tnumber 9999\n 10001\tnumber 10000\n"
        f'[lines 10000-10001 of 20000; continue with tool_output_cache(ref_id="{ref}", offset=10001, limit=2)]'
    )
    assert message.output_ref is None


async def test_the_last_lines_need_no_last_word(session: Session) -> None:
    ref = await ref_of(session, "count_up", lines=20_000)
    message = await session.call("tool_output_cache", {"ref_id": ref, "offset": -2})
    assert message.content == " 19999\tnumber 19998\n 20000\tnumber 19999"


async def test_past_the_end_says_how_many_lines_there_are(session: Session) -> None:
    ref = await ref_of(session, "count_up", lines=20_000)
    message = await session.call("tool_output_cache", {"ref_id": ref, "offset": 10**30})
    assert not message.is_error
    assert "the output has 20000 lines" in message.text


async def test_all_windows_together_are_the_output(session: Session) -> None:
    ref = await ref_of(session, "count_up", lines=20_000)
    seen: list[str] = []
    while len(seen) < 20_000:
        message = await session.call("tool_output_cache", {"ref_id": ref, "offset": len(seen), "limit": 7_000})
        assert len(message.text.encode()) <= 64 * 1024
        seen += [line[7:] for line in message.text.split("\n") if "\t" in line]
    assert seen == [f"number {n}" for n in range(20_000)]


async def test_a_long_line_is_clipped_in_a_window_and_shown_around_the_match_in_a_search(session: Session) -> None:
    ref = await ref_of(session, "one_line", size=200_000)
    window = await session.call("tool_output_cache", {"ref_id": ref})
    assert window.text == (
        f"     1\t{'x' * 2000} [... 398006 more bytes]\n"
        f'[the rest of line 1: tool_output_cache(ref_id="{ref}", offset=0, line_offset=2000)]'
    )
    found = await session.call("tool_output_cache_grep", {"ref_id": ref, "pattern": "needle"})
    assert found.text.startswith("1:[199500 bytes cut] xxx")
    assert "needle" in found.text
    row, note = found.text.split("\n")
    assert row.endswith("yyy [198506 bytes cut]")
    assert note == f'[the rest of line 1: tool_output_cache(ref_id="{ref}", offset=0, line_offset=201500)]'


async def test_a_search_shows_context_groups_and_the_true_total(session: Session) -> None:
    ref = await ref_of(session, "count_up", lines=20_000)
    arguments = {"ref_id": ref, "pattern": r"number (100|102|19999)$", "regex": True, "before": 1, "after": 1}
    message = await session.call("tool_output_cache_grep", arguments)
    assert message.content == (
        "100-number 99\n101:number 100\n102-number 101\n103:number 102\n104-number 103\n"
        "--\n19999-number 19998\n20000:number 19999"
    )
    message = await session.call("tool_output_cache_grep", {"ref_id": ref, "pattern": "7", "max_matches": 2})
    assert message.content == (
        "8:number 7\n18:number 17\n[2 of 6878 matching lines; narrow the pattern, or read from a line number]"
    )


async def test_plain_text_is_not_a_regex(session: Session) -> None:
    ref = await ref_of(session, "count_up", lines=20_000)
    message = await session.call("tool_output_cache_grep", {"ref_id": ref, "pattern": "number .$"})
    assert message.content == "No line matches."


async def test_many_long_matches_stay_within_the_cap(session: Session) -> None:
    ref = await ref_of(session, "count_up", lines=20_000)
    arguments = {"ref_id": ref, "pattern": "number", "max_matches": 1000, "before": 100, "after": 100}
    message = await session.call("tool_output_cache_grep", arguments)
    assert len(message.text.encode()) <= 64 * 1024
    assert "of 20000 matching lines" in message.text.splitlines()[-1]


async def test_escapes_and_controls_stay_in_the_cache_and_out_of_the_answer(session: Session) -> None:
    ref = await ref_of(session, "coloured")
    window = await session.call("tool_output_cache", {"ref_id": ref, "limit": 1})
    assert window.text.startswith("     1\tred 100%")
    found = await session.call("tool_output_cache_grep", {"ref_id": ref, "pattern": "red", "max_matches": 1})
    assert found.text.startswith("1:red 100%")
    (stored,) = await session.cache.parts(ref)
    assert isinstance(stored, TextPart)
    assert stored.text.startswith("\x1b[31mred\x1b[0m\u202e 100%\n")


async def test_an_image_comes_back_with_the_line_it_stands_in(session: Session) -> None:
    ref = await ref_of(session, "picture")
    message = await session.call("tool_output_cache", {"ref_id": ref})
    assert message.content == (TextPart("     1\ta picture:\n     2\t[image image/png, 120000 bytes]"), IMAGE)
    first = await session.call("tool_output_cache", {"ref_id": ref, "limit": 1})
    assert isinstance(first.content, str)


async def test_an_unknown_ref_is_not_found(session: Session) -> None:
    for name, extra in (("tool_output_cache", {}), ("tool_output_cache_grep", {"pattern": "x"})):
        message = await session.call(name, {"ref_id": "0123456789abcdef", **extra})
        assert message.is_error
        assert message.error is not None
        assert message.error.code == "NOT_FOUND"


async def test_the_outputs_of_one_session_are_unknown_to_another(session: Session, tmp_path: Path) -> None:
    ref = await ref_of(session, "count_up", lines=20_000)
    store = EmbeddedStore(tmp_path / "cache")
    async with open_session(Scope.workspace(str(tmp_path / "workspace")), cache=store) as other:
        message = await other.call("tool_output_cache", {"ref_id": ref})
    store.close()
    assert message.error is not None
    assert message.error.code == "NOT_FOUND"


async def test_a_named_session_reads_its_outputs_after_a_restart(tmp_path: Path) -> None:
    refs: list[str] = []
    for start in (True, False):
        store = EmbeddedStore(tmp_path / "cache")
        scope = Scope.workspace(str(tmp_path))
        async with open_session(scope, tools=[count_up], cache=store, id="mine") as session:
            if start:
                refs.append(await ref_of(session, "count_up", lines=20_000))
            else:
                message = await session.call("tool_output_cache", {"ref_id": refs[0], "limit": 1})
                assert message.text.startswith("     1\tnumber 0")
        store.close()
    assert not (tmp_path / "workspace").exists()


@tool
def one_line_of(text: str, times: int) -> str:
    """Prints one long line of a text, and a short one."""
    return text * times + "\nlast"


@pytest.mark.parametrize("text", ["x", "aé日😀", "\u0301日"])
async def test_every_byte_of_a_cut_line_can_be_read_by_the_calls_the_notes_name(tmp_path: Path, text: str) -> None:
    store = EmbeddedStore(tmp_path / "cache")
    async with open_session(Scope.workspace(tmp_path), tools=[one_line_of], cache=store) as session:
        message = await session.call("one_line_of", {"text": text, "times": 90_000})
        seen, note = message.text.rsplit("\n[output cut", 1)
        while named := re.search(r"tool_output_cache\(ref_id=\"(\w+)\", offset=0, line_offset=(\d+)\)", note):
            arguments = {"ref_id": named[1], "offset": 0, "line_offset": int(named[2])}
            answer = (await session.call("tool_output_cache", arguments)).text
            assert len(answer.encode()) <= 64 * 1024
            row, note = (*answer.split("\n", 1), "")[:2]
            seen += re.sub(r"^     1\t\[after \d+ bytes\] | \[\.\.\. \d+ more bytes\]$", "", row)
        assert "offset=1)" in note
    store.close()
    assert seen == text * 90_000


async def test_an_answer_in_one_line_of_json_that_was_trimmed_can_be_read_whole(session: Session) -> None:
    messages = [await session.call("one_line", {"size": 4_000}) for _ in range(3)]
    trimmed = session.cache.trim(messages, budget=3_000)
    ref = trimmed[0].text.split("ref=")[1].rstrip("]")
    first = (await session.call("tool_output_cache", {"ref_id": ref})).text
    assert f'tool_output_cache(ref_id="{ref}", offset=0, line_offset=2000)' in first
    rest = (await session.call("tool_output_cache", {"ref_id": ref, "line_offset": 2000})).text
    assert rest == "     1\t[after 2000 bytes] " + messages[0].text[2000:]
