"""The server as a process on pipes: bad input, clean ends, calls side by side."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import JSONRPCResponse

from gripfast.edges.mcp.stdio import line_of

HANG = 60
TOOLS = """
import anyio, subprocess, sys
from gripfast import tool

@tool
def nap(seconds: float) -> str:
    "Sleeps, deaf to cancellation."
    import time
    time.sleep(seconds)
    return "rested"

@tool
async def never_stop(flag: str) -> str:
    "Swallows cancellation."
    open(flag, "w").close()
    while True:
        try:
            await anyio.sleep(0.01)
        except BaseException:
            continue

@tool
def never_stop_in_thread(flag: str) -> str:
    "Works on, deaf to cancellation."
    import time
    open(flag, "w").close()
    while True:
        time.sleep(0.01)

@tool
async def wait_with_child(mark: str) -> str:
    "Starts a child that is killed when the call is."
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark])
    try:
        await anyio.sleep_forever()
    finally:
        child.kill()
        child.wait()

@tool
def chatter() -> str:
    "Writes where the protocol is."
    print("not a message", flush=True)
    print("nor is this, which waits in a buffer")
    return sys.stdin.read() + "nothing"

@tool
def echo(value: object = None) -> str:
    "Gives back what it got."
    return repr(value)[:100]
"""


class Process:
    """`gripfast serve` with its pipes, spoken to in raw lines."""

    def __init__(self, root: Path, *options: str, program: tuple[str, ...] = ("-m", "gripfast")) -> None:
        (root.parent / "mine.py").write_text(TOOLS, encoding="utf-8")
        command = [sys.executable, *program, "serve", "--with", str(root.parent / "mine.py"), *options]
        buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # as clients start it
        self.process = subprocess.Popen(
            command, cwd=root, env=buffered, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def say(self, method: str, params: dict[str, Any] | None = None, id: Any = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        self.send(json.dumps(message | ({"id": id} if id is not None else {})).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server closed its end"
        return json.loads(line)

    def hear_for(self, id: Any) -> dict[str, Any]:
        while True:
            message = self.hear()
            if message.get("id") == id and ("result" in message or "error" in message):
                return message

    def ask(self, method: str, params: dict[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:
        self.say(method, params, id)
        return self.hear_for(id)

    def begin(self) -> None:
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "0"},
        }
        self.ask("initialize", params, 0)
        self.say("notifications/initialized")

    def call(self, tool: str, arguments: dict[str, Any], id: Any = 7) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments}, id)

    def is_alive(self) -> bool:
        answer = self.call("Read", {"file_path": "a.txt"}, "alive")
        return "one" in answer["result"]["content"][0]["text"]

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(HANG)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def server(project: Path) -> Iterator[Process]:
    server = Process(project)
    server.begin()
    try:
        yield server
    finally:
        server.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One for all tests that leave it alive, which is what they test."""
    root = tmp_path_factory.mktemp("shared") / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    (root / "long.txt").write_text(("word " * 8 + "\n") * 1500, encoding="utf-8")
    server = Process(root)
    server.begin()
    try:
        yield server
    finally:
        server.close()


BAD_LINES = {
    "not json": (b"hello\n", -32700, None),
    "half an object": (b'{"jsonrpc": "2.0", "id": 5\n', -32700, None),
    "not utf-8": (b'{"jsonrpc": "2.0", "id": 5, "method": "\xff\xfe"}\n', -32700, None),
    "nested 100,000 deep": (
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"value":'
        + b"[" * 100_000 + b"]" * 100_000 + b"}}}\n",
        -32700,
        None,
    ),
    "a batch": (b'[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]\n', -32600, None),
    "a number": (b"5\n", -32600, None),
    "another version": (b'{"jsonrpc": "1.0", "id": 5, "method": "ping"}\n', -32600, 5),
    "no method": (b'{"jsonrpc": "2.0", "id": 5}\n', -32600, 5),
    "a method that is a number": (b'{"jsonrpc": "2.0", "id": "x", "method": 7}\n', -32600, "x"),
    "params that are a list": (b'{"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [1]}\n', -32600, 5),
    "half a surrogate pair": (
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"\\ud800"}}}\n',
        -32600,
        5,
    ),
    "an unknown method": (b'{"jsonrpc": "2.0", "id": 5, "method": "tools/fly"}\n', -32601, 5),
    "arguments that are text": (
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"Read","arguments":"a.txt"}}\n',
        -32602,
        5,
    ),
    "a call without a name": (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}\n', -32602, 5),
    "a second initialize that is none": (b'{"jsonrpc":"2.0","id":5,"method":"initialize"}\n', -32602, 5),
}  # fmt: skip


