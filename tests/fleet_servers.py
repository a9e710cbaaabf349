"""Several servers over one store, for the tests and the torture of what they share."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from click.testing import CliRunner, Result

from console_link import console_link
from gripfast.edges.cli.main import main
from gripfast.host.questions.everywhere import EverywhereQueue
from gripfast.host.questions.question import Questions
from gripfast.host.questions.queue import QuestionQueue
from gripfast.host.questions.redis_questions import RedisQuestions

HANG = 60.0
TOKENS = {"ann": "a" * 24, "bob": "b" * 24}
OLDER, NEWER = "2025-11-25", "2026-07-28"
_HELLO: dict[str, Any] = {
    "protocolVersion": OLDER,
    "capabilities": {},
    "clientInfo": {"name": "fleet", "version": "0"},
}
_META = {
    "io.modelcontextprotocol/protocolVersion": NEWER,
    "io.modelcontextprotocol/clientInfo": {"name": "fleet", "version": "0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Server:
    """A real server as a process of its own, with a state directory of its own unless one is given."""

    def __init__(self, root: Path, home: Path, store: str | None, *options: str, port: int = 0) -> None:
        home.mkdir(exist_ok=True)
        tokens = home / f"tokens-{time.monotonic_ns()}"
        tokens.write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()), encoding="utf-8")
        tokens.chmod(0o600)
        words = [sys.executable, "-m", "gripfast", "serve", "--root", str(root), "--http", f"127.0.0.1:{port}"]
        words += ["--token-file", str(tokens), *([] if "--config" in options else ["--rules", "none"]), *options]
        words += ["--store", store] if store else []
        self._words, self._root, self._screen, self._store = words, root, home / "screen", store
        self._home = {**os.environ, "XDG_STATE_HOME": str(home), "XDG_CACHE_HOME": str(home)}
        self.port, self._console = 0, ""
        self.start()

    def start(self) -> None:
        """Starts it, on the same port if it was started before."""
        words = [word if word != "127.0.0.1:0" else f"127.0.0.1:{self.port}" for word in self._words]
        screen = self.screen = self._screen.with_name(f"screen-{time.monotonic_ns()}")
        with open(screen, "wb") as file:
            self.process = subprocess.Popen(words, cwd=self._root, env=self._home, stderr=file)
        try:
            self._wait_until_it_serves(screen)
        except BaseException:
            self.kill()
            raise

    def _wait_until_it_serves(self, screen: Path) -> None:
        deadline = time.monotonic() + HANG
        while "Ctrl-C" not in (text := screen.read_text(encoding="utf-8")):
            assert self.process.poll() is None and time.monotonic() < deadline, text
            time.sleep(0.02)
        self.port = int(text.split(" tools at ")[1].split()[0].split(":")[2].split("/")[0])
        self._console = console_link(text)

    def command(self, *words: str, shares: bool = True) -> Result:
        """Runs a command of gripfast as the server's user would on its machine."""
        words = (*words, *(["--store", self._store] if self._store and shares else []))
        places = {name: self._home[name] for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
        return CliRunner().invoke(main, words, env=places)

    def questions(self) -> Questions:
        """The questions that a command on its machine sees."""
        local = QuestionQueue(Path(self._home["XDG_STATE_HOME"], "gripfast", "questions"))
        return local if self._store is None else EverywhereQueue(local, RedisQuestions(self._store))

    def console(self) -> Callable[..., Any]:
        """Opens the console of this server: a function that asks its page's interface. Works once."""
        status, headers, _ = self._get("GET", f"/console?{self._console.partition('?')[2]}")
        assert status == 200, status
        cookie, secret = headers["set-cookie"].split(";")[0], headers["refresh"].split("!")[1]
        known = {"Cookie": cookie, "X-Gripfast-Console": secret, "Origin": f"http://127.0.0.1:{self.port}"}

        def ask(what: str, body: dict[str, Any] | None = None, **parameters: str) -> Any:
            path = f"/console/api/{what}?{urlencode(parameters)}"
            status, _, text = self._get("POST" if body else "GET", path, json.dumps(body) if body else None, known)
            assert status == 200, text
            return json.loads(text)

        return ask

    def _get(
        self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, str]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=HANG)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    @property
    def link(self) -> str:
        """Opens its console once."""
        return self._console

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(HANG)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(HANG)
            except subprocess.TimeoutExpired:
                self.kill()
                raise


@dataclass
class Answer:
    status: int
    text: str = ""
    is_error: bool = False
    id: str = ""


