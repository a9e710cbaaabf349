"""The guide to several servers, followed: Redis, two servers and nginx with the guide's own lines, and a death."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import anyio
import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from fleet_servers import free_port
from gripfast.edges.cli.main import main

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed"),
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed"),
]
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "several-servers.md"
HANG = 60.0
TOKENS = {"ann": "a" * 24, "bob": "b" * 24}


def block(language: str, number: int = 0) -> str:
    text = GUIDE.read_text(encoding="utf-8").partition("## From one server to two")[2]
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[number]


class Place:
    """This machine instead of the guide's four: other ports, other paths, and no certificate."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "project"
        self.root.mkdir()
        self.redis, self.one, self.two, self.proxy = (free_port() for _ in range(4))

    def put(self, text: str) -> str:
        for there, here in (
            ("10.0.0.9:6379", f"127.0.0.1:{self.redis}"),
            ("bind 10.0.0.9", f"bind 127.0.0.1\nport {self.redis}\ndir {self.home}"),
            ("10.0.0.1:8765", f"127.0.0.1:{self.one}"),
            ("10.0.0.2:8765", f"127.0.0.1:{self.two}"),
            ("https://tools.example.org", f"http://127.0.0.1:{self.proxy}"),
            ("listen 443 ssl", f"listen 127.0.0.1:{self.proxy}"),
            ("proxy_set_header Host $host", "proxy_set_header Host $http_host"),  # its port is not the usual one
            ("/etc/gripfast", str(self.home)),
            ("/srv/project", str(self.root)),
            ("PASSWORD", "a-password"),
        ):
            text = text.replace(there, here)
        return text

    def write(self, name: str, text: str) -> Path:
        path = self.home / name
        path.touch(0o600)
        path.write_text(self.put(text), encoding="utf-8")
        return path


@contextmanager
def running(words: list[str], is_ready: Callable[[], bool], **options: str) -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=os.environ | options)
    try:
        deadline = time.monotonic() + HANG
        while not is_ready():
            assert process.poll() is None and time.monotonic() < deadline, words
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(HANG)


def answers(port: int, path: str = "/readyz") -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=HANG)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status == 200 and json.loads(answer.read()) == {"ready": True}
    except (OSError, ValueError):
        return False
    finally:
        connection.close()


def redis_in(place: Place) -> tuple[list[str], Callable[[], bool]]:
    file = place.write("redis.conf", block("text"))
    check = place.put(block("sh").splitlines()[1].partition("#")[0]).split()
    check[check.index("-h") + 1 : check.index("-h") + 2] = ["127.0.0.1", "-p", f"{place.redis}"]
    return ["redis-server", str(file)], lambda: b"PONG" in subprocess.run(check, capture_output=True).stdout


def server_in(place: Place, port: int) -> tuple[list[str], Callable[[], bool], dict[str, str]]:
    """The guide's line, for either server; each has a state directory of its own, as on a machine of its own."""
    line = place.put(block("sh", 1)).replace(f":{place.one} ", f":{port} ").split()
    home = {name: str(place.home / f"{port}") for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME")}
    return [sys.executable, "-m", *line], lambda: answers(port), home


def nginx_in(place: Place) -> tuple[list[str], Callable[[], bool]]:
    folders = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{name}_temp_path {place.home}/{name};" for name in folders)
    main = f"daemon off; master_process off; pid {place.home}/pid; error_log {place.home}/log; events {{}}"
    file = place.write("nginx.conf", f"{main} http {{ access_log off; {paths} {block('nginx')} }}")
    words = ["nginx", "-e", f"{place.home}/log", "-p", str(place.home), "-c", str(file)]
    return words, lambda: answers(place.proxy)


async def person(stack: AsyncExitStack, place: Place, name: str, mode: str) -> Client:
    """Somebody's client, which knows the address of the proxy and a token."""
    headers = {"Authorization": f"Bearer {TOKENS[name]}", "Gripfast-Session": "window 1"}
    web = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=HANG))
    at = streamable_http_client(f"http://127.0.0.1:{place.proxy}/mcp", http_client=web)
    return await stack.enter_async_context(Client(at, mode=mode))  # pyright: ignore[reportArgumentType] - a literal


def text_of(answer: CallToolResult) -> str:
    return " ".join(getattr(part, "text", "") for part in answer.content)


async def test_two_people_go_on_when_one_of_two_servers_dies(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("tokens", "".join(f"{name} {token}\n" for name, token in TOKENS.items()))
    rules = '[permissions]\ndefault_action = "allow"\n[[permissions.rule]]\ntool = "Bash"\npattern = "make *"\n'
    config = place.write("gripfast.toml", block("toml") + rules + 'action = "ask"\n')
    files = {name: place.root / f"{name}.txt" for name in TOKENS}
    for file in files.values():
        file.write_text("one\n", encoding="utf-8")
    with ExitStack() as machines:
        machines.enter_context(running(*redis_in(place)))
        started = [server_in(place, port) for port in (place.one, place.two)]
        servers = [machines.enter_context(running(words, ready, **home)) for words, ready, home in started]
        machines.enter_context(running(*nginx_in(place)))
        async with AsyncExitStack() as stack:
            people = {
                "ann": await person(stack, place, "ann", "legacy"),
                "bob": await person(stack, place, "bob", "2026-07-28"),
            }
            for name, client in people.items():
                assert not (await client.call_tool("Read", {"file_path": files[name].name})).is_error
            servers[0].kill()
            servers[0].wait(HANG)
            for name, client in people.items():
                edit = {"file_path": files[name].name, "old_string": "one", "new_string": name}
                answer = await client.call_tool("Edit", edit)
                assert not answer.is_error, answer
                assert files[name].read_text(encoding="utf-8") == f"{name}\n"
            await asks_and_is_answered(people["bob"], config, started[0][2])


async def asks_and_is_answered(client: Client, config: Path, home: dict[str, str]) -> None:
    """A question of the server that is left, answered on the machine whose server is dead."""
    answers: list[CallToolResult] = []

    async def call() -> None:
        answers.append(await client.call_tool("Bash", {"command": "make it"}))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        found: list[dict[str, str]] = []
        with anyio.fail_after(HANG):
            while not found:
                await anyio.sleep(0.1)
                listed = CliRunner().invoke(main, ["approvals", "--json", "--config", str(config)], env=home)
                found = json.loads(listed.stdout)
        deny = ["deny", found[0]["id"], "--config", str(config), "--because", "not today"]
        assert CliRunner().invoke(main, deny, env=home).exit_code == 0
    assert "not today" in text_of(answers[0])
