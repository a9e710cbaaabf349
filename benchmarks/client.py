"""One small MCP client over stdio, the same for every server that is measured."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any


class StdioClient:
    """Starts a server and speaks to it, a line at a time."""

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
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self.ask("initialize", hello)
        self.tell("notifications/initialized")
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]
        self.ready_after = time.perf_counter() - self.started

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
        self._next += 1
        self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the server ended")
        return json.loads(line)

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(f"{tool}: {result['content']}")
        return result

    def call_many(self, tool: str, arguments: dict[str, Any], count: int) -> int:
        """Sends that many calls before reading an answer; returns how many answers were good."""
        wanted = {self.post("tools/call", {"name": tool, "arguments": arguments}) for _ in range(count)}
        good = 0
        while wanted:
            answer = self.receive()
            if answer.get("id") in wanted:
                wanted.remove(answer["id"])
                good += "result" in answer and not answer["result"].get("isError")
        return good

    def memory_mb(self) -> float:
        """Resident memory of the server and its children."""
        return sum(_resident_kb(pid) for pid in _family(self.process.pid)) / 1024

    def close(self) -> None:
        assert self.process.stdin is not None
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
