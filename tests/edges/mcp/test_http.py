"""The server over HTTP, as a process: who gets in, who shares what, and how it ends."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import anyio
import pytest
import uvicorn
from anyio.abc import ByteStream
from pydantic import BaseModel
from starlette.responses import PlainTextResponse

from gripfast import DependencyKey, Depends, ToolCall, define_tool
from gripfast.call.run import run_call
from gripfast.clock import monotonic
from gripfast.edges.mcp import connections
from gripfast.edges.mcp.http import Readiness
from gripfast.edges.mcp.quotas import Quotas
from gripfast.edges.mcp.session_names import NAMED_HEADER
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.mcp.sharing import Sharing
from gripfast.edges.settings import SessionSettings
from gripfast.errors import Conflict
from gripfast.host.program.net import Address, listen
from gripfast.host.shell.sandbox import choose
from gripfast.host.stores.embedded_sessions import EmbeddedSessions
from gripfast.host.stores.store import EmbeddedStore
from http_server import HANG, INITIALIZE, SERVE, Server, token_file
from serving import text_of

TOOLS = """
import anyio, subprocess, sys
from typing import Annotated
from gripfast import DependencyKey, Depends, tool

NOTES = DependencyKey("notes", list, scope="session")

@tool
def note(text: str, notes: Annotated[list, Depends(NOTES)]) -> str:
    "Keeps a note for the session, and tells all of them."
    notes.append(text)
    return " ".join(notes)

@tool
async def wait_with_child(mark: str) -> str:
    "Starts a child that is killed when the call is."
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark])
    try:
        await anyio.sleep_forever()
    finally:
        child.kill()
        child.wait()
