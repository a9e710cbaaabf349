"""Tokens of a running server: read again when the file changes, and what differs from one person to the next."""

from __future__ import annotations

import http.client
import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from gripfast.edges.cli.main import main
from http_server import HANG, INITIALIZE, SERVE, Server
from serving import text_of

A, B, C = "a" * 24, "b" * 24, "c" * 24
ANN, BOB, CARL = (f"Bearer {token}" for token in (A, B, C))
AGAIN = "token file was read again"
WAITING = """
import anyio
from gripfast import tool

@tool
async def wait_here(mark: str) -> str:
    "Waits until it is cancelled, and says so."
    path = anyio.Path(mark)
    await path.write_text("started")
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await path.write_text("ended")
"""


def write(path: Path, text: str) -> None:
    """As a program does that takes care: complete before it has its name."""
    fresh = path.with_suffix(".new")
    fresh.touch(0o600)
    fresh.write_text(text, encoding="utf-8")
    fresh.rename(path)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("tokens")
    root = home / "project"
    root.mkdir()
    write(home / "tokens", f"ann {A}\nbob {B}\n")
    options = ["--root", str(root), "--token-file", str(home / "tokens"), "--rules", "none"]
    with Server(root, home, *options, tools=WAITING) as server:
        assert server.request("GET", path="/healthz")[0] == 200  # it is ready for signals
        yield server


@pytest.fixture
def server(running: Server) -> Server:
    """A server that Ann and Bob may use."""
    write(running.home / "tokens", f"ann {A}\nbob {B}\n")
    hang_up(running)
    return running


@pytest.fixture
def tokens(server: Server) -> Path:
    return server.home / "tokens"


def hang_up(server: Server, expected: str = AGAIN) -> str:
    server.process.send_signal(signal.SIGHUP)
    return server.log(expected)


def status(server: Server, who: str, **headers: str) -> int:
    return server.request(body=INITIALIZE, Authorization=who, **headers)[0]