def test_a_line_that_is_no_request_is_answered_and_the_next_one_works(shared: Process) -> None:
    for kind, (line, code, id) in BAD_LINES.items():
        shared.send(line)
        answer = shared.hear()
        assert (answer["error"]["code"], answer["id"]) == (code, id), kind
    assert shared.is_alive()


ODD_ARGUMENTS = {
    "a number with 5,000 digits": b"1" * 5000,
    "not a number": b"NaN",
    "no end to it": b"-Infinity",
    "a float past all floats": b"1e999",
    "a key twice": b'{"a": 1, "a": 2}',
    "a name with NUL": b'"a\\u0000b"',
}


def test_odd_values_are_answered_with_an_error_or_used_but_never_end_the_server(shared: Process) -> None:
    for kind, value in ODD_ARGUMENTS.items():
        for tool, name in ((b"echo", b"value"), (b"Read", b"file_path")):
            head = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"' + tool
            shared.send(head + b'","arguments":{"' + name + b'":' + value + b"}}}\n")
            answer = shared.hear()
            assert answer["id"] in (9, None), kind
            assert "error" in answer or "result" in answer, kind
    assert shared.is_alive()


def test_a_line_of_100_mb_is_refused_and_does_not_fill_the_memory(shared: Process) -> None:
    for _ in range(100):
        shared.send(b"x" * 1_000_000)
    shared.send(b"\n")
    assert shared.hear()["error"]["code"] == -32700
    assert shared.is_alive()
    status = Path(f"/proc/{shared.process.pid}/status")
    if status.exists():
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        assert int(peak.split()[1]) < 250_000


def test_empty_lines_are_passed_over(shared: Process) -> None:
    shared.send(b"\n  \n\r\n")
    assert shared.is_alive()


def test_half_a_line_and_the_end_of_input_end_the_server_cleanly(server: Process) -> None:
    server.send(b'{"jsonrpc": "2.0", "id": 3, "meth')
    assert server.end() == 0


def test_the_end_of_input_ends_the_server_with_nothing_on_standard_error(server: Process) -> None:
    assert server.is_alive()
    assert server.end() == 0
    assert server.process.stderr is not None
    assert server.process.stderr.read() == b""


def test_requests_written_before_the_end_of_input_are_answered(server: Process) -> None:
    for number in range(20):
        server.say("tools/call", {"name": "Read", "arguments": {"file_path": "a.txt"}}, number)
    assert server.process.stdin is not None
    server.process.stdin.close()
    answered = {server.hear()["id"] for _ in range(20)}
    assert answered == set(range(20))
    assert server.process.wait(HANG) == 0


def test_a_cancel_for_a_finished_or_unknown_call_changes_nothing(shared: Process) -> None:
    shared.call("Read", {"file_path": "a.txt"}, 11)
    for id in (11, "never", None, 1.5):
        shared.say("notifications/cancelled", {"requestId": id})
    shared.say("notifications/cancelled", {})
    assert shared.is_alive()


def test_a_tool_can_neither_read_from_the_wire_nor_write_onto_it(shared: Process) -> None:
    answer = shared.call("chatter", {})
    assert answer["result"]["content"][0]["text"] == "nothing"
    assert shared.is_alive()