"""


def served(tmp_path: Path, *options: str) -> Iterator[Server]:
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    (root / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    with Server(root, tmp_path, *options, tools=TOOLS) as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from served(tmp_path_factory.mktemp("http"))


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    yield from served(tmp_path)


def test_with_the_token_a_client_gets_in(server: Server) -> None:
    assert server.request(body=INITIALIZE)[0] == 200


@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer wrong", "Basic {}", "Bearer {}x", "{}", "Bearer é"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_without_the_exact_token_nobody_gets_in(server: Server, authorization: str, method: str) -> None:
    given = authorization.format(server.token).encode().decode("latin-1")
    assert server.request(method, INITIALIZE, Authorization=given)[0] == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{}", ""]
)
def test_a_host_that_is_not_on_the_list_is_refused(server: Server, host: str) -> None:
    assert server.request(body=INITIALIZE, Host=host.format(server.port))[0] in (400, 421)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost", "file://", "http://127.0.0.1:1"]
)
def test_an_origin_that_is_not_on_the_list_is_refused(server: Server, origin: str) -> None:
    assert server.request(body=INITIALIZE, Origin=origin)[0] == 403


def test_an_origin_of_its_own_is_taken(server: Server) -> None:
    assert server.request(body=INITIALIZE, Origin=f"http://localhost:{server.port}")[0] == 200


@pytest.mark.parametrize("generation", ["", "2026-07-28"])
def test_the_newer_protocol_is_guarded_by_the_same_lists(server: Server, generation: str) -> None:
    headers = {"MCP_Protocol_Version": generation}
    status, text = server.request(body=INITIALIZE, Host="evil.example", **headers)
    assert status == 421 and "`evil.example` is not accepted; --allow-host or --url allows it" in text
    assert server.request(body=INITIALIZE, Origin="http://evil.example", **headers)[0] == 403
    assert server.request(body=INITIALIZE, Authorization="Bearer no", **headers)[0] == 401


BAD_REQUESTS: dict[str, tuple[bytes, dict[str, str], int]] = {
    "not json": (b"hello", {}, 400),
    "empty": (b"", {}, 400),
    "a batch": (b"[" + INITIALIZE + b"]", {}, 400),
    "nested deep": (b"[" * 100_000, {}, 400),
    "another content type": (INITIALIZE, {"Content-Type": "text/plain"}, 400),
    "no content type": (INITIALIZE, {"Content-Type": ""}, 400),
    "wants nothing we have": (INITIALIZE, {"Accept": "text/html"}, 406),
    "an unknown session": (INITIALIZE, {"Mcp-Session-Id": "no-such-session"}, 404),
    "too large": (b" " * (17 << 20), {}, 413),
    "a call before the handshake": (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {}, 400),
}


@pytest.mark.parametrize("kind", BAD_REQUESTS)
def test_a_bad_request_is_refused_with_its_own_status(server: Server, kind: str) -> None:
    body, headers, status = BAD_REQUESTS[kind]
    try:
        got = server.request(body=body, **headers)[0]
    except (BrokenPipeError, ConnectionResetError):  # refused before it had read what was sent
        got = 413
    assert got == status
    assert server.request(body=INITIALIZE)[0] == 200


def test_another_path_is_not_there(server: Server) -> None:
    assert server.request("GET", path="/")[0] == 404
    assert server.request("GET", path="/mcp/../etc/passwd")[0] == 404


def test_the_token_is_kept_in_a_file_only_its_owner_can_read(server: Server) -> None:
    kept = server.home / "gripfast" / "http-token"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert kept.read_text(encoding="ascii").strip() == server.token
    assert len(server.token) >= 32


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_of_either_generation_lists_and_calls(server: Server, mode: str) -> None:
    async with server.client(mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        answer = await client.call_tool("Read", {"file_path": "a.txt"})
    assert "Read" in names
    assert text_of(answer).startswith("     1\tone")


@pytest.mark.anyio
async def test_each_session_has_a_state_of_its_own(server: Server) -> None:
    async with server.client() as one, server.client() as other:
        await one.call_tool("note", {"text": "a"})
        mine = await one.call_tool("note", {"text": "b"})
        theirs = await other.call_tool("note", {"text": "c"})
    assert (text_of(mine), text_of(theirs)) == ("a b", "c")


@pytest.mark.anyio
async def test_in_the_newer_protocol_a_client_keeps_its_state_and_may_name_another(server: Server) -> None:
    async with server.client("2026-07-28") as one, server.client("2026-07-28", **{"Gripfast-Session": "x"}) as other:
        await one.call_tool("note", {"text": "a"})
        mine = await one.call_tool("note", {"text": "b"})
        theirs = await other.call_tool("note", {"text": "c"})
    assert (text_of(mine), text_of(theirs)) == ("a b", "c")


@pytest.mark.anyio
async def test_a_session_belongs_to_the_token_that_began_it(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ann aaaaaaaaaaaaaaaaaaaaaaaa\nbob bbbbbbbbbbbbbbbbbbbbbbbb\n", encoding="utf-8")
    tokens.chmod(0o600)
    for server in served(tmp_path, "--token-file", str(tokens)):
        ann, bob = "Bearer " + "a" * 24, "Bearer " + "b" * 24
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG)
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        connection.request("POST", "/mcp", INITIALIZE, {**headers, "Authorization": ann})
        session = connection.getresponse().headers["mcp-session-id"]
        connection.close()
        listing = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
        assert server.request(body=listing, Authorization=bob, Mcp_Session_Id=session)[0] == 404
        assert server.request(body=listing, Authorization=ann, Mcp_Session_Id=session)[0] == 200


def children_with(mark: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    return True
            except OSError:
                continue
    return False


async def until(said: Any) -> None:
    with anyio.fail_after(HANG):
        while not said():
            await anyio.sleep(0.05)


@pytest.mark.anyio
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_that_goes_away_in_mid_call_takes_its_work_with_it(server: Server, mode: str) -> None:
    mark = f"gone-{os.getpid()}-{mode}"
    async with server.client(mode) as client, anyio.create_task_group() as group:

        async def call() -> None:
            await client.call_tool("wait_with_child", {"mark": mark})

        group.start_soon(call)
        await until(lambda: children_with(mark))
        group.cancel_scope.cancel()
    await until(lambda: not children_with(mark))


@pytest.mark.anyio
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server_and_everything_it_started(own_server: Server, number: int) -> None:
    mark = f"ended-{os.getpid()}-{number}"
    async with own_server.client() as client, anyio.create_task_group() as group:
        group.start_soon(cut_short, client, mark)
        await until(lambda: children_with(mark))
        assert await anyio.to_thread.run_sync(own_server.end, number) == 0
    await until(lambda: not children_with(mark))


async def cut_short(client: Any, mark: str) -> None:
    """A call that its server's end cuts short, and whose client is told so."""
    result = await client.call_tool("wait_with_child", {"mark": mark})
    assert result.is_error and "was cut short" in text_of(result), result