def begin(server: Server, who: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", INITIALIZE, {**headers, "Authorization": who})
    session = connection.getresponse().headers["mcp-session-id"]
    connection.close()
    return session


def test_a_changed_file_is_read_again_and_on_hangup_at_once(server: Server, tokens: Path) -> None:
    assert (status(server, ANN), status(server, CARL)) == (200, 401)
    write(tokens, f"ann {A}\nbob {B}\ncarl {C}\n")
    assert "ended the sessions of nobody" in server.log("3 people")
    assert (status(server, ANN), status(server, CARL)) == (200, 200)
    write(tokens, f"ann {A}\n")
    assert "bob, carl" in hang_up(server, "1 people")
    assert [status(server, who) for who in (ANN, BOB, CARL)] == [200, 401, 401]


def test_a_broken_file_keeps_the_last_good_one_and_is_logged(server: Server, tokens: Path) -> None:
    for broken in ("", f"ann {A}\nbob", f"ann {A}\nbob {B} rules=none-such\n", f"ann {A}"):
        tokens.write_text(broken, encoding="utf-8")
        line = hang_up(server, "the tokens stay as they were")
        assert A not in line and B not in line
        assert (status(server, ANN), status(server, BOB)) == (200, 200)
    write(tokens, f"bob {B}\n")
    hang_up(server)
    assert (status(server, ANN), status(server, BOB)) == (401, 200)


def test_a_file_that_is_gone_keeps_the_last_good_one(server: Server, tokens: Path) -> None:
    tokens.unlink()
    hang_up(server, "the tokens stay as they were")
    assert status(server, ANN) == 200


def test_a_session_ends_with_its_token_and_the_others_go_on(server: Server, tokens: Path) -> None:
    ann, bob = begin(server, ANN), begin(server, BOB)
    write(tokens, f"ann {C}\nbob {B}\n")
    assert hang_up(server).rstrip().endswith("ended the sessions of ann")
    listing = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
    assert server.request(body=listing, Authorization=ANN, Mcp_Session_Id=ann)[0] == 401
    assert server.request(body=listing, Authorization=CARL, Mcp_Session_Id=ann)[0] == 404
    assert server.request(body=listing, Authorization=BOB, Mcp_Session_Id=bob)[0] == 200


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_under_way_ends_with_its_token(server: Server, tokens: Path, tmp_path: Path, mode: str) -> None:
    mark = tmp_path / "mark"

    async def call() -> None:
        async with server.client(mode, Authorization=ANN) as client:
            await client.call_tool("wait_here", {"mark": str(mark)})

    async def until(text: str) -> None:
        while not mark.exists() or mark.read_text(encoding="utf-8") != text:
            await anyio.sleep(0.02)

    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as group:
            group.start_soon(_failing, call)
            await until("started")
            write(tokens, f"bob {B}\n")
            server.process.send_signal(signal.SIGHUP)
            await until("ended")
            group.cancel_scope.cancel()
    assert status(server, ANN) == 401


async def _failing(work: Any) -> None:
    try:
        await work()
    except BaseExceptionGroup as fault:  # however the client notices that its session ended
        ended = fault.subgroup(anyio.get_cancelled_exc_class())
        if ended is not None:
            raise
    except Exception:  # noqa: BLE001 - the same
        return


@pytest.mark.anyio
async def test_people_differ_in_tools_rules_and_root(tmp_path: Path) -> None:
    for name in ("shared", "bobs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "where.txt").write_text(name, encoding="utf-8")
    tokens = tmp_path / "tokens.toml"
    table = f'[ann]\ntoken = "{A}"\nreadonly = true\n[bob]\ntoken = "{B}"\nprofile = "agent"\n'
    write(tokens, f'{table}root = "{tmp_path / "bobs"}"\n[carl]\ntoken = "{C}"\n')
    with Server(tmp_path, tmp_path, "--root", str(tmp_path / "shared"), "--token-file", str(tokens)) as server:
        tools: dict[str, set[str]] = {}
        for who in (ANN, BOB, CARL):
            for mode in ("legacy", "auto"):
                async with server.client(mode, Authorization=who) as client:
                    tools[who] = {tool.name for tool in (await client.list_tools()).tools}
                    assert ("Bash" in (client.instructions or "")) == (who != ANN), mode
                    seen = text_of(await client.call_tool("Read", {"file_path": "where.txt"}))
                    assert ("bobs" if who == BOB else "shared") in seen
                    if who == ANN:
                        for tool, given in {
                            "Write": {"file_path": "x", "content": "x"},
                            "Bash": {"command": "true"},
                        }.items():
                            assert "TOOL_NOT_FOUND" in text_of(await client.call_tool(tool, given))
        assert "Read" in tools[ANN] and not tools[ANN] & {"Write", "Edit", "Bash", "apply_patch"}
        assert "Write" in tools[BOB] and tools[BOB] < tools[CARL]


def test_printed_lines_have_the_header_and_nobodys_token(running: Server) -> None:
    assert A not in running.screen and B not in running.screen
    assert running.screen.count("Bearer TOKEN") == 4
    assert "2 tokens in" in running.screen


def test_your_own_token_is_for_your_terminal_and_not_for_a_log(tmp_path: Path) -> None:
    with Server(tmp_path, tmp_path, "--url", "https://tools.example.org") as server:
        assert server.token and server.token not in server.screen
        assert "https://tools.example.org/mcp" in server.screen
        assert server.screen.count("Bearer TOKEN") == 4
        assert server.request(body=INITIALIZE, Host="tools.example.org")[0] == 200
        assert server.request(body=INITIALIZE, Host="other.example.org")[0] == 421


@pytest.fixture
def own_hangup() -> Iterator[None]:
    """A server in this process lets hang-ups pass while it starts; afterwards they mean what they did."""
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("own_hangup")
@pytest.mark.parametrize("choice", ["profile=agnet", "rules=lax", "root=/none/such", "admin"])
def test_a_broken_file_does_not_start_and_its_line_is_named(tmp_path: Path, choice: str) -> None:
    write(tmp_path / "tokens", f"# people\nann {A}\nbob {B} {choice}\n")
    options = ["--http", "127.0.0.1:0", "--root", str(tmp_path), "--token-file", str(tmp_path / "tokens")]
    done = CliRunner().invoke(main, ["serve", *options])
    assert done.exit_code == 2
    assert "line 3" in " ".join(done.output.split()) and A not in done.output


@pytest.mark.anyio
async def test_a_server_whose_terminal_is_gone_ends(tmp_path: Path) -> None:
    """A hang-up that comes with the end of the terminal is no request to read tokens."""
    write(tokens := tmp_path / "tokens", f"ann {A}\n")
    child, terminal = pty.fork()
    if not child:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.chdir(tmp_path)
        os.execv(SERVE[0], [*SERVE, "--http", "127.0.0.1:0", "--token-file", str(tokens)])
    shown = b""
    while b"Ctrl-C" not in shown:
        shown += os.read(terminal, 1000)
    os.close(terminal)
    ended = 0
    with anyio.move_on_after(HANG):
        while not ended:
            ended, _ = os.waitpid(child, os.WNOHANG)
            await anyio.sleep(0.05)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == child
