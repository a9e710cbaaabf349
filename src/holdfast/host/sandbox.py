"""The sandbox of shell commands: bubblewrap, else Landlock, else none; and what each of them holds.

bwrap     a view of the machine that is read-only except for the scope and a private /tmp; protected names are
          read-only again inside it, denied ones are hidden, /run is masked, processes are its own
landlock  the kernel refuses writes outside the scope and the session's temporary directory; it can't take back
          a name inside a writable directory, so .git and the like are not protected from commands
none      commands can do what the user can
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.errors import InvalidArgument
from holdfast.host.paths import is_below

Mode: TypeAlias = Literal["auto", "require", "off"]
Level: TypeAlias = Literal["bwrap", "landlock", "none"]

WORDS: dict[Level, str] = {
    "bwrap": (
        "sandbox bwrap: commands write only inside the workspace and a private /tmp;"
        " protected names such as .git are read-only"
    ),
    "landlock": (
        "sandbox landlock: commands write only inside the workspace and $TMPDIR;"
        " protected names such as .git are not protected from commands"
    ),
    "none": "sandbox none: commands can read and write whatever the user can",
}
# Without these a root user's shell can't use a workspace that belongs to somebody else.
_ROOT_KEEPS = ("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID")
# Tried in this order: the first that works is used. Containers often allow only one of them.
_SPACES: tuple[tuple[str, ...], ...] = (
    ("--unshare-pid", "--as-pid-1", "--unshare-ipc", "--proc", "/proc"),
    ("--unshare-user", "--unshare-pid", "--as-pid-1", "--unshare-ipc", "--proc", "/proc"),
    ("--unshare-ipc",),
)
_PROBE_SECONDS = 10
_SYSTEM_PLACES = ("/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin")
# A fresh /proc lets root turn these; they belong to the machine.
_KERNEL_SWITCHES = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/acpi", "/proc/scsi")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The level that works here. `faults` says why the better ones don't."""

    level: Level
    program: str = ""
    spaces: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return WORDS[self.level]


@dataclass(frozen=True, slots=True)
class Walls:
    """What a sandbox is built around: real, absolute paths."""

    write: tuple[str, ...]
    read: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    temporary: str = ""


def choose(mode: Mode = "auto") -> Sandbox:
    """The best sandbox that works on this machine, tried, not guessed. `require` refuses to go without."""
    if mode == "off":
        return Sandbox("none", faults=("turned off by sandbox = 'off'",))
    found = _best()
    if mode == "require" and found.level == "none":
        reasons = "; ".join(found.faults)
        raise InvalidArgument(
            f"sandbox = 'require', but neither bubblewrap nor Landlock works here ({reasons}); "
            "install bubblewrap, or set sandbox = 'auto' to run commands without one"
        )
    return found


@functools.cache
def _best() -> Sandbox:
    faults: list[str] = []
    program = find_program("bwrap", on_path=False)
    if not program:
        faults.append("bwrap: not installed")
    for spaces in _SPACES if program else ():
        fault = _try_bwrap(program, spaces)
        if fault is None:
            return Sandbox("bwrap", program, spaces, tuple(faults))
        faults.append(f"bwrap: {fault}")
    fault = _try_landlock()
    if fault is None:
        return Sandbox("landlock", faults=tuple(faults))
    return Sandbox("none", faults=(*faults, f"landlock: {fault}"))


def find_program(name: str, within: Sequence[str] = (), *, on_path: bool = True) -> str:
    """A program by absolute path from the system's places, then from PATH, never from a workspace (`within`). Who
    does not know the workspace does not look on PATH, which may lead into it."""
    places = [*_SYSTEM_PLACES]
    if on_path:
        places += [place for place in os.environ.get("PATH", "").split(":") if place.startswith("/")]
    for place in places:
        if not is_below(os.path.realpath(place), *within) and (found := shutil.which(name, path=place)):
            return found
    return ""


# ---- bubblewrap ----


def bwrap_arguments(sandbox: Sandbox, walls: Walls, program: Sequence[str]) -> list[str]:
    """The command line that runs `program` inside the walls. Later mounts lie over earlier ones."""
    lines = [
        [sandbox.program, "--die-with-parent"],
        _capabilities(),
        *_base(walls),
        list(sandbox.spaces),
        *(["--ro-bind-try", path, path] for path in _KERNEL_SWITCHES),
        ["--bind", walls.temporary, "/tmp"],
        *(["--ro-bind", path, path] for path in _needed(program)),
        *(["--ro-bind", path, path] for path in walls.read if path not in walls.write and path != "/"),
        *(["--bind", path, path] for path in sorted(walls.write, key=len) if path != "/"),
        *(["--bind", path, path] for path in _pinned(walls)),
        *(["--ro-bind", path, path] for path in walls.protected),
        *(_hidden(path) for path in walls.denied),
        ["--chdir", "/", "--", *program],
    ]
    return [word for line in lines for word in line]


def _capabilities() -> list[str]:
    keeps = _ROOT_KEEPS if os.geteuid() == 0 else ()
    return ["--cap-drop", "ALL", *(word for name in keeps for word in ("--cap-add", name))]


