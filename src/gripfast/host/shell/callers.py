"""Callers: whether a command of an agent is at the other end of a connection on this machine.

A command may connect to a port on loopback, and it can read files of the user, such as what a browser stores. So a
page that takes a person's answers must know that no command asks. The kernel's table of connections (proc_net(5)) has
the socket at the other end, and /proc/PID/fd says who holds it. Commands are what runs below a warden of any session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from ipaddress import ip_address

from gripfast.host.shell.broker import processes
from gripfast.records import dataclass

_TABLES = {4: "/proc/net/tcp", 6: "/proc/net/tcp6"}
_PROGRAM = b"/gripfast/host/shell/broker.py"
_FORWARDERS = (b"sshd",)  # hide their descriptors, and connect for a person who is elsewhere
_KNOWN = 256
_LOOKS = 3
_ESTABLISHED = b"01"  # TCP_ESTABLISHED


@dataclass(frozen=True, slots=True)
class _End:
    """A socket: the user that made it, and its inode, which is 0 if it was closed."""

    user: int
    inode: int


class Callers:
    """Looks up who connects. What was found about a connection is remembered."""

    def __init__(self) -> None:
        self._persons: set[int] = set()

    def is_command(self, client: tuple[str, int], server: tuple[str, int]) -> bool:
        """Whether a command holds the client's end of a connection, or nobody else can be seen that does; also if
        that end is closed. False for a connection from another machine or another user, and where there is no
        /proc. Blocks."""
        end = _other_end(client, server) if sys.platform == "linux" else None
        if end is not None and end.inode == 0:  # perhaps of a command that has ended since; it has no user any more
            return True
        if end is None or end.user != os.geteuid() or end.inode in self._persons:
            return False
        tree = dict(processes())
        commands = _commands(tree)
        if not commands:
            return False
        if not _is_held_by_person(end.inode, commands, tree):
            return True
        if len(self._persons) >= _KNOWN:
            self._persons.clear()
        self._persons.add(end.inode)
        return False


def _other_end(client: tuple[str, int], server: tuple[str, int]) -> _End | None:
    """The client's socket; None if it is not one of this machine's network, or there is no table."""
    there, here = _written(client), _written(server)
    try:
        table = _TABLES[ip_address(client[0]).version]
        looks = (_row(table, there, here) for _ in range(_LOOKS))  # a row may be left out while others come and go
        found = next((row for row in looks if row is not None), None)
        if found is None:  # from elsewhere, or closed just now: then our end is not open any more
            own = _row(table, here, there)
            return None if own is not None and own[3] == _ESTABLISHED else _End(os.geteuid(), 0)
    except OSError:
        return None
    return _End(int(found[7]), int(found[9]))


def _row(table: str, local: bytes, remote: bytes) -> list[bytes] | None:
    with open(table, "rb") as file:
        return next((row for line in file if (row := line.split())[1:3] == [local, remote]), None)


def _written(address: tuple[str, int]) -> bytes:
    """An address as the kernel's table writes it: words of four bytes in the machine's order, then the port."""
    packed = ip_address(address[0]).packed
    words = (int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4))
    return b"".join(b"%08X" % word for word in words) + b":%04X" % address[1]


def _commands(tree: Mapping[int, int]) -> set[int]:
    """Everything below a warden, except wardens that this process itself runs below."""
    own = set(_above(os.getpid(), tree))
    wardens = {pid for pid in tree if pid not in own and _is_warden(pid)}
    return {pid for pid in tree if not wardens.isdisjoint(_above(pid, tree))} if wardens else set()


def _above(pid: int, tree: Mapping[int, int]) -> Iterable[int]:
    seen: dict[int, None] = {}
    while pid in tree and pid not in seen:
        seen[pid] = None
        pid = tree[pid]
    return seen


def _is_warden(pid: int) -> bool:
    """Also a broker: both run the same program."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb", buffering=0) as file:
            words = file.read(4096).split(b"\0")
    except OSError:
        return False
    return words[1:3] == [b"-I", b"-S"] and words[3].endswith(_PROGRAM)


def _is_held_by_person(inode: int, commands: set[int], tree: Mapping[int, int]) -> bool:
    """Whether a program that is no command holds the socket, and no command does. One whose descriptors can't be
    read may be the one only if it is known to connect for others: a command can hide its own, or send the socket to
    itself and look away while it is under way."""
    if any(_holds(pid, inode) for pid in commands):
        return False
    others = tree.keys() - commands
    return any(_holds(pid, inode) for pid in others) or any(map(_may_forward, others))


def _holds(pid: int, inode: int) -> bool:
    wanted = f"socket:[{inode}]"
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            return any(_link(entry.path) == wanted for entry in entries)
    except OSError:
        return False


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _may_forward(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/comm", "rb", buffering=0) as file:
            is_forwarder = file.read(64).startswith(_FORWARDERS)
        return is_forwarder and not os.access(f"/proc/{pid}/fd", os.R_OK | os.X_OK)
    except OSError:
        return False
