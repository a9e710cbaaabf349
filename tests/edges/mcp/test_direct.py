"""Calls on stdio run beside the SDK's dispatcher, and their client can't tell."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import BaseModel

from gripfast import Tool, ToolContext, tool
from gripfast.edges.mcp import stdio
from gripfast.edges.mcp.direct import DirectCalls
from gripfast.edges.mcp.server import LARGEST_MESSAGE, server_of
from gripfast.edges.mcp.sessions import Sessions
from gripfast.edges.settings import read_settings
from gripfast.host.program.wire import Wire

HANG = 60
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


class Client:
    """A client of a server in this process, on two pipes."""

    def __init__(self) -> None:
        (self.source, self._sent), (self._received, self.sink) = os.pipe(), os.pipe()
        self._answers = open(self._received, "rb")  # noqa: SIM115 - closed below

    def say(self, method: str, params: Any = None, id: Any = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        message |= {"params": params} if params is not None else {}
        os.write(self._sent, json.dumps(message | ({"id": id} if id is not None else {})).encode() + b"\n")

    def answer(self, id: Any, result: Any) -> None:
        os.write(self._sent, json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n")

    def greet(self, version: str = "2025-11-25", capabilities: dict[str, Any] | None = None) -> None:
        client = {"name": "one", "version": "1"}
        params = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": client}
        self.say("initialize", params, 0)
        self.say("notifications/initialized")

    def call(self, id: Any, tool: Any, arguments: Any = None, **more: Any) -> None:
        self.say("tools/call", {"name": tool, "arguments": arguments or {}, **more}, id)

    async def hear(self) -> bytes:
        with anyio.fail_after(HANG):
            return await anyio.to_thread.run_sync(self._answers.readline, abandon_on_cancel=True)

    async def hear_json(self) -> Any:
        return json.loads(await self.hear())

    def hang_up(self) -> None:
        if self._sent >= 0:
            os.close(self._sent)
            self._sent = -1

    def close(self) -> None:
        self.hang_up()
        for fd in (self.source, self.sink):
            os.close(fd)
        self._answers.close()


@asynccontextmanager
async def serving(*tools: Tool, by_sdk: bool = False) -> AsyncGenerator[Client]:
    """A client of a server, until it hangs up. `by_sdk`: every request goes through the SDK."""
    client = Client()
    settings = read_settings()
    sessions = Sessions(replace(settings, tools=(*settings.tools, *tools)))
    server = server_of(sessions)
    if by_sdk:
        server.middleware.append(_passing)
    wire = Wire(client.source, client.sink, LARGEST_MESSAGE)
    outgoing = stdio._Outgoing(wire, anyio.CancelScope())  # pyright: ignore[reportPrivateUsage]
    incoming = stdio._Incoming(wire, outgoing)  # pyright: ignore[reportPrivateUsage]
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(stdio._serve, server, sessions, incoming, outgoing)  # pyright: ignore[reportPrivateUsage]
            yield client
            client.hang_up()
    finally:
        wire.close()
        client.close()
        await sessions.close()


async def _passing(ctx: Any, call_next: Any) -> Any:
    return await call_next(ctx)


class Counted(BaseModel):
    numbers: list[int]


@tool(output_schema=True)
def numbers(count: int) -> Counted:
    """Counts."""
    return Counted(numbers=list(range(count)))


@tool
async def report(ctx: ToolContext) -> str:
    """Says how far it is, and logs."""
    await ctx.report_progress(1, 2, "half")
    ctx.logger.warning("something to say")
    return "done"


CALLS: tuple[tuple[Any, Any, dict[str, Any]], ...] = (
    ("Read", {"file_path": "a.txt"}, {}),
    ("Read", {"file_path": "a.txt"}, {"_meta": {"progressToken": 7}}),
    ("Read", {"file_path": "pixel.png"}, {}),
    ("Read", {"file_path": "none.txt"}, {}),
    ("Read", {"file_path": "../.."}, {}),
    ("Read", {"file": 1, "pages": []}, {}),
    ("Nothing", {}, {}),
    ("numbers", {"count": 3}, {}),
    ("report", {}, {"_meta": {"progressToken": "two"}}),
    ("Bash", {"command": "seq 40000"}, {}),
    ("Read", None, {"arguments": None}),
    ("Read", None, {"arguments": [1]}),
    (5, {}, {}),
    ("Read", {"file_path": "a.txt"}, {"task": 3}),
)


async def conversation(version: str, *, by_sdk: bool) -> list[bytes]:
    """All that a client hears, one call after the other."""
    heard: list[bytes] = []
    async with serving(numbers, report, by_sdk=by_sdk) as client:
        client.greet(version)
        heard.append(await client.hear())
        for id, (name, arguments, more) in enumerate(CALLS, 1):
            client.say("tools/call", {"name": name, "arguments": arguments, **more}, id)
            while True:
                heard.append(await client.hear())
                if json.loads(heard[-1]).get("id") == id:
                    break
    return heard


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.txt").write_text("one\ntwo ü \u2028\n", encoding="utf-8")
    (tmp_path / "pixel.png").write_bytes(PNG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.anyio
@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
async def test_every_message_is_byte_for_byte_what_the_sdk_would_send(
    project: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[bool] = []
    start = DirectCalls.start

    def counted(self: DirectCalls, message: Any) -> bool:
        started.append(start(self, message))
        return started[-1]

    monkeypatch.setattr(DirectCalls, "start", counted)
    direct = await conversation(version, by_sdk=False)
    assert started.count(True) >= 10
    assert [_without_ref(line) for line in direct] == [
        _without_ref(line) for line in await conversation(version, by_sdk=True)
    ]


def _without_ref(line: bytes) -> Any:
    """The line, and for an answer with a stored output, which has another name each time, what else it says."""
    message = json.loads(line)
    ref = message.get("result", {}).get("_meta", {}).get("gripfast/output_ref", {}).get("id")
    return line if ref is None else line.replace(ref.encode(), b"REF")


@pytest.mark.anyio
async def test_a_call_before_the_handshake_is_refused(project: Path) -> None:
    async with serving() as client:
        client.say("initialize", {}, 1)  # not a valid one
        assert "error" in await client.hear_json()
        client.call(2, "Read", {"file_path": "a.txt"})
        assert "error" in await client.hear_json()


@pytest.mark.anyio
async def test_a_cancelled_call_ends_and_is_not_answered(project: Path) -> None:
    running, ended = threading.Event(), threading.Event()

    @tool
    async def wait() -> str:
        """Waits for ever."""
        running.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    async with serving(wait) as client:
        client.greet()
        await client.hear()
        client.call(1, "wait")
        assert await anyio.to_thread.run_sync(running.wait, HANG)
        client.say("notifications/cancelled", {"requestId": "1"})  # a number in quotes means the same
        assert await anyio.to_thread.run_sync(ended.wait, HANG)
        client.call(2, "Read", {"file_path": "a.txt"})
        assert (await client.hear_json())["id"] == 2


@pytest.mark.anyio
async def test_a_call_that_runs_when_its_client_hangs_up_is_ended_and_answered(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "DRAIN_SECONDS", 0.1)
    running = threading.Event()

    @tool
    async def wait() -> str:
        """Waits for ever."""
        running.set()
        await anyio.sleep_forever()
        return ""

    async with serving(wait) as client:
        client.greet()
        await client.hear()
        client.call(1, "wait")
        assert await anyio.to_thread.run_sync(running.wait, HANG)
        client.hang_up()
        answer = await client.hear_json()
        assert answer["id"] == 1
        assert answer["error"]["message"] == "Connection closed"


@pytest.mark.anyio
async def test_a_call_can_ask_its_client(project: Path) -> None:
    rule = '[[permissions.rule]]\ntool = "Read"\npattern = "*"\naction = "ask"\n'
    (project / ".gripfast.toml").write_text(rule, encoding="utf-8")
    async with serving() as client:
        client.greet(capabilities={"elicitation": {}})
        await client.hear()
        client.call(1, "Read", {"file_path": "a.txt"})
        question = await client.hear_json()
        assert question["method"] == "elicitation/create"
        client.answer(question["id"], {"action": "accept", "content": {"decision": "Allow once"}})
        answer = await client.hear_json()
        assert answer["id"] == 1
        assert "one" in answer["result"]["content"][0]["text"]


@pytest.mark.anyio
async def test_many_calls_at_once_are_answered_each_once(project: Path) -> None:
    async with serving() as client:
        client.greet()
        await client.hear()
        for id in range(1, 301):
            client.call(id, "Read", {"file_path": "a.txt"})
        assert sorted([(await client.hear_json())["id"] for _ in range(300)]) == list(range(1, 301))
