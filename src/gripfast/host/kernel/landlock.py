"""Landlock: rulesets that restrict what a thread and its children may do with files.

https://docs.kernel.org/userspace-api/landlock.html and https://man7.org/linux/man-pages/man7/landlock.7.html
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterator, Sequence

from gripfast.host.kernel.features import may_use
from gripfast.host.kernel.libc import libc
from gripfast.host.kernel.prctl import gain_no_privileges
from gripfast.text.below import is_below

EXECUTE, _WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_MAKE_DEVICES = 1 << 6 | 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNAL = 1, 2
SCOPES_FROM = 6  # the first ABI that can confine signals and abstract Unix sockets to the sandbox
NETWORK_FROM = 4  # the first ABI that can refuse TCP
_BIND_TCP, _CONNECT_TCP = 1, 2
# No terminals: a rule can't tell those of the user's other programs from the command's own, which it inherits open.
_DEVICES = "null zero full random urandom tty ptmx shm".split()


class _RulesetAttribute(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def landlock_version() -> int:
    """The version of the kernel's Landlock ABI; 0 without Landlock."""
    if not may_use("landlock"):
        return 0
    return max(0, _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_CREATE_RULESET_VERSION)))


def create_ruleset(handled: int, *, scoped: int = 0, network: int = 0) -> int:
    """A descriptor of a ruleset that refuses every `handled` access that no rule allows. Raises OSError without
    Landlock."""
    attribute = _RulesetAttribute(handled, network, scoped)
    size = ctypes.sizeof(attribute) if scoped else 16 if network else 8  # an older kernel refuses unknown fields
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attribute), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "Landlock is not available")
    return ruleset


def add_rule(ruleset: int, place: int, access: int) -> None:
    """Allows `access` to an open place and everything beneath it. Raises OSError if the kernel refuses the rule."""
    rule = _PathBeneath(access, place)
    if _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), ctypes.byref(rule), 0):
        raise OSError(ctypes.get_errno(), "Landlock refused a rule")


def restrict_thread(ruleset: int) -> bool:
    """Restricts this thread, and everything it starts from now on, to a ruleset. False if the kernel refuses."""
    return gain_no_privileges() and _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0


def write_ruleset(write: Sequence[str], hidden: Sequence[str] = (), *, network: bool = True) -> int:
    """A descriptor of a ruleset that allows reading all but `hidden`, and writing only `write` and harmless devices.

    A rule can only allow. To hide a place, everything beside it and beside its parents is allowed by name, so a file
    created there later can't be read.

    Without `network`, binding or connecting a TCP socket is refused (from ABI 4 on). From ABI 6 on, a command can't
    send signals to processes outside, such as the server, nor connect to their abstract Unix sockets.
    """
    version = landlock_version()
    handled = _WRITE_FILE | _MAKE_AND_REMOVE | (READ_FILE if hidden else 0)
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    handled |= _IOCTL_DEVICE if version >= 5 else 0
    tcp = 0 if network else _BIND_TCP | _CONNECT_TCP
    ruleset = create_ruleset(handled, scoped=_scopes(version), network=tcp)
    try:
        for path in (*write, *(f"/dev/{name}" for name in _DEVICES)):
            _allow(ruleset, path, handled & ~_MAKE_DEVICES)
        for path in _beside("/", hidden) if hidden else ():
            _allow(ruleset, path, READ_FILE)
    except OSError:
        os.close(ruleset)
        raise
    return ruleset


def scope_ruleset() -> int:
    """A descriptor of a ruleset that refuses signals and abstract Unix sockets to the outside, and no file; -1 if the
    kernel can't do that."""
    version = landlock_version()
    return create_ruleset(0, scoped=_scopes(version)) if version >= SCOPES_FROM else -1


def _scopes(version: int) -> int:
    return _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNAL if version >= SCOPES_FROM else 0


def _beside(directory: str, hidden: Sequence[str]) -> Iterator[str]:
    """The outermost places below a directory that contain nothing hidden."""
    if directory in hidden:
        return
    if not any(is_below(path, directory) for path in hidden):
        yield directory
        return
    with os.scandir(directory) as entries:
        children = [entry.path for entry in entries if not entry.is_symlink()]
    for child in children:
        yield from _beside(child, hidden)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a place that doesn't exist or can't be reached needs no rule
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE
        add_rule(ruleset, place, access)
    except OSError as error:
        raise OSError(error.errno, f"Landlock refused a rule for {path}") from error
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    return int(libc().syscall(ctypes.c_long(number), *arguments))
