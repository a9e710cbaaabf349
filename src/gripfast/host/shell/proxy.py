"""A proxy for commands without a network of their own: HTTP and CONNECT, to listed names only.

It listens on a socket that the broker opened inside the commands' network namespace, where it is loopback, and
connects from out here. Names are resolved here, and the address that was checked is the one connected to.
"""

from __future__ import annotations

import contextlib
import ipaddress
import selectors
import socket
import threading
from collections.abc import Generator
from urllib.parse import urlsplit

from gripfast.host.shell.network import Network, plain_name

_LARGEST_HEAD = 64 * 1024
_HEAD_SECONDS, _CONNECT_SECONDS, _STUCK_SECONDS = 30.0, 30.0, 300.0
_CHUNK = 64 * 1024
_MOST_CONNECTIONS = 256
_MOST_REFUSED = 20


class _RefusedError(Exception):
    """A request that is not served: the status line's rest, and the text for the client."""


class Proxy:
    """Serves until it is closed, with a thread for each connection."""

    def __init__(self, listener: socket.socket, network: Network) -> None:
        self._listener, self._network = listener, network
        listener.setblocking(True)
        self.port: int = listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._refused: dict[str, None] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name="gripfast-proxy", daemon=True)
        self._thread.start()

    def variables(self) -> dict[str, str]:
        """What tells programs to use it. Inside, loopback is the commands' own."""
        address = f"http://127.0.0.1:{self.port}"
        proxies = dict.fromkeys("HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy".split(), address)
        return {**proxies, **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")}

    def take_refused(self) -> list[str]:
        """The names that were refused since the last look."""
        with self._lock:
            names, self._refused = list(self._refused), {}
        return names

    def close(self) -> None:
        """Ends every connection."""
        with self._lock:
            self._closed = True
            waiting = [self._listener, *self._open]
        for one in waiting:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._thread.join(_HEAD_SECONDS)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                if self._closed:
                    return
                continue
            with self._lock:
                full = len(self._open) >= _MOST_CONNECTIONS or self._closed
            if full:
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client,), name="gripfast-proxy", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._held(client), contextlib.suppress(OSError):
            client.settimeout(_HEAD_SECONDS)
            try:
                self._forward(client)
            except _RefusedError as refusal:
                status, text = refusal.args
                body = f"{text}\n".encode(errors="replace")
                head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
                client.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)

    @contextlib.contextmanager
    def _held(self, one: socket.socket) -> Generator[None]:
        """A socket that `close` ends."""
        with self._lock:
            self._open.add(one)
        try:
            if not self._closed:
                yield
        finally:
            with self._lock:
                self._open.discard(one)
            one.close()

    def _forward(self, client: socket.socket) -> None:
        head, rest = _head(client)
        method, target, version = _request(head)
        if method == "CONNECT":
            name, port = _host_and_port(f"//{target}", None)
            first, answer = rest, b"HTTP/1.1 200 Connection established\r\n\r\n"
        else:
            name, port = _host_and_port(target, 80)
            first, answer = _rewritten(head, method, target, version) + rest, b""
        server = self._connected(name, port)
        with self._held(server):
            client.sendall(answer)
            server.sendall(first)
            _relay(client, server)

    def _connected(self, name: str, port: int) -> socket.socket:
        if not self._network.allows_name(name):
            raise self._refusal(name, f"{name} is not in the list of names that commands may reach")
        try:
            found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise _RefusedError("502 Bad Gateway", f"gripfast: {name} can't be resolved") from None
        allowed = [one for one in found if self._network.allows_address(name, _address_in(str(one[4][0])))]
        if not allowed:
            address = str(found[0][4][0])
            raise self._refusal(address, f"{name} leads to the private address {address}, which is not in the list")
        for family, kind, protocol, _, where in allowed:
            server = socket.socket(family, kind, protocol)
            server.settimeout(_CONNECT_SECONDS)
            try:
                server.connect(where)
            except OSError:
                server.close()
            else:
                return server
        raise _RefusedError("502 Bad Gateway", f"gripfast: {name}:{port} can't be reached")

    def _refusal(self, name: str, text: str) -> _RefusedError:
        with self._lock:
            if len(self._refused) < _MOST_REFUSED:
                self._refused[name] = None
        return _RefusedError("403 Forbidden", f"gripfast: {text}")


def _head(client: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > _LARGEST_HEAD:
            raise _RefusedError("431 Request Header Fields Too Large", "gripfast: the request's head is too large")
        piece = client.recv(_CHUNK)
        if not piece:
            raise ConnectionResetError
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def _request(head: bytes) -> tuple[str, str, str]:
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _RefusedError("400 Bad Request", "gripfast: not a request to a proxy")
    return words[0], words[1], words[2]


def _host_and_port(target: str, usual: int | None) -> tuple[str, int]:
    try:
        parts = urlsplit(target)
        name, port = plain_name(parts.hostname or ""), parts.port or usual
        known = usual is None or parts.scheme == "http"
    except ValueError:
        name, port, known = None, None, False
    if name is None or port is None or not known:
        raise _RefusedError("400 Bad Request", "gripfast: the request names no host and port")
    return name, port


def _rewritten(head: bytes, method: str, target: str, version: str) -> bytes:
    """The request as a server reads it, and the last on its connection."""
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = head.split(b"\r\n")[1:]
    dropped = (b"connection:", b"proxy-connection:", b"proxy-authorization:", b"keep-alive:", b"host:")
    kept = [line for line in lines if not line.lower().startswith(dropped)]
    host = f"Host: {parts.netloc.rpartition('@')[2]}".encode("latin-1")
    first = f"{method} {path} {version}".encode("latin-1")
    return b"\r\n".join([first, host, *kept, b"Connection: close", b"", b""])


def _address_in(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(text.partition("%")[0])


def _relay(client: socket.socket, server: socket.socket) -> None:
    """Moves bytes both ways until both ends are done, or neither says anything for long."""
    other = {client: server, server: client}
    with selectors.DefaultSelector() as both:
        for one in other:
            one.settimeout(_STUCK_SECONDS)
            both.register(one, selectors.EVENT_READ)
        while both.get_map():
            ready = both.select(_STUCK_SECONDS)
            if not ready:
                return
            for key, _ in ready:
                source = key.fileobj
                assert isinstance(source, socket.socket)
                data = source.recv(_CHUNK)
                if data:
                    other[source].sendall(data)
                else:
                    both.unregister(source)
                    other[source].shutdown(socket.SHUT_WR)
