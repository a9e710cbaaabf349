"""Addresses to listen on."""

from __future__ import annotations

import ipaddress
import socket
from typing import TypeAlias
from urllib.parse import urlsplit

from gripfast.errors import InvalidArgument
from gripfast.records import dataclass

Listening: TypeAlias = socket.socket


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_everywhere(self) -> bool:
        return self.host in ("0.0.0.0", "::")


def parse_address(text: str) -> Address:
    """Parses `HOST:PORT`, `[IPV6]:PORT`, or a port alone, which means loopback. Port 0 means any free port."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InvalidArgument(f"{text!r} is not an address; write HOST:PORT, for example 127.0.0.1:8765")
    return Address(host, int(port))


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """Where clients reach a server, and the Host headers they send to it."""

    text: str
    hosts: tuple[str, ...]

    @property
    def origin(self) -> str:
        parts = urlsplit(self.text)
        return f"{parts.scheme}://{parts.netloc}"


def parse_url(text: str) -> PublicUrl:
    """Parses the URL of a server: `https://tools.example.org`, with or without the path `/mcp`."""
    parts = urlsplit(text)
    try:
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        port = None
    if port is None or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidArgument(f"{text!r} is not a server's URL; write one such as https://tools.example.org/mcp")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    bare = (host,) if parts.port is None else ()
    path = parts.path.rstrip("/") or "/mcp"
    return PublicUrl(f"{parts.scheme}://{parts.netloc}{path}", (*bare, f"{host}:{port}"))


def listen(address: Address, *, else_any_port: bool = False) -> tuple[socket.socket, Address]:
    """A listening socket and its actual address. Raises InvalidArgument if the address can't be used."""
    try:
        taken = _bound(address)
    except OSError as fault:
        if not else_any_port:
            hint = "; give another port, or 0 for any free one" if address.port else ""
            raise InvalidArgument(f"can't listen on {address}: {fault.strerror or fault}{hint}") from None
        return listen(Address(address.host, 0))
    return taken, Address(address.host, taken.getsockname()[1])


def _bound(address: Address) -> socket.socket:
    family, kind, protocol, _, where = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(where)
        found.listen(128)
    except OSError:
        found.close()
        raise
    found.setblocking(False)
    return found