def test_what_a_tool_printed_does_not_reach_the_wire_when_it_is_given_back(server: Process) -> None:
    server.call("chatter", {})
    assert server.end() == 0
    assert server.process.stdout is not None
    assert server.process.stdout.read() == b""


def test_a_thousand_calls_at_once_are_all_answered(shared: Process) -> None:
    for number in range(1000):
        shared.say("tools/call", {"name": "Read", "arguments": {"file_path": "a.txt"}}, number)
    answers = {(message := shared.hear())["id"]: message for _ in range(1000)}
    assert set(answers) == set(range(1000))
    assert not any(answer["result"].get("isError") for answer in answers.values())


def test_a_slow_call_does_not_hold_up_a_quick_one(shared: Process) -> None:
    shared.say("tools/call", {"name": "nap", "arguments": {"seconds": 3}}, "slow")
    shared.say("tools/call", {"name": "Read", "arguments": {"file_path": "a.txt"}}, "quick")
    assert [shared.hear()["id"], shared.hear()["id"]] == ["quick", "slow"]


def test_a_client_that_reads_nothing_loses_nothing(shared: Process) -> None:
    for number in range(40):
        shared.say("tools/call", {"name": "Read", "arguments": {"file_path": "long.txt"}}, number)
    time.sleep(1)
    assert {shared.hear()["id"] for _ in range(40)} == set(range(40))


def test_a_cancel_that_names_no_request_and_an_id_no_answer_can_hold_do_not_end_the_server(shared: Process) -> None:
    for wrong in ([1], {"a": 1}, None, 1.5):
        shared.say("notifications/cancelled", {"requestId": wrong})
    shared.send(b'{"id": "\\ud800"}\n{"jsonrpc": "2.0", "id": "\\udfff", "method": "ping"}\n')
    assert [shared.hear()["id"], shared.hear()["id"]] == [None, None]
    assert shared.is_alive()


def test_an_answer_that_no_json_can_hold_is_an_error_in_its_place() -> None:
    line = line_of(JSONRPCResponse(jsonrpc="2.0", id="h", result={"text": "\ud800"}))
    said = json.loads(line)
    assert said["id"] == "h"
    assert "can't be written as JSON" in said["error"]["message"]


