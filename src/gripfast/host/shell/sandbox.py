"""The sandbox of shell commands: bubblewrap, else Landlock, else none; on macOS seatbelt, else none.

bwrap     a view of the machine that is read-only except for the scope, a private /tmp and private caches; protected
          names are read-only again inside it, denied ones are hidden, /run is masked, processes are its own
landlock  the kernel refuses writes outside the scope and the session's temporary directory; it can't take back
          a name inside a writable directory, so a protected file that a command changed is put back afterwards;
          chmod, chown and file times are not restricted
seatbelt  macOS refuses writes outside the scope and the session's temporary directory and to protected names, and
          reading denied ones
none      commands can do what the user can
"""

from __future__ import annotations

import functools
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from gripfast.errors import InvalidArgument, SandboxViolation
from gripfast.host.kernel.features import may_use, why_not
from gripfast.host.kernel.landlock import NETWORK_FROM, SCOPES_FROM, landlock_version, write_ruleset
from gripfast.host.program.programs import find_program, interpreter
from gripfast.host.shell import seatbelt
from gripfast.host.shell.network import Network
from gripfast.host.shell.walls import HOOKS, SETTINGS, Mount, Walls
from gripfast.records import dataclass

SandboxMode: TypeAlias = Literal["auto", "require", "off"]
Level: TypeAlias = Literal["bwrap", "landlock", "seatbelt", "none"]

