"""Results that earlier starts of this program have stored, so that the next start is faster.

The key of an entry is a digest of everything it depends on: the code, the installed packages, the arguments, the
files they name, the user's configuration, and whatever decides which sandbox works. If anything differs, the entry is
not found, so an entry is either right or missing. This module imports little, because it is used before anything
else is loaded.
"""

from __future__ import annotations

import os
import stat
import sys
from hashlib import blake2b

from gripfast.host.program.homes import state_home

_FORMAT = b"gripfast ready 1"
_LARGEST = 4 << 20
_MOST_ENTRIES = 64
_CONFIGURATIONS = ("gripfast.toml", os.path.join("gripfast", "gripfast.toml"))
_IN_WORKSPACE = ".gripfast.toml"
_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM", "LANG", "LC_ALL")
_PROGRAMS = ("/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin")
# Which sandbox works depends on these settings, see user_namespaces(7) and AppArmor's restriction of user namespaces.
_SWITCHES = (
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/user/max_user_namespaces",
    "/sys/kernel/security/lsm",
)
_OF_STATUS = (b"Uid", b"Cap", b"NoNewPrivs", b"Seccomp")


def circumstances(arguments: list[str]) -> bytes:
    """The key of an entry: a digest of everything that it may depend on."""
    digest = blake2b(_FORMAT, digest_size=24)
    for part in (*_program(), *_environment(), *_machine(), *_named_by(arguments)):
        digest.update(repr(part).encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest().encode()


def terminal() -> str:
    """Whether standard output is a terminal, and how large."""
    try:
        return str(os.get_terminal_size(1)) if os.isatty(1) else ""
    except OSError:
        return ""


def completes() -> bool:
    """Whether a shell is asking for completions, which depend on more than the arguments."""
    return "_GRIPFAST_COMPLETE" in os.environ


def load(key: bytes) -> bytes | None:
    """The entry with this key; None if there is none, it is damaged, or another user owns it."""
    try:
        fd = os.open(os.path.join(_directory(), key.decode()), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, RuntimeError):
        return None
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077 or not stat.S_ISREG(found.st_mode):
            return None
        head, _, body = file.read(_LARGEST).partition(b"\n")
    return body if head == _seal(key, body) else None


def save(key: bytes, body: bytes) -> None:
    """Stores an entry for the next start. Does nothing if it can't be written."""
    if len(body) > _LARGEST // 2:
        return
    try:
        folder = _own_directory()
        temporary = os.path.join(folder, f".{os.getpid()}.{key.decode()}")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(_seal(key, body) + b"\n" + body)
        os.replace(temporary, os.path.join(folder, key.decode()))
        _drop_oldest(folder)
    except (OSError, RuntimeError):
        return


def drop(key: bytes) -> None:
    """Deletes an entry."""
    try:
        os.unlink(os.path.join(_directory(), key.decode()))
    except (OSError, RuntimeError):
        return


def _seal(key: bytes, body: bytes) -> bytes:
    return blake2b(_FORMAT + key + body, digest_size=24).hexdigest().encode()


def _directory() -> str:
    return os.path.join(state_home(), "gripfast", "ready")


def _own_directory() -> str:
    folder = _directory()
    os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(folder) from None
    return folder


def _drop_oldest(folder: str) -> None:
    with os.scandir(folder) as entries:
        found = sorted((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in entries)
    for _, path in found[:-_MOST_ENTRIES]:
        os.unlink(path)


# ---- circumstances ----


def _program() -> list[object]:
    """The interpreter, the packages installed for it, and our own code."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    places = [(place, _changed(place)) for place in sys.path]
    return [sys.version, sys.executable, places, sorted(_files_of(package))]


def _files_of(folder: str) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                found += _files_of(entry.path) if entry.name != "__pycache__" else []
            else:
                facts = entry.stat()
                found.append((entry.path, facts.st_mtime_ns, facts.st_size))
    return found


def _environment() -> list[object]:
    ours = sorted(item for item in os.environ.items() if item[0].startswith(("GRIPFAST_", "_GRIPFAST_")))
    return [ours, [os.environ.get(name) for name in _VARIABLES], [_content(path) for path in _own_configurations()]]


def _own_configurations() -> list[str]:
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = base if os.path.isabs(base) else os.path.join(os.path.expanduser("~"), ".config")
    return [os.path.join(folder, name) for name in _CONFIGURATIONS]


def _machine() -> list[object]:
    """What decides which sandbox works here."""
    programs = [_changed(os.path.join(place, "bwrap")) for place in _PROGRAMS]
    status = (_content("/proc/self/status") or b"").split(b"\n")
    own = [line for line in status if line.startswith(_OF_STATUS)]
    return [os.uname(), programs, own, [_content(path) for path in _SWITCHES], _link("/proc/self/ns/user")]


def _named_by(arguments: list[str]) -> list[object]:
    """The arguments, the state of the files and directories they name, and where our code is relative to those."""
    words = [part for word in arguments for part in dict.fromkeys((word, word.partition("=")[2])) if part]
    return [arguments, [_led_to(word) for word in words], _code_beneath(".")]


def _led_to(word: str) -> object:
    """What identifies a path's state: the content of a file, the configuration files in a directory."""
    path = os.path.expanduser(word)
    if os.path.isdir(path):
        inside = os.path.join(path, _IN_WORKSPACE)
        return "directory", os.path.lexists(inside), _content(inside), _code_beneath(path)
    return _content(path)


def _code_beneath(folder: str) -> bool:
    base = os.path.realpath(folder).rstrip("/") + "/"
    return any(os.path.realpath(place).startswith(base) for place in (__file__, sys.prefix, sys.executable))


def _changed(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _content(path: str) -> bytes | None:
    """The content of a regular file, or of one in /proc or /sys. Never blocks on a FIFO or device."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return None
    try:
        return os.read(fd, _LARGEST) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