@dataclass
class Person:
    """A client of either generation that chooses which server each of its requests goes to."""

    token: str = TOKENS["ann"]
    generation: str = "older"
    name: str = ""
    session: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    _number: int = 0
    able: dict[str, Any] = field(default_factory=dict[str, Any])
    """The capabilities that it names when it begins."""

    @property
    def number(self) -> int:
        """The id of the last request."""
        return self._number

    def begin(self, port: int) -> Person:
        answer = self.hello(port)
        assert answer.status == 200, answer
        return self

    def hello(self, port: int) -> Answer:
        """Begins a session, if the generation has any."""
        if self.generation != "older":
            return Answer(200)
        self.session = ""
        answer = self.send(port, "initialize", {**_HELLO, "capabilities": self.able})
        self.session = answer.id
        if answer.status == 200:
            self.send(port, "notifications/initialized", {})
        return answer

    def call(self, port: int, tool: str, **arguments: Any) -> Answer:
        return self.send(port, "tools/call", {"name": tool, "arguments": arguments})

    @contextmanager
    def messages(self, port: int, tool: str, **arguments: Any) -> Generator[Iterator[dict[str, Any]]]:
        """A call of the older protocol, and the messages of its stream while they come, the answer among them."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": "tools/call"}
        body = json.dumps({**message, "params": {"name": tool, "arguments": arguments}})
        connection = HTTPConnection("127.0.0.1", port, timeout=HANG)
        try:
            connection.request("POST", "/mcp", body, self._known())
            stream = connection.getresponse()
            yield (json.loads(line[5:]) for line in stream if line.startswith(b"data:") and line[5:].strip())
        finally:
            connection.close()

    def reply(self, port: int, id: object, result: dict[str, Any]) -> int:
        """Answers a request of the server. Returns the status."""
        body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
        return self.post(port, body, self._known()).status

    def _known(self) -> dict[str, str]:
        known = {
            "Authorization": f"Bearer {self.token}",
            "Mcp-Session-Id": self.session,
            "Mcp-Protocol-Version": OLDER,
        }
        return {**known, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def send(self, port: int, method: str, params: dict[str, Any]) -> Answer:
        """Sends one message. Raises OSError or HTTPException if there is no whole answer."""
        self._number += 1
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **self.headers}
        headers["Accept"] = "application/json, text/event-stream"
        if not method.startswith("notifications/"):
            message["id"] = self._number
        if self.generation == "newer":
            params["_meta"] = {**_META, **({"gripfast/session": self.name} if self.name else {})}
            headers |= {"Mcp-Protocol-Version": NEWER, "Mcp-Method": method, "Mcp-Name": params.get("name", "")}
        elif self.session:
            headers |= {"Mcp-Session-Id": self.session, "Mcp-Protocol-Version": OLDER}
        return self.post(port, json.dumps(message).encode(), headers, self._number)

    def post(self, port: int, body: bytes, headers: dict[str, str], number: int | None = None) -> Answer:
        connection = HTTPConnection("127.0.0.1", port, timeout=HANG)
        try:
            connection.request("POST", "/mcp", body, headers)
            answer = connection.getresponse()
            id, data = answer.headers.get("mcp-session-id", ""), answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            return Answer(answer.status, data, id=id)
        message = _message_in(data, number)
        result = message.get("result", {})
        text = "\n".join(part.get("text", "") for part in result.get("content", ()))
        return Answer(200, text or json.dumps(message.get("error", result)), bool(result.get("isError")), id)

    def delete(self, port: int) -> int:
        connection = HTTPConnection("127.0.0.1", port, timeout=HANG)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Mcp-Session-Id": self.session}
            connection.request("DELETE", "/mcp", headers=headers)
            return connection.getresponse().status
        finally:
            connection.close()


def _message_in(data: str, number: int | None) -> dict[str, Any]:
    """The answer to a request, as JSON or in a stream of events."""
    if data.startswith("{"):
        return json.loads(data)
    for line in data.splitlines():
        if line.startswith("data:") and line[5:].strip():
            message = json.loads(line[5:])
            if message.get("id") == number and "method" not in message:
                return message
    raise HTTPException("the stream ended without an answer")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def servers(root: Path, scratch: Path, store: str | None, count: int, *options: str) -> Generator[list[Server]]:
    """Servers over one store. Without a Redis they have one state directory, as on one machine."""
    homes = [scratch / ("home" if store is None else f"home{number}") for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        starting = [pool.submit(Server, root, home, store, *options) for home in homes]
    try:
        yield [one.result() for one in starting]
    finally:
        with ThreadPoolExecutor(count) as pool:
            for one in starting:
                if one.exception() is None:
                    pool.submit(one.result().end)


class Proxy:
    """A real nginx before the servers, which sends each request to the next one."""

    def __init__(self, scratch: Path, port: int, behind: list[int]) -> None:
        place = scratch / "nginx"
        place.mkdir()
        servers = "".join(f"server 127.0.0.1:{one} max_fails=0;" for one in behind)
        folders = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{name}_temp_path {place}/{name};" for name in folders)
        (place / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {place}/pid; error_log {place}/error.log;"
            "events { worker_connections 1024; }"
            f"http {{ access_log off; {paths} upstream fleet {{ {servers} }}"
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://fleet; proxy_http_version 1.1;"
            "proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr;"
            "proxy_buffering off; proxy_read_timeout 120s; client_max_body_size 16m; } } }",
            encoding="utf-8",
        )
        self._words = ["nginx", "-p", str(place), "-e", f"{place}/error.log", "-c", f"{place}/nginx.conf"]
        self._port = port

    def __enter__(self) -> Proxy:
        self._process = subprocess.Popen(self._words)
        deadline = time.monotonic() + HANG
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port)).close()
                return self
            except OSError:
                assert self._process.poll() is None and time.monotonic() < deadline, "nginx did not start"
                time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
