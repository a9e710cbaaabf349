"""inotify(7): the kernel queues the names of what changes in watched directories.

https://man7.org/linux/man-pages/man7/inotify.7.html
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from gripfast.host.kernel.features import may_use
from gripfast.host.kernel.libc import libc
from gripfast.records import dataclass

IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE = 0x2, 0x4, 0x8
IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x40, 0x80, 0x100, 0x200
IN_DELETE_SELF, IN_MOVE_SELF, IN_UNMOUNT, IN_Q_OVERFLOW, IN_IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
_IN_ONLYDIR, _IN_DONT_FOLLOW, _IN_EXCL_UNLINK = 0x1000000, 0x2000000, 0x4000000

# Everything that changes a name, its content or its mode.
CHANGES = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
_MASK = CHANGES | IN_DELETE_SELF | IN_MOVE_SELF | _IN_ONLYDIR | _IN_DONT_FOLLOW | _IN_EXCL_UNLINK
_HEAD = struct.Struct("iIII")
_READ = 1 << 18


@dataclass(frozen=True, slots=True)
class Event:
    """One event: which watch it belongs to, what happened, and the name in that directory it happened to."""

    watch: int
    mask: int
    name: str


class Inotify:
    """One queue of events. Raises OSError if the system has none left (EMFILE) or doesn't have inotify (ENOSYS)."""

    def __init__(self) -> None:
        if not may_use("inotify"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self.fd: int = _checked(_function("inotify_init1")(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, directory: str) -> int:
        """Watches one directory, without its subdirectories. Raises OSError with ENOSPC at the user's limit of
        watches."""
        return _checked(_function("inotify_add_watch")(self.fd, os.fsencode(directory), _MASK))

    def remove(self, watch: int) -> None:
        """Ends a watch. Does nothing if it no longer exists."""
        libc().inotify_rm_watch(self.fd, watch)

    def read(self) -> list[Event]:
        """All events that are queued now."""
        events: list[Event] = []
        while True:
            try:
                data = os.read(self.fd, _READ)
            except BlockingIOError:
                return events
            events += _parsed(data)

    def close(self) -> None:
        os.close(self.fd)


def _function(name: str) -> ctypes._NamedFuncPointer:  # pyright: ignore[reportPrivateUsage] - ctypes has no public name for it
    try:
        return getattr(libc(), name)
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _parsed(data: bytes) -> list[Event]:
    events: list[Event] = []
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        name = data[at : at + length].rstrip(b"\0")
        events.append(Event(watch, mask, os.fsdecode(name)))
        at += length
    return events
