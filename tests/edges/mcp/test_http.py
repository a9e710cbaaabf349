"""The server over HTTP, as a process: who gets in, who shares what, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

HANG = 60
SERVE = [sys.executable, "-m", "gripfast", "serve"]
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


class Server:
    def __init__(self, root: Path, home: Path, *options: str) -> None:
        (home / "mine.py").write_text(TOOLS, encoding="utf-8")
        self.home = home
        self.process = subprocess.Popen(
            [*SERVE, "--http", "127.0.0.1:0", "--with", str(home / "mine.py"), *options],
            cwd=root, env={**os.environ, "XDG_STATE_HOME": str(home)}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stderr is not None
        self.screen = ""
        while "Ctrl-C" not in self.screen:
            line = self.process.stderr.readline()
            assert line, self.screen
            self.screen += line
        self.url = self.screen.split(" tools at ")[1].split()[0]
        self.port = int(self.url.split(":")[2].split("/")[0])
        self.token = self.screen.split("token  ")[1].split()[0]

    def request(
        self, method: str = "POST", body: bytes | None = None, path: str = "/mcp", **headers: str
    ) -> tuple[int, str]:
        sent = {
            "Host": f"127.0.0.1:{self.port}",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        } | {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body or b"")))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    @asynccontextmanager
    async def client(self, mode: Any = "legacy", **headers: str) -> AsyncGenerator[Client]:
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        async with (
            httpx2.AsyncClient(headers=sent, timeout=HANG) as web,
            Client(streamable_http_client(self.url, http_client=web), mode=mode) as client,
        ):
            yield client

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(HANG)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


def served(tmp_path: Path, *options: str) -> Iterator[Server]:
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    (root / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    server = Server(root, tmp_path, *options)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from served(tmp_path_factory.mktemp("http"))


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    yield from served(tmp_path)


HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}}  # fmt: skip
INITIALIZE = json.dumps(HELLO).encode()


def text_of(result: CallToolResult) -> str:
    assert isinstance(result.content[0], TextContent)
    return result.content[0].text


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
    assert server.request(body=INITIALIZE, Host="evil.example", **headers)[0] == 421
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
    with pytest.raises(BaseException):  # noqa: B017 - however the client notices
        async with own_server.client() as client, anyio.create_task_group() as group:

            async def call() -> None:
                await client.call_tool("wait_with_child", {"mark": mark})

            group.start_soon(call)
            await until(lambda: children_with(mark))
            assert await anyio.to_thread.run_sync(own_server.end, number) == 0
    await until(lambda: not children_with(mark))


@pytest.mark.anyio
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_screen_stays_clean_when_clients_are_there_at_the_end(own_server: Server, mode: str) -> None:
    mark = f"clean-{os.getpid()}-{mode}"
    with pytest.raises(BaseException):  # noqa: B017 - however the client notices
        async with own_server.client(mode) as idle, own_server.client(mode) as client:
            await idle.list_tools()
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "wait_with_child", {"mark": mark})
                await until(lambda: children_with(mark))
                assert await anyio.to_thread.run_sync(own_server.end, signal.SIGINT) == 0
    assert own_server.process.stderr is not None
    assert own_server.process.stderr.read() == "stopped\n"


@pytest.mark.anyio
async def test_a_session_nobody_uses_is_closed(tmp_path: Path) -> None:
    for server in served(tmp_path, "--idle-minutes", "0.02"):
        async with server.client("2026-07-28") as client:
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
    assert "no address" in refused(tmp_path, "--http", "here")