WORDS: dict[Level, str] = {
    "bwrap": (
        "sandbox bwrap: commands write only inside the workspace, a private /tmp and private caches;"
        " protected names such as .vscode are read-only, hooks and settings of git that run programs are not kept"
    ),
    "landlock": (
        "sandbox landlock: commands write only inside the workspace, $TMPDIR and private caches;"
        " protected files such as .git/hooks are put back after a command that changed them;"
        " chmod and file times are not restricted anywhere"
    ),
    "seatbelt": (
        "sandbox seatbelt: commands write only inside the workspace and $TMPDIR;"
        " protected names such as .git are read-only"
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
_TRUNCATION_FROM = 3  # the Landlock ABI that holds truncate(2)
_MOST_WORDS = 9000  # MAX_ARGS in bubblewrap.c
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
    def confines(self) -> bool:
        """Whether commands are kept from writing outside the scope."""
        return self.level != "none"

    @property
    def has_private_tmp(self) -> bool:
        """Whether `/tmp` of commands is the session's own."""
        return self.level == "bwrap"

    @property
    def hides_denied(self) -> bool:
        """Whether commands can't read denied places."""
        return self.level in ("bwrap", "seatbelt")

    @property
    def name(self) -> str:
        """The level, and what it lacks here."""
        lacks = self.lacks
        return f"{self.level} without {' and '.join(lacks)}" if lacks else self.level

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the level holds elsewhere and can't hold here, by what was tried."""
        if self.level not in ("bwrap", "landlock"):
            return ()
        version = landlock_version()
        alone = self.level == "bwrap" and "--unshare-pid" in self.spaces
        found = {
            "its own process space": self.level == "bwrap" and not alone,
            "its own shared memory": self.level == "bwrap" and "--unshare-ipc" not in self.spaces,
            "a guard on truncation": self.level == "landlock" and version < _TRUNCATION_FROM,
            "a guard on signals": not alone and version < SCOPES_FROM,
            "a guard on abstract sockets": version < SCOPES_FROM,
        }
        return tuple(name for name, is_missing in found.items() if is_missing)

    @property
    def description(self) -> str:
        return WORDS[self.level].replace(self.level, self.name, 1)


def within_network(sandbox: Sandbox, network: Network) -> Sandbox:
    """The sandbox that also limits commands to a network. Raises SandboxViolation if that is impossible here."""
    if network.kind == "on":
        return sandbox
    setting = "off" if network.kind == "off" else "a list"
    if sandbox.level == "bwrap":
        fault = _try_bwrap_without_network(sandbox.program, sandbox.spaces)
        if fault is None:
            return replace(sandbox, spaces=(*sandbox.spaces, "--unshare-net"))
    elif sandbox.level == "none":
        fault = "; ".join(sandbox.faults) or "there is no sandbox"
    elif network.kind == "list":
        fault = f"{sandbox.level} can't limit commands to names; that needs bubblewrap with a network namespace"
    elif sandbox.level == "landlock" and landlock_version() < NETWORK_FROM:
        fault = f"Landlock refuses connections only from ABI {NETWORK_FROM} on"
    else:
        return sandbox
    raise SandboxViolation(f"`network` is {setting}, which can't be enforced here, so no command runs: {fault}")


@functools.cache
def _try_bwrap_without_network(program: str, spaces: tuple[str, ...]) -> str | None:
    return _try_bwrap(program, (*spaces, "--unshare-net"))


def choose(mode: SandboxMode = "auto") -> Sandbox:
    """The best sandbox that works on this machine, tried, not guessed. `require` refuses to go without."""
    if mode == "off":
        return Sandbox("none", faults=("turned off by sandbox = 'off'",))
    found = _best()
    if mode == "require" and not found.confines:
        reasons = "; ".join(found.faults)
        raise InvalidArgument(
            f"sandbox = 'require', but none works here ({reasons}); "
            "on Linux install bubblewrap, or set sandbox = 'auto' to run commands without one"
        )
    return found


def take_as_tried(sandbox: Sandbox) -> None:
    """For a process that runs no command: this sandbox worked for an earlier one in the same circumstances."""
    _TRIED.append(sandbox)


_TRIED: list[Sandbox] = []


@functools.cache
def _best() -> Sandbox:
    if _TRIED:
        return _TRIED[0]
    return _best_on_macos() if sys.platform == "darwin" else _best_on_linux()


def _best_on_macos() -> Sandbox:
    fault = _try_seatbelt()
    if fault is None:
        return Sandbox("seatbelt", seatbelt.PROGRAM)
    return Sandbox("none", faults=(f"seatbelt: {fault}",))


def _best_on_linux() -> Sandbox:
    faults: list[str] = []
    program = find_program("bwrap", on_path=False) if may_use("namespaces") else ""
    if not program:
        faults.append(f"bwrap: {why_not('namespaces', 'not installed')}")
    for spaces in _SPACES if program else ():
        fault = _try_bwrap(program, spaces)
        if fault is None:
            return Sandbox("bwrap", program, spaces, tuple(faults))
        faults.append(f"bwrap: {fault}")
    fault = _try_landlock()
    if fault is None:
        return Sandbox("landlock", faults=tuple(faults))
    return Sandbox("none", faults=(*faults, f"landlock: {fault}"))


# ---- bubblewrap ----


def bwrap_arguments(sandbox: Sandbox, walls: Walls, sources: Mapping[str, int], program: Sequence[str]) -> list[str]:
    """The command line that runs `program` inside the walls. Later mounts lie over earlier ones. `sources` are open
    descriptors of the places to mount, which bubblewrap inherits."""
    lines = [
        [sandbox.program, "--die-with-parent"],
        _capabilities(),
        *_base(walls),
        list(sandbox.spaces),
        *(["--ro-bind-try", path, path] for path in _KERNEL_SWITCHES),
        ["--bind", walls.temporary, "/tmp"],
        ["--bind", f"{walls.temporary}/{SETTINGS}", f"/tmp/{SETTINGS}"] if walls.settings else [],
        ["--perms", "0111", "--tmpfs", f"/tmp/{HOOKS}"] if any(mount.copy for mount in walls.mounts) else [],
        *(["--ro-bind", path, path] for path in _needed(program)),
        *(["--bind", ours, place] for ours, place in walls.caches.over),
        *(["--ro-bind-try", path, path] for path in walls.caches.shown),
        *(_mounted(mount, sources) for mount in walls.mounts),
        *(["--bind", folder, folder] for folder in walls.caches.folders),
        ["--chdir", "/", "--", *program],
    ]
    words = [word for line in lines for word in line]
    if len(words) > _MOST_WORDS:
        raise SandboxViolation(
            f"too many protected and denied names to confine a command: {len(walls.mounts)} places, and bubblewrap "
            "takes about 2,900; serve a smaller directory, or name fewer in `protect` and `deny`"
        )
    return words


def _capabilities() -> list[str]:
    keeps = _ROOT_KEEPS if os.geteuid() == 0 else ()
    return ["--cap-drop", "ALL", *(word for name in keeps for word in ("--cap-add", name))]


def _base(walls: Walls) -> Iterator[list[str]]:
    yield ["--bind" if walls.everywhere else "--ro-bind", "/", "/"]
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


def _mounted(mount: Mount, sources: Mapping[str, int]) -> list[str]:
    """A place, or a copy of it, mounted on it: writable or not, it can't be moved out of the way."""
    if mount.kind == "hide":
        return _hidden(mount)
    word = "--bind" if mount.kind == "write" else "--ro-bind"
    return [word, f"/proc/self/fd/{sources[mount.path]}", mount.path]


def _hidden(mount: Mount) -> list[str]:
    if stat.S_ISDIR(mount.identity[2]):
        return ["--perms", "0111", "--tmpfs", mount.path]
    return ["--ro-bind", "/dev/null", mount.path]


def _try_bwrap(program: str, spaces: tuple[str, ...]) -> str | None:
    """Runs a shell in a small sandbox: a write inside must succeed, one outside must not. None: it holds."""
    with tempfile.TemporaryDirectory(prefix="gripfast-probe-") as place:
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


# ---- seatbelt ----


def seatbelt_profile(walls: Walls, *, network: bool = True) -> str:
    """The text sandbox-exec takes to hold a program inside the walls."""
    write = [mount.path for mount in walls.mounts if mount.kind == "write"]
    write.append(os.path.realpath(walls.temporary))
    # Tried on no Mac yet: there all of a `.git` stays read-only.
    whole = [mount.path for mount in walls.mounts if mount.kind == "write" and mount.path.endswith("/.git")]
    protected = [*whole, *(mount.path for mount in walls.mounts if mount.kind == "read")]
    denied = [mount.path for mount in walls.mounts if mount.kind == "hide"]
    return seatbelt.profile(["/"] if walls.everywhere else write, protected=protected, denied=denied, network=network)


def _try_seatbelt() -> str | None:
    """Runs a shell under a profile: a write inside must succeed, one outside must not. None: it holds."""
    with tempfile.TemporaryDirectory(prefix="gripfast-probe-") as place:
        inside, outside = (os.path.join(os.path.realpath(place), name) for name in ("in", "out"))
        os.mkdir(inside)
        os.mkdir(outside)
        script = f"echo x > {inside}/f; echo x > {outside}/f; exit 0"
        fault = _run_probe([seatbelt.PROGRAM, "-p", seatbelt.profile([inside]), "/bin/sh", "-c", script])
        return fault or _held(inside, outside)


# ---- Landlock ----


def _try_landlock() -> str | None:
    """Writes under a ruleset, in a process of its own: inside must succeed, outside must not. None: it holds."""
    if landlock_version() == 0:
        return why_not("landlock", "this kernel does not have it")
    with tempfile.TemporaryDirectory(prefix="gripfast-probe-") as place:
        inside, outside = os.path.join(place, "in"), os.path.join(place, "out")
        os.mkdir(inside)
        os.mkdir(outside)
        try:
            ruleset = write_ruleset([inside])
        except OSError as error:
            return str(error)
        try:
            program = [interpreter(), "-I", "-S", broker_file(), "try", str(ruleset)]
            fault = _run_probe([*program, f"{inside}/f", f"{outside}/f"], pass_fds=[ruleset])
        finally:
            os.close(ruleset)
        return fault or _held(inside, outside)


def broker_file() -> str:
    return os.path.join(os.path.dirname(os.path.realpath(__file__)), "broker.py")
