"""What names this machine."""

from __future__ import annotations

import hashlib
import socket
import uuid


def host_name() -> str:
    return socket.gethostname()


def kernel_name() -> str:
    """The same for all processes on the running kernel, another for any other: device and inode numbers mean the same
    only where this is the same."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            known = file.read()
    except OSError:
        known = f"{socket.gethostname()} {uuid.getnode()}"
    return hashlib.sha256(known.encode()).hexdigest()[:8]
