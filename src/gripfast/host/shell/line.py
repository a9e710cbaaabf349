"""The line to a supervisor or to the broker: a socket that carries packets of fields, see unix(7), SOCK_SEQPACKET."""

from __future__ import annotations

import socket
import sys

KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM


def receive(line: socket.socket) -> list[bytes]:
    try:
        return line.recv(64 * 1024).split(b"\0")
    except BlockingIOError:
        raise
    except OSError:
        return [b""]


def receive_with_socket(line: socket.socket) -> tuple[list[bytes], socket.socket | None]:
    """The fields of a packet, and the socket that came with it (SCM_RIGHTS)."""
    try:
        data, descriptors, _, _ = socket.recv_fds(line, 64 * 1024, 1)
    except BlockingIOError:
        return [], None
    except OSError:
        return [b""], None
    return data.split(b"\0"), socket.socket(fileno=descriptors[0]) if descriptors else None


def receive_quietly(line: socket.socket) -> list[bytes]:
    try:
        return receive(line)
    except BlockingIOError:
        return []
