"""The first answers come before the SDK is loaded, and are the SDK's own, word for word."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from gripfast.edges.early import EarlyAnswers, Opening
from gripfast.edges.mcp import stdio
from gripfast.edges.mcp.server import LARGEST_MESSAGE, server_of
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.profiles import PROFILES
from gripfast.edges.settings import read_settings
from gripfast.host.program import ready
from gripfast.host.program.first_lines import FirstLines
from gripfast.host.program.wire import Wire

HANG = 60
HEAVY = "[name for name in ('mcp', 'mcp_types', 'pydantic', 'click', 'asyncio') if name in sys.modules]"
SERVE = "from gripfast.edges.entry import run; run()"
ONLY_EARLY = f"import sys; from gripfast.edges import early; early.answer(sys.argv[1:]); sys.exit(str({HEAVY}))"


def line(method: str, params: dict[str, Any] | None = None, id: Any = None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    message |= {"params": params} if params is not None else {}
    return json.dumps(message | ({"id": id} if id is not None else {})).encode() + b"\n"


def handshake(version: str = "2025-06-18", client: str = "one") -> list[bytes]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": client, "version": "1"}}
    return [line("initialize", params, 1), line("notifications/initialized"), line("tools/list", {}, 2)]


def modern(version: str) -> list[bytes]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "one", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return [line("server/discover", {"_meta": meta}, 1), line("tools/list", {"_meta": meta}, 2)]


# ---- in this process ----


async def by_the_sdk(profile: str, lines: list[bytes], early: EarlyAnswers | None = None) -> list[Any]:
    """What the server writes to its client for these lines."""
    (source, sent), (received, sink) = os.pipe(), os.pipe()
    os.write(sent, b"".join(lines))
    os.close(sent)
    wire = Wire(source, sink, LARGEST_MESSAGE, early.pass_on() if early else b"")
    sessions = Sessions(read_settings(profile=profile))
    try:
        with anyio.fail_after(HANG):
            outgoing = stdio._Outgoing(wire, anyio.CancelScope(), early)  # pyright: ignore[reportPrivateUsage]
            incoming = stdio._Incoming(wire, outgoing)  # pyright: ignore[reportPrivateUsage]
            await stdio._serve(server_of(sessions), sessions, incoming, outgoing)  # pyright: ignore[reportPrivateUsage]
    finally:
        wire.close()
        os.close(source)
        os.close(sink)
        await sessions.close()
    with open(received, "rb") as answers:
        return sorted(map(json.loads, answers), key=lambda answer: str(answer["id"]))


def answered_early(early: EarlyAnswers, lines: list[bytes]) -> list[Any]:
    (source, sent), (received, sink) = os.pipe(), os.pipe()
    os.write(sent, b"".join(lines))
    early.start(source, sink)
    os.close(sent)
    rest = early.pass_on()
    os.close(sink)
    os.close(source)
    early.pass_on = lambda: rest  # type: ignore[method-assign]
    with open(received, "rb") as answers:
        return [json.loads(text) for text in answers]


CONVERSATIONS = [
    *((version, handshake(version)) for version in HANDSHAKE_PROTOCOL_VERSIONS),
    *((version, modern(version)) for version in MODERN_PROTOCOL_VERSIONS),
]


@pytest.mark.anyio
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(("version", "lines"), CONVERSATIONS, ids=[version for version, _ in CONVERSATIONS])
async def test_an_early_answer_is_the_sdks_own(profile: str, version: str, lines: list[bytes]) -> None:
    kept: dict[str, str] = {}
    first = await by_the_sdk(profile, lines, EarlyAnswers(b"learn", kept))
    assert [answer["id"] for answer in first] == [1, 2]
    assert first == await by_the_sdk(profile, lines)
    second = EarlyAnswers(b"given", kept)
    assert answered_early(second, lines) == first
    assert await by_the_sdk(profile, [], second) == []  # passed on to the SDK, whose answers are left out
    assert ready.load(b"given") is None


@pytest.mark.anyio
async def test_an_answer_that_is_no_longer_the_sdks_is_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    kept: dict[str, str] = {}
    lines = handshake()
    await by_the_sdk("lisp", lines, EarlyAnswers(b"stale", kept))
    assert ready.load(b"stale") is not None
    wrong = {key: text.replace("lisp", "list") for key, text in kept.items()}
    early = EarlyAnswers(b"stale", wrong)
    answered_early(early, lines)
    assert await by_the_sdk("lisp", [], early) == []
    assert ready.load(b"stale") is None
    assert "out of date" in capsys.readouterr().err


@pytest.mark.anyio
async def test_what_is_not_known_waits_for_the_sdk_and_nothing_is_lost() -> None:
    kept: dict[str, str] = {}
    await by_the_sdk("lisp", handshake(), EarlyAnswers(b"waits", kept))
    call = line("tools/call", {"name": "lisp-read-file", "arguments": {"path": "/nowhere.el"}}, 3)
    early = EarlyAnswers(b"waits", kept)
    lines = [
        *handshake(client="another name of the same kind"),
        line("ping", id=4),
        call,
        line("ping", id=5),
        b'{"half',
    ]
    assert [answer["id"] for answer in answered_early(early, lines)] == [1, 2]
    later = await by_the_sdk("lisp", [b'": 1}\n', line("tools/list", {}, 6)], early)
    assert {answer["id"] for answer in later if "result" in answer} == {3, 4, 5, 6}


@pytest.mark.parametrize(
    "lines",
    [
        [line("tools/list", {}, 1)],
        [line("ping", id=1)],
        [line("tools/call", {"name": "Read"}, 1)],
        [b"not json\n"],
        [b"[" * 100_000 + b"\n"],
        [b"x" * 2_000_000],
        [b'{"jsonrpc":"2.0","id":true,"method":"initialize","params":{}}\n'],
        [b'{"jsonrpc":"1.0","id":1,"method":"initialize"}\n'],
        [*handshake()[:1], b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}\n'],
    ],
)
def test_a_client_that_begins_in_another_way_gets_no_early_answer(lines: list[bytes]) -> None:
    opening, kept = Opening(), dict[str, str]()
    for text in handshake():
        found = opening.key_of(text)
        assert found is not None
        kept |= {found[0]: '{"early":true}'} if found[0] else {}
    early = EarlyAnswers(b"other", kept)
    (source, sent), (received, sink) = os.pipe(), os.pipe()
    os.set_blocking(sent, False)
    for text in lines:
        os.write(sent, text)
    early.start(source, sink)
    os.close(sent)
    passed_on = early.pass_on()
    os.close(sink)
    with open(received, "rb") as answers:
        assert len(answers.readlines()) == (1 if lines[0] == handshake()[0] else 0)
    with open(source, "rb") as rest:
        assert passed_on + rest.read() == b"".join(text[: 1 << 16] if len(text) > 1 << 16 else text for text in lines)


def test_thousands_of_messages_are_not_gathered() -> None:
    (source, sent), (received, sink) = os.pipe(), os.pipe()
    os.write(sent, line("ping", id=1) * 1000)
    front = FirstLines(lambda text: text + b"\n", source, sink)
    front.start()
    os.close(sent)
    rest = front.end()
    os.close(sink)
    with open(received, "rb") as answers:
        assert len(answers.readlines()) == 64
    assert rest == line("ping", id=1) * 936
    os.close(source)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(params=json_values, other=json_values, id=st.integers() | st.text(max_size=5))
def test_only_the_same_question_has_the_same_key(params: Any, other: Any, id: Any) -> None:
    message = {"jsonrpc": "2.0", "method": "tools/list"}
    one = Opening().key_of(json.dumps(message | {"id": 1, "params": params}).encode())
    same = Opening().key_of(json.dumps(message | {"id": id, "params": params}).encode())
    third = Opening().key_of(json.dumps(message | {"id": 1, "params": other}).encode())
    assert one is not None
    assert same == (one[0], id)
    assert third is not None
    assert (one[0] == third[0]) == (json.dumps(params, sort_keys=True) == json.dumps(other, sort_keys=True))


# ---- as a process ----


def started(
    code: str, root: Path, state: Path, *options: str, lines: list[bytes]
) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    command = [sys.executable, "-P", "-c", code, "serve", *options]
    return subprocess.run(
        command, input=b"".join(lines), cwd=root, env=environment, capture_output=True, timeout=HANG, check=False
    )


def entry_of(state: Path) -> Path:
    (entry,) = (state / "gripfast" / "ready").iterdir()
    return entry


def test_the_second_start_answers_before_anything_heavy_is_loaded(project: Path, tmp_path: Path) -> None:
    options = ("--root", str(project), "--profile", "lisp")
    slow = started(SERVE, project, tmp_path, *options, lines=handshake())
    fast = started(ONLY_EARLY, project, tmp_path, *options, lines=handshake())
    assert fast.stderr.strip() == b"[]"
    assert sorted(fast.stdout.splitlines()) == sorted(slow.stdout.splitlines())
    assert len(fast.stdout.splitlines()) == 2
    whole = started(SERVE, project, tmp_path, *options, lines=handshake())
    assert whole.stdout == fast.stdout


def test_an_entry_that_is_not_whole_or_not_private_is_not_used(project: Path, tmp_path: Path) -> None:
    options = ("--root", str(project), "--profile", "lisp")
    started(SERVE, project, tmp_path, *options, lines=handshake())
    entry = entry_of(tmp_path)
    good = entry.read_bytes()

    def early() -> bytes:
        return started(ONLY_EARLY, project, tmp_path, *options, lines=handshake()).stdout

    assert early()
    for bad in (b"", good[:-1], good.replace(b"lisp", b"list", 1), b"\0" * 100, good[good.find(b"\n") + 1 :]):
        entry.write_bytes(bad)
        assert early() == b""
    entry.write_bytes(good)
    entry.chmod(0o644)
    assert early() == b""
    entry.chmod(0o600)
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    assert early() == b""


def test_other_circumstances_have_no_entry(project: Path, tmp_path: Path) -> None:
    options = ("--root", str(project), "--profile", "lisp")
    settings = tmp_path / "own.toml"
    settings.write_text("", encoding="utf-8")

    def key(*more: str) -> bytes:
        return ready.circumstances(["serve", *options, *more])

    plain = key()
    assert key() == plain
    assert key("--rules", "none") != plain
    with_file = key("--config", str(settings))
    settings.write_text("[record]\n", encoding="utf-8")
    assert key("--config", str(settings)) != with_file
    (project / ".gripfast.toml").write_text("deny = ['x']\n", encoding="utf-8")
    assert key() != plain
    (project / ".gripfast.toml").unlink()
    os.mkfifo(project / ".gripfast.toml")
    assert key() != plain


@pytest.mark.parametrize("fault", ["moved", "broken"])
def test_a_root_that_went_bad_since_is_refused_before_any_answer(project: Path, tmp_path: Path, fault: str) -> None:
    options = ("--root", str(project), "--profile", "lisp")
    assert started(SERVE, tmp_path, tmp_path, *options, lines=handshake()).stdout
    if fault == "moved":
        project.rename(tmp_path / "moved")
    else:
        (project / ".gripfast.toml").write_text("nonsense", encoding="utf-8")
    refused = started(SERVE, tmp_path, tmp_path, *options, lines=handshake())
    assert (refused.returncode, refused.stdout) == (2, b"")


def test_a_page_is_printed_as_the_command_prints_it(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    look = f"import sys; from gripfast.edges.entry import run; run(); sys.exit(str({HEAVY}))"

    def printed(*arguments: str) -> tuple[bytes, bytes]:
        command = [sys.executable, "-P", "-c", look, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=HANG, check=False)
        return done.stdout, done.stderr.strip()

    for arguments in (("--help",), ("tools",), ("tools", "--cost"), ("call", "Read", "--help")):
        first, second = printed(*arguments), printed(*arguments)
        assert first == (second[0], b"")  # the command ends with code 0 before the look
        assert second[1] == b"[]"
        assert first[0]
    failed = printed("tools", "--profile", "nothing")
    assert failed == printed("tools", "--profile", "nothing")
    assert b"--profile" in failed[1]
