"""Which part of the network commands reach: real programs against servers on loopback."""

from __future__ import annotations

import http.server
import ipaddress
import json
import shutil
import socket
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from gripfast.errors import InvalidArgument, SandboxViolation
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import NETWORK_FROM, landlock_version
from gripfast.host.shell.network import Network, parse_network
from gripfast.host.shell.sandbox import Sandbox, choose, within_network
from gripfast.host.shell.shells import Shells

NAME = "registry.test"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        named = self.headers.get("Host", "").partition(":")[0]
        body = json.dumps(
            {"host": named, "path": self.path, "name": "tiny", "versions": {}, "dist-tags": {}}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", f"{len(body)}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Generator[int]:
    """A server on loopback. The names of `.test` lead there, for whoever resolves them in this process."""
    real = socket.getaddrinfo

    def resolved(host: Any, *args: Any, **named: Any) -> Any:
        return real("127.0.0.1" if str(host).endswith(".test") else host, *args, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def namespaced() -> Sandbox:
    sandbox = choose("auto")
    try:
        within_network(sandbox, Network("list"))
    except SandboxViolation as fault:
        pytest.skip(fault.message)
    return sandbox


def output_of(tmp_path: Path, network: Network, command: str, sandbox: Sandbox) -> tuple[str, tuple[str, ...]]:
    pieces: list[bytes] = []

    async def feed(data: bytes) -> None:
        pieces.append(data)

    async def main() -> tuple[str, ...]:
        with anyio.fail_after(100):
            async with Shells(Scope.workspace(tmp_path), sandbox=sandbox, network=network) as shells:
                return (await shells.run(command, feed)).unreached

    unreached = anyio.run(main)
    return b"".join(pieces).decode(), unreached


LISTED = parse_network([NAME, "*.sub.test", "127.0.0.1"])
PROGRAMS = {
    "curl": "curl -sS -m 60 http://{name}:{port}/x",
    "curl by CONNECT": "curl -sS -m 60 -p http://{name}:{port}/x",
    "python3": "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{name}:{port}/x\").read().decode())'",
    "npm": "npm view tiny --json --fetch-retries=0 --registry http://{name}:{port}/ 2>&1 | cat",
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_listed_name_is_reached_and_no_other(program: str, tmp_path: Path, port: int) -> None:
    sandbox = namespaced()
    if shutil.which(program.split()[0]) is None:
        pytest.skip(f"{program} is not installed")
    command = PROGRAMS[program]
    other = command.format(name="other.test", port=port)
    text, unreached = output_of(tmp_path, LISTED, f"{command.format(name=NAME, port=port)}; {other}", sandbox)
    assert unreached == ("other.test",)
    if program != "npm":
        assert f'"host": "{NAME}"' in text
    assert '"host": "other.test"' not in text


def test_off_is_off_and_loopback_is_the_commands_own(tmp_path: Path, port: int) -> None:
    sandbox = namespaced()
    command = f"curl -sS -m 60 http://127.0.0.1:{port}/ || echo refused; python3 -c '{OWN_SERVER}'"
    text, _ = output_of(tmp_path, Network("off"), command, sandbox)
    assert "refused" in text
    assert "talked to itself" in text


OWN_SERVER = (
    'import socket; s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); '
    'print("talked to itself")'
)


def test_past_the_proxy_there_is_nothing(tmp_path: Path, port: int) -> None:
    command = f"curl -sS -m 60 --noproxy '*' http://127.0.0.1:{port}/ || echo refused"
    assert "refused" in output_of(tmp_path, LISTED, command, namespaced())[0]


def test_a_name_that_leads_to_a_private_address_is_refused(tmp_path: Path, port: int) -> None:
    text, unreached = output_of(
        tmp_path, parse_network([NAME]), f"curl -sS -m 60 http://{NAME}:{port}/", namespaced()
    )
    assert unreached == ("127.0.0.1",)
    assert "private address" in text


def test_under_landlock_off_refuses_tcp(tmp_path: Path, port: int) -> None:
    if landlock_version() < NETWORK_FROM:
        pytest.skip("this kernel's Landlock knows no network")
    command = f"curl -sS -m 60 http://127.0.0.1:{port}/ || echo refused"
    assert "refused" in output_of(tmp_path, Network("off"), command, Sandbox("landlock"))[0]
    assert '"host"' in output_of(tmp_path, Network("on"), command, Sandbox("landlock"))[0]


@pytest.mark.parametrize("network", [Network("off"), LISTED])
def test_where_it_can_not_be_held_no_command_runs(network: Network, tmp_path: Path) -> None:
    with pytest.raises(SandboxViolation, match="can't be enforced here"):
        output_of(tmp_path, network, "touch made", Sandbox("none"))
    assert not (tmp_path / "made").exists()
    with pytest.raises(SandboxViolation, match="names"):
        within_network(Sandbox("landlock"), LISTED)


def test_names_are_compared_as_names() -> None:
    network = parse_network(["Example.org.", "*.example.net", "10.0.0.0/8", "bücher.example"])
    assert all(map(network.allows_name, ("example.org", "a.example.net", "a.b.example.net", "10.1.2.3")))
    assert network.allows_name("xn--bcher-kva.example")
    assert not any(map(network.allows_name, ("example.net", "xexample.org", "a.example.org", "evilexample.net")))
    assert not any(map(network.allows_name, ("11.1.2.3", "[::1]", "")))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:127.0.0.1",
        "fe80::1",
        "0.0.0.0",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "224.0.0.1",
        "100.64.0.1",
    ],
)
def test_private_addresses_in_every_form_need_to_be_listed(address: str) -> None:
    one = ipaddress.ip_address(address)
    assert not parse_network(["example.org"]).allows_address("example.org", one)
    assert parse_network(["example.org", address]).allows_address("example.org", one)
    assert parse_network(["example.org"]).allows_address("example.org", ipaddress.ip_address("1.1.1.1"))


@pytest.mark.parametrize("text", ["*", "", "a b", "http://x", "*.*.x", "a..b", "x:80", "-a"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="network"):
        parse_network([text])
