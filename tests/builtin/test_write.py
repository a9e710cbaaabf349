"""Write, line by line of its contract."""

from __future__ import annotations

import os

import pytest

from builtin.conftest import Bench
from gripfast.builtin.rulesets import rule_set
from gripfast.builtin.session import open_session
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from gripfast.host.shell.sandbox import choose

pytestmark = pytest.mark.anyio


async def test_it_creates_and_says_so(bench: Bench) -> None:
    answer = await bench.ok("Write", file_path="new/deep/a.txt", content="één\ntwo")
    assert answer == "created `new/deep/a.txt`: 9 bytes, 2 lines"
    assert bench.bytes_of("new/deep/a.txt") == "één\ntwo".encode()


async def test_it_overwrites_what_was_read_and_counts_lines(bench: Bench) -> None:
    bench.put("a.txt", "one\ntwo\nthree\n")
    await bench.ok("Read", file_path="a.txt")
    answer = await bench.ok("Write", file_path="a.txt", content="one\n2\nthree\nfour\n")
    assert answer == "overwrote `a.txt`: 17 bytes, 2 lines added, 1 removed"
    again = await bench.ok("Write", file_path="a.txt", content="one\n2\nthree\nfour\n")
    assert "nothing was written" in again


async def test_what_was_not_read_or_has_changed_is_left_alone(bench: Bench) -> None:
    target = bench.put("a.txt", "theirs\n")
    assert "read it first" in await bench.fails("NOT_READ", "Write", file_path="a.txt", content="mine")
    await bench.ok("Read", file_path="a.txt")
    target.write_text("changed\n")
    assert "read it again" in await bench.fails("CONFLICT", "Write", file_path="a.txt", content="mine")
    assert bench.bytes_of("a.txt") == b"changed\n"
    await bench.ok("Read", file_path="a.txt", limit=1)
    await bench.ok("Write", file_path="a.txt", content="mine\n")
    await bench.ok("Write", file_path="a.txt", content="mine again\n")


async def test_another_session_must_read_for_itself(bench: Bench) -> None:
    bench.put("a.txt", "x\n")
    await bench.ok("Read", file_path="a.txt")
    async with open_session(Scope.workspace(bench.root)) as other:
        message = await other.call("Write", {"file_path": "a.txt", "content": "y"})
    assert message.error is not None and message.error.code == "NOT_READ"


async def test_the_guard_can_be_turned_off(bench: Bench) -> None:
    bench.put("a.txt", "x\n")
    async with open_session(Scope.workspace(bench.root), require_read=False) as session:
        message = await session.call("Write", {"file_path": "a.txt", "content": "y"})
    assert message.text.startswith("overwrote `a.txt`: 2 bytes, 1 line added, 1 removed; ")


async def test_a_new_file_in_a_configured_encoding_says_so(bench: Bench) -> None:
    async with open_session(ScopedFs(Scope.workspace(bench.root), encoding="latin-1")) as session:
        message = await session.call("Write", {"file_path": "a.txt", "content": "café\n"})
        plain = await session.call("Write", {"file_path": "b.txt", "content": "tea\n"})
    assert message.text == "created `a.txt`: 5 bytes, 1 line, in iso8859-1, the encoding that the user configured"
    assert plain.text == "created `b.txt`: 4 bytes, 1 line"
    assert bench.bytes_of("a.txt") == b"caf\xe9\n"


async def test_a_link_is_written_through_and_named(bench: Bench) -> None:
    os.symlink("real.txt", bench.root / "link.txt")
    answer = await bench.ok("Write", file_path="link.txt", content="x\n")
    assert answer == "created `link.txt` (in fact `real.txt`): 2 bytes, 1 line"
    assert (bench.root / "link.txt").is_symlink()


async def test_the_ways_of_a_file_survive(bench: Bench) -> None:
    bench.put("crlf.txt", b"\xef\xbb\xbfa\r\nb\r\nc")
    await bench.ok("Read", file_path="crlf.txt")
    assert "were kept" in await bench.ok("Write", file_path="crlf.txt", content="a\nB\nc\n")
    assert bench.bytes_of("crlf.txt") == b"\xef\xbb\xbfa\r\nB\r\nc"


async def test_a_file_of_unknown_encoding_is_not_overwritten(bench: Bench) -> None:
    bench.put("l1.txt", b"caf\xe9\n")
    await bench.ok("Read", file_path="l1.txt")
    await bench.fails("ENCODING", "Write", file_path="l1.txt", content="tea\n")
    assert bench.bytes_of("l1.txt") == b"caf\xe9\n"


async def test_places_that_are_closed_stay_closed(bench: Bench) -> None:
    for path in ("/etc/x", "../x", ".git/config", ".mcp.json"):
        await bench.fails("SANDBOX_VIOLATION", "Write", file_path=path, content="x")
    assert os.listdir(bench.root) == []


async def test_a_file_in_tmp_is_said_to_be_the_sessions_own(bench: Bench) -> None:
    if choose().level != "bwrap":
        pytest.skip("no bubblewrap here, so commands see the machine's /tmp")
    async with open_session(Scope.workspace(bench.root)) as session:
        answer = await session.call("Write", {"file_path": "/tmp/a.txt", "content": "x"})
        private = "/tmp is private to this session: the user can't see it"
        assert answer.text == f"created `/tmp/a.txt` ({private}): 1 byte, 1 line"
        assert "private" not in (await session.call("Write", {"file_path": "a.txt", "content": "x"})).text


async def test_a_refusal_by_the_read_only_rules_says_that_the_session_is_read_only(bench: Bench) -> None:
    async with open_session(Scope.workspace(bench.root), permissions=rule_set("read-only")) as session:
        for name, arguments in (("Write", {"file_path": "a", "content": "x"}), ("Bash", {"command": "touch a"})):
            answer = await session.call(name, arguments)
            assert answer.text.endswith("; this session is read-only"), answer.text


@pytest.mark.parametrize("tool", ["Write", "Edit"])
async def test_a_binary_file_is_never_said_to_need_reading_which_would_be_refused(bench: Bench, tool: str) -> None:
    bench.put("a.bin", b"\0\1ABC")
    new = {"content": "x"} if tool == "Write" else {"old_string": "ABC", "new_string": "X"}
    message = await bench.fails("BINARY_NOT_SUPPORTED", tool, file_path="a.bin", **new)
    assert "`a.bin` is binary: only text can be edited or overwritten" in message
    assert bench.bytes_of("a.bin") == b"\0\1ABC"
