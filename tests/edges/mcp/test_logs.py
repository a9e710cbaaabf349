"""The server's log: one line for each call, without tokens and, unless asked for, without content."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from http_server import HANG, SERVE, Server, token_file

A = "a" * 24
ANN = {"Authorization": f"Bearer {A}"}
SECRET = "correct-horse-battery"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("the content of a file\n", encoding="utf-8")
    (tmp_path / "project" / ".env").write_text(f"API_KEY={SECRET}\n", encoding="utf-8")
    token_file(tmp_path, f"ann {A}\n")
    return tmp_path


def serving(home: Path, *options: str) -> Iterator[Server]:
    with Server(
        home / "project", home, "--token-file", str(home / "tokens"), "--rules", "read-only", *options
    ) as server:
        yield server


async def four_calls(server: Server) -> None:
    async with server.client("legacy", **ANN) as client:
        await client.call_tool("Read", {"file_path": "a.txt"})
        await client.call_tool("Write", {"file_path": "b.txt", "content": f"what is written {SECRET}"})
        await client.call_tool("no such\ntool \x1b[31m", {})
        await client.call_tool("Bash", {"command": "cat a.txt; false"})


async def one_call(server: Server, command: str) -> None:
    async with server.client("legacy", **ANN) as client:
        await client.call_tool("Bash", {"command": command})


@pytest.mark.anyio
async def test_each_call_is_a_line_of_json_with_who_what_decision_time_and_bytes(home: Path) -> None:
    for server in serving(home, "--log-format", "json", "--metrics", "127.0.0.1:0"):
        started = json.loads(server.screen)
        assert started["metrics"].startswith("127.0.0.1:") and not started["metrics"].endswith(":0")
        assert (started["event"], started["address"]) == ("started", f"127.0.0.1:{server.port}")
        await four_calls(server)
        lines = [server.log('"call"') for _ in range(4)]
        found: list[dict[str, Any]] = [json.loads(line) for line in lines]
        assert [one["tool"] for one in found] == ["Read", "Write", "no such\ntool \x1b[31m", "Bash"]
        assert [one["outcome"] for one in found] == ["ok", "POLICY_DENIED", "TOOL_NOT_FOUND", "ok"]
        assert [one.get("decision") for one in found] == ["allowed", "denied", None, "allowed"]
        assert {one["who"] for one in found} == {"ann"} and len({one["session"] for one in found}) == 1
        assert found[3]["exit_code"] == 1 and found[0]["bytes_out"] > found[0]["bytes_in"] > 0
        assert all(0 <= one["seconds"] < HANG for one in found)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found[0]["time"])
        assert all(word not in "".join(lines) for word in (A, "content of", "written", "a.txt", "\x1b"))


@pytest.mark.anyio
async def test_people_get_a_line_that_no_name_can_break(home: Path) -> None:
    for server in serving(home):
        await four_calls(server)
        lines = [server.log(" ann ") for _ in range(4)]
        assert re.search(r"Z ann Read ok allowed \d+\.\d{3}s \d+>\d+B session=\w{8}$", lines[0].rstrip())
        assert '"no such\\ntool \\u001b[31m" TOOL_NOT_FOUND' in lines[2]
        assert "Bash ok (exit 1) allowed" in lines[3]
        assert all(word not in "".join(lines) for word in (A, "content of", "written", "a.txt", "\x1b"))


@pytest.mark.anyio
async def test_content_is_there_when_it_is_asked_for_and_secrets_never(home: Path) -> None:
    for server in serving(home, "--log-format", "json", "--log-content", "-v"):
        assert server.request("GET", path="/nowhere", Authorization="Bearer wrong" * 9)[0] == 401
        refused = server.log("401")
        await four_calls(server)
        lines = [server.log('"call"') for _ in range(4)]
        read, write, *_ = (json.loads(line) for line in lines)
        assert "content of a file" in read["answer"] and '"a.txt"' in read["arguments"]
        assert "«API_KEY»" in write["arguments"]
        await one_call(server, f"cat ~/{SECRET} > /etc/{SECRET}")
        lines.append(server.log('"call"'))
        assert "«API_KEY»" in json.loads(lines[-1])["reason"]
        assert all(word not in "".join((refused, *lines)) for word in (A, "wrong", SECRET))


@pytest.mark.anyio
async def test_nobody_who_reads_the_log_slowly_holds_up_a_call(home: Path) -> None:
    (home / "project" / "large.txt").write_text("a line of a large file\n" * 500, encoding="utf-8")
    for server in serving(home, "--log-content"):  # its standard error is a pipe that nobody reads
        async with server.client("legacy", **ANN) as client:
            for _ in range(40):  # twice what the pipe takes
                assert not (await client.call_tool("Read", {"file_path": "large.txt"})).is_error
        assert server.end() == 0


def test_on_stdio_there_is_a_log_only_if_it_is_asked_for(home: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "Read", "arguments": {"file_path": "a.txt"}}},
    ]
    sent = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in messages)
    shown: list[str] = []
    for options in ((), ("--log-format", "json")):
        done = subprocess.run(
            [*SERVE, *options], cwd=home / "project", env={**os.environ, "XDG_STATE_HOME": str(home)},
            input=sent, capture_output=True, text=True, timeout=HANG,
        )  # fmt: skip
        assert "the content of a file" in done.stdout
        shown.append(done.stderr)
    assert shown[0] == ""
    assert json.loads(shown[1])["tool"] == "Read"