@pytest.mark.anyio
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_screen_stays_clean_when_clients_are_there_at_the_end(own_server: Server, mode: str) -> None:
    mark = f"clean-{os.getpid()}-{mode}"
    async with own_server.client(mode) as idle, own_server.client(mode) as client:
        await idle.list_tools()
        async with anyio.create_task_group() as group:
            group.start_soon(cut_short, client, mark)
            await until(lambda: children_with(mark))
            assert await anyio.to_thread.run_sync(own_server.end, signal.SIGINT) == 0
    assert own_server.process.stderr is not None
    lines = own_server.process.stderr.read().splitlines()
    calls = [line for line in lines if " you wait_with_child CANCELLED " in line]
    assert "1 running call has 10 seconds to finish" in lines[0], lines
    assert len(calls) == 1 and len(lines) == 3 and lines[-1].endswith(" stopped"), lines


@pytest.mark.anyio
async def test_a_session_nobody_uses_is_closed(tmp_path: Path) -> None:
    for server in served(tmp_path, "--idle-minutes", "0.02"):
        async with server.client("2026-07-28", **{"Gripfast-Session": "x"}) as client:
            await client.call_tool("note", {"text": "a"})
            with anyio.fail_after(HANG):
                while text_of(await client.call_tool("note", {"text": "b"})) != "b":
                    await anyio.sleep(4)


def refused(tmp_path: Path, *options: str) -> str:
    done = subprocess.run(
        [*SERVE, *options],
        cwd=tmp_path, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)}, capture_output=True, text=True,
        timeout=HANG, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    return done.stderr


def test_what_would_be_open_to_others_does_not_start(tmp_path: Path) -> None:
    loose = tmp_path / "loose"
    loose.write_text("t" * 32, encoding="utf-8")
    loose.chmod(0o644)
    short = tmp_path / "short"
    short.write_text("abc", encoding="utf-8")
    short.chmod(0o600)
    assert "a token is required" in refused(tmp_path, "--http", "0.0.0.0:0", "--no-token", "--allow-host", "a:1")
    assert "--allow-host" in refused(tmp_path, "--http", "0.0.0.0:0")
    assert "chmod 600" in refused(tmp_path, "--http", "127.0.0.1:0", "--token-file", str(loose))
    assert "16 characters" in refused(tmp_path, "--http", "127.0.0.1:0", "--token-file", str(short))
    assert "not an address" in refused(tmp_path, "--http", "here")


# ---- what one client does never touches another ----

CLOSING_FAILS = """

class Falls:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        raise BaseException("closing fails")

FALLS = DependencyKey("falls", Falls, scope="session")

@tool
def hold(falls: Annotated[Falls, Depends(FALLS)]) -> str:
    "Holds what fails when it is closed."
    return "held"

@tool
async def interrupt(kind: str) -> str:
    "Raises what ends a program."
    raise getattr(builtins, kind)

@tool
def interrupt_in_thread(kind: str) -> str:
    "Raises what ends a program, in a thread."
    raise getattr(builtins, kind)

@tool
async def wait_for_file(path: str) -> str:
    "Waits until a file is there."
    while not os.path.exists(path):
        await anyio.sleep(0.02)
    return "there"
"""
TWO = "ann aaaaaaaaaaaaaaaaaaaaaaaa\nbob bbbbbbbbbbbbbbbbbbbbbbbb\n"
ANN, BOB = ({"Authorization": f"Bearer {letter * 24}"} for letter in "ab")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for two clients."""
    yield from serving_two(tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for a hundred clients, each of which may have 10 sessions and 5 open requests."""
    yield from serving_two(tmp_path_factory.mktemp("crowd"), others=98)


