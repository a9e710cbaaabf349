"""The line to a supervisor or to the broker: a socket that carries packets of words."""

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


def receive_quietly(line: socket.socket) -> list[bytes]:
    try:
        return receive(line)
    except BlockingIOError:
        return []