def _base(walls: Walls) -> Iterator[list[str]]:
    yield ["--bind" if "/" in walls.write else "--ro-bind", "/", "/"]
    yield ["--dev", "/dev"]
    if os.path.isdir("/run"):
        yield ["--tmpfs", "/run"]
    resolver = os.path.realpath("/etc/resolv.conf")
    if resolver.startswith("/run/") and os.path.exists(resolver):
        yield ["--ro-bind", resolver, resolver]


def _needed(program: Sequence[str]) -> list[str]:
    """The interpreter and its program, where the masks over /tmp and /run would hide them."""
    wanted = [sys.base_prefix, *(word for word in program if word.startswith("/"))]
    return [path for path in wanted if path.startswith(("/tmp/", "/run/"))]


def _pinned(walls: Walls) -> list[str]:
    """A writable `.git` with protected names in it is mounted on itself: a mount can't be moved out of the way."""
    parents = dict.fromkeys(os.path.dirname(path) for path in walls.protected)
    return [path for path in parents if os.path.basename(path) == ".git"]


def _hidden(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--perms", "0000", "--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]


def _try_bwrap(program: str, spaces: tuple[str, ...]) -> str | None:
    """Runs a shell in a small sandbox: a write inside must succeed, one outside must not. None: it holds."""
    with tempfile.TemporaryDirectory(prefix="holdfast-probe-") as place:
        inside, outside = os.path.join(place, "in"), os.path.join(place, "out")
        os.mkdir(inside)
        os.mkdir(outside)
        script = f"echo x > {inside}/f; echo x > {outside}/f; mount -o remount,rw,bind / && echo x > {outside}/f"
        command = [program, *_capabilities(), "--ro-bind", "/", "/", "--dev", "/dev", *spaces]
        command += ["--bind", inside, inside, "--", "/bin/sh", "-c", f"{script}; exit 0"]
        fault = _run_probe(command)
        return fault or _held(inside, outside)


def _held(inside: str, outside: str) -> str | None:
    if os.path.exists(os.path.join(outside, "f")):
        return "it let a write outside the scope through"
    if not os.path.exists(os.path.join(inside, "f")):
        return "it refused a write inside the scope"
    return None


def _run_probe(command: Sequence[str], pass_fds: Sequence[int] = ()) -> str | None:
    try:
        done = subprocess.run(
            command,
            env={"PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            pass_fds=pass_fds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be started ({type(error).__name__})"
    if done.returncode == 0:
        return None
    words = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
    return words[0][:200]


# ---- Landlock ----

_CREATE_RULESET, _ADD_RULE = 444, 445
_RULE_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_MAKE_DEVICES = 1 << 6 | 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_SCOPE_SIGNAL = 2
_DEVICES = "null zero full random urandom tty ptmx pts shm".split()


class _RulesetAttribute(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def landlock_version() -> int:
    """The kernel's Landlock ABI; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def landlock_ruleset(write: Sequence[str]) -> int:
    """A descriptor of a ruleset: everything may be read, only `write` and the harmless devices written.

    From ABI 6 on it also keeps signals inside, so that a command can't end the server.
    """
    version = landlock_version()
    handled = _WRITE_FILE | _MAKE_AND_REMOVE
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    handled |= _IOCTL_DEVICE if version >= 5 else 0
    attribute = _RulesetAttribute(handled, 0, _SCOPE_SIGNAL if version >= 6 else 0)
    size = ctypes.sizeof(attribute) if version >= 6 else 8
    ruleset = _syscall(_CREATE_RULESET, ctypes.byref(attribute), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "Landlock is not available")
    try:
        for path in (*write, *(f"/dev/{name}" for name in _DEVICES)):
            _allow(ruleset, path, handled & ~_MAKE_DEVICES)
    except OSError:
        os.close(ruleset)
        raise
    return ruleset


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE
        rule = _PathBeneath(access, place)
        if _syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_RULE_PATH_BENEATH), ctypes.byref(rule), 0):
            raise OSError(ctypes.get_errno(), f"Landlock refused a rule for {path}")
    finally:
        os.close(place)


def _syscall(number: int, *arguments: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))


def _try_landlock() -> str | None:
    """Writes under a ruleset, in a process of its own: inside must succeed, outside must not. None: it holds."""
    if landlock_version() == 0:
        return "this kernel does not have it"
    with tempfile.TemporaryDirectory(prefix="holdfast-probe-") as place:
        inside, outside = os.path.join(place, "in"), os.path.join(place, "out")
        os.mkdir(inside)
        os.mkdir(outside)
        try:
            ruleset = landlock_ruleset([inside])
        except OSError as error:
            return str(error)
        try:
            program = [interpreter(), "-I", "-S", broker_file(), "try", str(ruleset)]
            fault = _run_probe([*program, f"{inside}/f", f"{outside}/f"], pass_fds=[ruleset])
        finally:
            os.close(ruleset)
        return fault or _held(inside, outside)


def interpreter() -> str:
    """The Python that runs the broker: the real one, not a virtual environment's link to it."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def broker_file() -> str:
    return os.path.join(os.path.dirname(os.path.realpath(__file__)), "broker.py")