def memory_of(process: subprocess.Popen[bytes]) -> int:
    """In MB."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


def flood(server: Process, count: int) -> None:
    """From now on; a server that stops reading stops it, too."""
    assert server.process.stdin is not None
    call = (
        '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"a.txt"}}}\n'
    )

    def send() -> None:
        with contextlib.suppress(OSError, ValueError):
            server.send("".join(call % number for number in range(count)).encode())

    threading.Thread(target=send, daemon=True).start()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at memory in /proc")
def test_a_client_that_asks_and_asks_and_reads_nothing_is_no_longer_listened_to(server: Process) -> None:
    assert server.is_alive()
    before = memory_of(server.process)
    flood(server, 70_000)
    time.sleep(6)
    assert memory_of(server.process) - before < 40
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(HANG) == 0


def test_answers_come_quickly_again_after_a_client_read_none_for_long(server: Process) -> None:
    flood(server, 6_000)
    time.sleep(1)
    assert {server.hear()["id"] for _ in range(6_000)} == set(range(6_000))
    assert server.is_alive()


def test_a_client_that_asks_much_and_leaves_without_reading_ends_the_server(server: Process) -> None:
    flood(server, 20_000)
    time.sleep(1)
    assert server.process.stdin is not None
    server.process.stdin.close()
    assert server.process.wait(HANG) == 0


FEW = (
    "from gripfast.edges.mcp import stdio; stdio.MAX_PENDING_REQUESTS = 3; "
    "from gripfast.edges.cli import main; main()"
)


def test_one_request_too_many_under_way_is_refused_and_may_be_sent_again(project: Path) -> None:
    server = Process(project, program=("-c", FEW))
    try:
        server.begin()
        for number in range(3):
            server.say("tools/call", {"name": "nap", "arguments": {"seconds": 2}}, number)
        server.say("ping", id="early")
        refused = server.hear()
        assert (refused["id"], "3 requests are waiting" in refused["error"]["message"]) == ("early", True)
        assert {server.hear()["id"] for _ in range(3)} == {0, 1, 2}
        assert server.is_alive()
    finally:
        server.close()


def children_with(mark: str) -> list[str]:
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in line:
                found.append(entry.name)
    return found


def wait_until(said: Any) -> bool:
    deadline = time.monotonic() + HANG
    while time.monotonic() < deadline:
        if said():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("ending", ["eof", "SIGTERM", "SIGINT", "SIGHUP", "dead client", "cancel"])
def test_no_process_stays_however_the_call_ends(server: Process, ending: str) -> None:
    mark = f"mark-{os.getpid()}-{ending}"
    server.say("tools/call", {"name": "wait_with_child", "arguments": {"mark": mark}}, "c")
    assert wait_until(lambda: children_with(mark))
    assert server.process.stdin is not None
    assert server.process.stdout is not None
    if ending == "eof":
        server.process.stdin.close()
    elif ending == "dead client":
        server.process.stdin.close()
        server.process.stdout.close()
    elif ending == "cancel":
        server.say("notifications/cancelled", {"requestId": "c"})
    else:
        server.process.send_signal(getattr(signal, ending))
    assert wait_until(lambda: not children_with(mark))
    if ending == "cancel":
        assert server.is_alive()
    else:
        assert server.process.wait(HANG) == 0


def test_a_client_that_stops_reading_for_good_ends_the_server(server: Process) -> None:
    assert server.process.stdout is not None
    server.process.stdout.close()
    server.say("ping", id=1)
    assert server.process.wait(HANG) == 0


IMPATIENT = (
    "from gripfast.host.program import ending; ending.SECONDS = 0.5; from gripfast.edges.cli.main import main; main()"
)


@pytest.mark.parametrize("tool", ["never_stop", "never_stop_in_thread"])
@pytest.mark.parametrize("how", ["eof", "SIGTERM"])
def test_a_tool_that_never_stops_does_not_keep_the_server_from_ending(project: Path, tool: str, how: str) -> None:
    server = Process(project, "--rules", "none", program=("-c", IMPATIENT))
    try:
        server.begin()
        flag = project / "began"
        server.say("tools/call", {"name": tool, "arguments": {"flag": str(flag)}}, "c")
        assert wait_until(flag.exists)
        if how == "eof":
            assert server.process.stdin is not None
            server.process.stdin.close()
        else:
            server.process.send_signal(getattr(signal, how))
        assert server.process.wait(HANG) == 1
        assert server.process.stderr is not None
        assert b"did not stop in time" in server.process.stderr.read()
    finally:
        server.close()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_a_closed_standard_input_or_output_is_said_in_a_line(project: Path, closed: str) -> None:
    command = ["sh", "-c", f'exec "$0" -m gripfast serve {closed}', sys.executable]
    done = subprocess.run(command, cwd=project, stderr=subprocess.PIPE, timeout=HANG, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"Error: standard input or output is closed")


def test_standard_input_may_be_a_file(project: Path, tmp_path: Path) -> None:
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "f", "version": "0"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
         "params": {"name": "Read", "arguments": {"file_path": "a.txt"}}},
    ]  # fmt: skip
    asked = tmp_path / "asked.jsonl"
    asked.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with asked.open("rb") as source:
        done = subprocess.run(
            [sys.executable, "-m", "gripfast", "serve"], cwd=project, stdin=source, capture_output=True, timeout=HANG,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]


def test_a_home_directory_must_be_named_to_be_served(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project))
    for options, fault in (((), True), (("--root", str(project)), False)):
        server = Process(project, *options)
        server.begin()
        answer = server.call("Read", {"file_path": "a.txt"})["result"]
        assert answer.get("isError", False) is fault
        assert ("home directory" in answer["content"][0]["text"]) is fault
        assert server.end() == 0
        server.close()
