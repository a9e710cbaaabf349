"""A small MCP client over stdio, used for every server that is measured."""

from __future__ import annotations

import json
import os
import select
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PATIENCE = 60  # seconds to wait for one answer, so that a silent server does not block the rest


class StdioClient:
    """Starts a server and talks to it, line by line."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str] | None = None) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
        )
        self._next = 0
        self._unread, self._looked = bytearray(), 0
        self._poll = select.poll()
        self._poll.register(self._output, select.POLLIN)
        try:
            self._greet()
        except BaseException:
            self.close()
            raise
        self.ready_after = time.perf_counter() - self.started

    def _greet(self) -> None:
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self.ask("initialize", hello)
        self.tell("notifications/initialized")
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        self._send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = self.post(method, params)
        while True:
            answer = self.receive()
            if answer.get("id") == number and "method" not in answer:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def post(self, method: str, params: dict[str, Any]) -> int:
        self._send(self._numbered(method, params))
        return self._next

    def _numbered(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._next += 1
        return {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}

    def receive(self) -> dict[str, Any]:
        while (end := self._unread.find(b"\n", self._looked)) < 0:
            self._looked = len(self._unread)
            if not self._poll.poll(PATIENCE * 1000):
                self.process.kill()
                raise TimeoutError(f"no answer within {PATIENCE} seconds")
            piece = os.read(self._output, 1 << 18)
            if not piece:
                raise RuntimeError("the server ended")
            self._unread += piece
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        self._looked = 0
        return json.loads(line)

    @property
    def _output(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def _send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # the server has ended; waiting for the answer reports that
            self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
            self.process.stdin.flush()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool}: {result['content']}")
        return result

    def call_many(self, tool: str, arguments: dict[str, Any], count: int) -> int:
        """Sends `count` calls without waiting for answers; returns how many answers were successful."""
        call = {"name": tool, "arguments": arguments}
        messages = [self._numbered("tools/call", call) for _ in range(count)]
        sender = threading.Thread(
            target=self._send, args=messages, daemon=True
        )  # in a thread, because both pipes may be full
        sender.start()
        wanted = {message["id"] for message in messages}
        good = 0
        while wanted:
            answer = self.receive()
            if answer.get("id") in wanted:
                wanted.remove(answer["id"])
                good += "result" in answer and not answer["result"].get("isError")
        sender.join()
        return good

    def memory_mb(self) -> float:
        """Resident memory of the server and its children."""
        return sum(_resident_kb(pid) for pid in _family(self.process.pid)) / 1024

    def close(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> StdioClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = [pid]
    if children.is_file():
        for child in children.read_text(encoding="ascii").split():
            found += _family(int(child))
    return found


def _resident_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0