def serving_two(home: Path, *options: str, others: int = 0) -> Iterator[Server]:
    names = TWO + "".join(f"other{number} {number:024}\n" for number in range(others))
    tokens = token_file(home, names)
    (home / "more.py").write_text("import builtins, os\n" + TOOLS + CLOSING_FAILS, encoding="utf-8")
    (home / "project").mkdir()
    more = ["--with", str(home / "more.py"), "--token-file", str(tokens), "--rules", "none"]
    with Server(home / "project", home, *more, *options) as server:
        yield server


@pytest.mark.anyio
@pytest.mark.parametrize("end", ["idle", "deleted"])
async def test_a_session_whose_closing_fails_ends_alone(tmp_path: Path, end: str) -> None:
    for server in serving_two(tmp_path, *(("--idle-minutes", "0.01") if end == "idle" else ())):
        async with server.client(**ANN) as ann:
            assert text_of(await ann.call_tool("hold", {})) == "held"
        if end == "idle":
            async with server.client("2026-07-28", **ANN, **{"Gripfast-Session": "x"}) as ann:
                assert text_of(await ann.call_tool("hold", {})) == "held"
            assert server.process.stderr is not None
            while "closing a session failed" not in (line := server.process.stderr.readline()):
                assert line, "the server has ended"
        async with server.client(**BOB) as bob:
            assert text_of(await bob.call_tool("note", {"text": "on"})) == "on"
        assert server.process.poll() is None


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["interrupt", "interrupt_in_thread"])
@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "GeneratorExit", "SystemExit", "StopIteration"])
async def test_a_tool_that_raises_what_ends_programs_fails_alone(shared: Server, tool: str, kind: str) -> None:
    async with shared.client(**ANN) as ann:
        failed = await ann.call_tool(tool, {"kind": kind})
        assert failed.is_error
        assert "failed with" in text_of(failed)
        assert text_of(await ann.call_tool("note", {"text": "on"})) == "on"


def closed_by_server(connection: socket.socket) -> bool:
    connection.settimeout(HANG)
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_connections_that_send_no_request_keep_nobody_out_and_are_closed(shared: Server) -> None:
    first = socket.create_connection(("127.0.0.1", shared.port))
    first.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
    idle = [socket.create_connection(("127.0.0.1", shared.port)) for _ in range(300)]
    try:
        assert shared.request(body=INITIALIZE, **BOB)[0] == 200
        assert closed_by_server(first)  # the oldest goes at once, the others by their time
        assert shared.process.poll() is None
    finally:
        for connection in (first, *idle):
            connection.close()


@pytest.mark.anyio
async def test_a_request_that_trickles_in_is_closed_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    listening, address = listen(Address("127.0.0.1", 0))
    config = uvicorn.Config(
        PlainTextResponse("here"), http=connections.connections(), lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listening])
        stream = await anyio.connect_tcp(address.host, address.port)
        with anyio.fail_after(HANG), contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"200" in await stream.receive()
            group.start_soon(trickle, stream)
            while True:
                await stream.receive()
        await stream.aclose()
        server.should_exit = True


@pytest.mark.anyio
async def test_the_connection_that_has_waited_longest_makes_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1000.0)
    monkeypatch.setattr(connections, "MOST_WAITING", 2)
    listening, address = listen(Address("127.0.0.1", 0))
    config = uvicorn.Config(
        PlainTextResponse("here"), http=connections.connections(), lifespan="off", log_config=None
    )
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listening])
        streams = [await anyio.connect_tcp(address.host, address.port) for _ in range(3)]
        with anyio.fail_after(HANG):
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await streams[0].receive()
            await streams[2].send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"200" in await streams[2].receive()
        for stream in streams:
            await stream.aclose()
        server.should_exit = True


