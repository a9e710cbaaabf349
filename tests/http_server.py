"""A server over HTTP as a process, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

HANG = 60
SERVE = [sys.executable, "-m", "gripfast", "serve"]

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}}  # fmt: skip
INITIALIZE = json.dumps(HELLO).encode()


def token_file(home: Path, text: str) -> Path:
    """A token file that only its owner can read."""
    (home / "tokens").touch(0o600)
    (home / "tokens").write_text(text, encoding="utf-8")
    return home / "tokens"


class Server:
    def __init__(self, root: Path, home: Path, *options: str, tools: str = "") -> None:
        (home / "mine.py").write_text(tools, encoding="utf-8")
        self.home = home
        more = ["--with", str(home / "mine.py")] if tools else []
        self.process = subprocess.Popen(
            [*SERVE, "--http", "127.0.0.1:0", *more, *options],
            cwd=root, env={**os.environ, "XDG_STATE_HOME": str(home)}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader: threading.Thread | None = None
        try:
            self._read_screen("json" in options)
        except BaseException:
            self.close()
            raise
        own = home / "gripfast" / "http-token"
        self.token = own.read_text(encoding="ascii").strip() if own.exists() else ""

    def _read_screen(self, is_json: bool) -> None:
        """What it prints until it serves, and its address there."""
        assert self.process.stderr is not None
        self.screen = ""
        while "Ctrl-C" not in self.screen and not (is_json and self.screen):
            line = self.process.stderr.readline()
            assert line, self.screen
            self.screen += line
        if is_json:
            self.url = f"http://{json.loads(self.screen)['address']}/mcp"
        else:
            self.url = self.screen.split("  local  " if "  local  " in self.screen else " tools at ")[1].split()[0]
        self.port = int(self.url.split(":")[2].split("/")[0])

    def log(self, text: str) -> str:
        """Waits for a line on standard error with this text, and returns it."""
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()
        while text not in (line := self._lines.get(timeout=HANG)):
            pass
        return line

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)

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

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(HANG)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self._reader is not None:
            self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