async def trickle(stream: ByteStream) -> None:
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await stream.send(b"G")
            await anyio.sleep(0.02)


@pytest.mark.anyio
async def test_sessions_that_a_client_never_closes_make_way_for_its_next_and_leave_others_alone(
    crowded: Server,
) -> None:
    async with crowded.client(**BOB) as bob:
        await bob.call_tool("note", {"text": "a"})
        ids = [session_of(crowded, ANN) for _ in range(15)]
        assert text_of(await bob.call_tool("note", {"text": "b"})) == "a b"
        ping = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode()
        statuses = [crowded.request(body=ping, **ANN, Mcp_Session_Id=id)[0] for id in ids]
        assert statuses == [404] * 5 + [200] * 10


def session_of(server: Server, who: dict[str, str]) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **who}
    connection.request("POST", "/mcp", INITIALIZE, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.headers["mcp-session-id"]


class Nothing(BaseModel):
    pass


def request_of(owner: str, name: str) -> Any:
    """What the server knows of a request in the newer protocol."""
    web = SimpleNamespace(scope={"user": SimpleNamespace(username=owner)}, headers={NAMED_HEADER: name})
    return SimpleNamespace(ctx=SimpleNamespace(request=web, protocol_version="2026-07-28"), client_name="test")


@pytest.mark.anyio
async def test_named_sessions_beyond_a_clients_share_close_its_oldest(tmp_path: Path) -> None:
    calls = DependencyKey[list[int]]("calls", list, scope="session")

    async def count(arguments: BaseModel, calls: Annotated[list[int], Depends(calls)]) -> str:
        calls.append(1)
        return str(len(calls))

    counting = define_tool(name="count", description="Counts the calls of a session.", input=Nothing, execute=count)

    settings = SessionSettings((str(tmp_path),), (counting,), rules="none")
    sessions = Sessions(settings, quotas=Quotas(2, sessions=6))
    texts: list[str] = []
    for owner, name in [("bob", "x"), *(("ann", f"{number}") for number in range(5)), ("ann", "0"), ("bob", "x")]:
        async with sessions.acquire(request_of(owner, name), monotonic()) as (_, session, _):
            message = await run_call(session, ToolCall("1", "count", {}))
            texts.append(f"{owner} {name} {message.text}")
    assert texts[-2:] == ["ann 0 1", "bob x 2"]
    assert len(sessions._clients) == 4  # pyright: ignore[reportPrivateUsage] - what is held
    await sessions.close()


@pytest.mark.anyio
async def test_the_time_to_answer_begins_with_the_call_and_not_when_its_session_is_open(tmp_path: Path) -> None:
    settings = SessionSettings((str(tmp_path),), rules="none", answer_within=3600)
    sharings = [
        Sharing(EmbeddedSessions(tmp_path / "store"), EmbeddedStore(tmp_path / "out"), name, most=9) for name in "ab"
    ]
    one, other = (Sessions(settings, sharing=sharing) for sharing in sharings)
    async with one.acquire(request_of("ann", "x"), monotonic()):
        with anyio.fail_after(HANG), pytest.raises(Conflict, match="busy"):
            async with other.acquire(request_of("ann", "x"), monotonic() - 4000):
                pytest.fail("another server has the session")
    for sessions, sharing in zip((one, other), sharings, strict=True):
        await sessions.close()
        await sharing.close()


@pytest.mark.anyio
async def test_a_client_with_many_calls_under_way_keeps_no_other_waiting(shared: Server, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    async with shared.client(**ANN) as ann, shared.client(**BOB) as bob, anyio.create_task_group() as group:
        for _ in range(80):
            group.start_soon(ann.call_tool, "wait_for_file", {"path": str(flag)})
        with anyio.fail_after(HANG):
            for number in range(5):
                await bob.call_tool("note", {"text": str(number)})
        flag.touch()


def test_requests_beyond_a_clients_share_are_refused_and_others_are_served(crowded: Server) -> None:
    head = (f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{crowded.port}\r\nAuthorization: {ANN['Authorization']}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            "Content-Length: 1000\r\n\r\n{")  # fmt: skip
    held: list[socket.socket] = []
    try:
        for _ in range(5):
            held.append(socket.create_connection(("127.0.0.1", crowded.port)))
            held[-1].sendall(head.encode())
        status = 0
        while status != 429:  # until the last of them has been seen
            status = crowded.request(body=INITIALIZE, **ANN)[0]
        assert crowded.request(body=INITIALIZE, **BOB)[0] == 200
    finally:
        for connection in held:
            connection.close()


def test_a_server_that_others_can_reach_has_no_console(tmp_path: Path) -> None:
    options = ["--http", "0.0.0.0:0", "--allow-host", "tools.example.org", "--log-format", "json"]
    with Server(tmp_path, tmp_path, *options) as server:
        assert "console" not in server.screen
        for path in ("/console", "/console/api/questions", "/console/events"):
            assert server.request("GET", path=path, Host="tools.example.org")[0] == 404


def test_health_and_readiness_need_no_token_and_name_nothing(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    with Server(root, home, "--root", str(root), tools="") as server:
        assert server.request("GET", path="/healthz", Authorization="") == (200, "ok\n")
        assert server.request("GET", path="/readyz", Authorization="") == (200, '{"ready":true}')
        root.rename(tmp_path / "moved")
        status, text = server.request("GET", path="/readyz", Authorization="")
        assert (status, json.loads(text)["ready"]) == (503, False)
        assert str(tmp_path) not in text
        assert server.request("GET", path="/healthz", Authorization="")[0] == 200


@pytest.mark.anyio
async def test_who_asks_at_the_same_time_shares_a_look_that_began_after_the_question() -> None:
    looks: list[int] = []
    is_looking, may_end = threading.Event(), threading.Event()

    def look() -> str:
        looks.append(len(looks))
        is_looking.set()
        assert may_end.wait(HANG)
        return f"look {len(looks)}"

    readiness = Readiness(look)
    found: list[str | None] = []

    async def ask() -> None:
        found.append(await readiness.fault())

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        assert await anyio.to_thread.run_sync(is_looking.wait, HANG)
        for _ in range(20):
            group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        may_end.set()
    assert found == ["look 1", *["look 2"] * 20]


def test_a_shared_store_that_does_not_answer_is_not_ready(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('store = "redis://127.0.0.1:1/0"\n', encoding="utf-8")
    assert (
        SessionSettings((str(tmp_path),), config_file=str(own)).fault()
        == "the shared store failed: Redis can't be reached"
    )
    assert SessionSettings((str(tmp_path),)).fault() is None


_AS_A_CLIENT = """
import sys, urllib.error, urllib.request
headers = {"Authorization": f"Bearer {sys.argv[2]}", "Content-Type": "application/json"}
headers["Accept"] = "application/json, text/event-stream"
try:
    print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], sys.argv[3].encode(), headers)).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="callers are looked up in Linux's /proc")
@pytest.mark.anyio
async def test_a_command_is_no_client_of_the_server_that_runs_it(tmp_path: Path) -> None:
    """It could find a token in a client's configuration, call a tool, and say yes to the question about it."""
    if choose("auto").level == "none":
        pytest.skip("no sandbox here")
    (tmp_path / "client.py").write_text(_AS_A_CLIENT)
    with Server(tmp_path, tmp_path, "--root", str(tmp_path)) as server:
        words = [server.url, server.token, INITIALIZE.decode()]
        async with server.client() as client:
            command = f"python3 client.py {shlex.join(words)}"
            answer = await client.call_tool("Bash", {"command": command})
        assert "403 an agent's commands may not use this server" in text_of(answer)
        done = subprocess.run([sys.executable, tmp_path / "client.py", *words], capture_output=True, text=True)
        assert done.stdout == "200\n"
