"""Rehearsal: a command runs where everything it may write is a copy, laid over the real files. What it changed is
read from the copy, then the copy is removed."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from gripfast.errors import SandboxViolation, ToolError
from gripfast.host.files.diff import unified, whole_splice
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.watch import SKIPPED
from gripfast.host.kernel import overlay
from gripfast.host.kernel.features import may_use, why_not
from gripfast.host.kernel.folders import folders
from gripfast.host.kernel.mounts import mounts_beneath
from gripfast.host.kernel.regular import read_regular
from gripfast.host.program.places import private_directory, state_directory
from gripfast.host.program.programs import interpreter
from gripfast.host.shell.walls import Walls, outermost
from gripfast.records import dataclass
from gripfast.text.below import is_below
from gripfast.text.escape import escaped

_PROBE_SECONDS = 10
_LARGEST_COMPARED = 1024 * 1024  # bytes of a file that is shown as a diff
_CHUNK = 1 << 20
_PREFIX = "gripfast-dry-"


@dataclass(frozen=True, slots=True)
class Copies:
    """The directories that a command gets copies of. `folder` holds what is written there instead; it is locked as
    long as somebody uses it."""

    folder: str
    directories: tuple[str, ...]
    lock: int = -1

    def upper(self, directory: str) -> str:
        return f"{self.folder}/{self.directories.index(directory)}/upper"

    def make(self) -> None:
        for number, directory in enumerate(self.directories):
            for name in ("upper", "work"):
                os.makedirs(f"{self.folder}/{number}/{name}", mode=0o700)
            shutil.copystat(directory, f"{self.folder}/{number}/upper")  # the root of an overlay has its upper's mode

    def rows(self, sources: Iterable[tuple[str, int]]) -> bytes:
        """The spec for `host/kernel/overlay.py`."""
        rows = [
            ("overlay", directory, f"{self.folder}/{number}/upper", f"{self.folder}/{number}/work")
            for number, directory in enumerate(self.directories)
        ]
        rows += [("open", f"{fd}", path) for path, fd in sources]
        return b"".join(b"".join(os.fsencode(field) + b"\0" for field in row) + b"\n\n" for row in rows)

    def remove(self) -> None:
        """Removes the copies. The kernel leaves a directory in `work` that not even its owner may enter."""
        for number in range(len(self.directories)):
            for inside in Path(self.folder, f"{number}", "work").glob("*"):
                inside.chmod(0o700)
        _remove(self.folder)
        if self.lock >= 0:
            os.close(self.lock)


def _remove(folder: str) -> None:
    for above, names, _ in folders(folder):
        for name in names:
            if not os.path.islink(f"{above}/{name}"):
                os.chmod(f"{above}/{name}", 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def copies_for(walls: Walls) -> Copies:
    """Copies of every directory that commands may write. Raises SandboxViolation where there can be none."""
    if walls.everywhere:
        raise SandboxViolation("dry_run can't work here: commands may write `/` itself, which can't be copied")
    writable = [mount.path for mount in walls.mounts if mount.kind == "write" and stat.S_ISDIR(mount.identity[2])]
    directories = outermost([*writable, walls.temporary, *walls.caches.folders])
    for directory in directories:
        if inside := mounts_beneath(directory):
            raise SandboxViolation(
                f"dry_run can't work here: something else is mounted at {inside[0]}, which would not be copied"
            )
    faults: list[str] = []
    for place in _places():
        if not is_below(os.path.realpath(place), *directories):
            fault = fault_of(place)
            if fault is None:
                _sweep(place)
                folder = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
                copies = Copies(folder, directories, _locked(f"{folder}/lock"))
                copies.make()
                return copies
            faults.append(fault)
    raise SandboxViolation(f"dry_run can't work here: {faults[0] if faults else 'there is no place for the copy'}")


def _places() -> list[str]:
    """Where copies may be put: on a disk if that can hold one, otherwise in memory."""
    own = private_directory(private_directory(state_directory()) / "dry-runs")
    return [str(own), tempfile.gettempdir(), "/dev/shm"]


def _locked(path: str) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


def _sweep(place: str) -> None:
    """Removes what a process that was killed has left."""
    for lock in Path(place).glob(f"{_PREFIX}*/lock"):
        with contextlib.suppress(OSError):
            fd = _locked(str(lock))
            _remove(str(lock.parent))
            os.close(fd)


@functools.cache
def fault_of(place: str) -> str | None:
    """Why no copy can be put in a place, found by trying with a small one; None if it can."""
    if not may_use("namespaces"):
        return f"no overlays ({why_not('namespaces', 'this is not Linux')})"
    if not os.access(place, os.W_OK):
        return f"{place} can't be written"
    with tempfile.TemporaryDirectory(prefix="gripfast-probe-", dir=place) as probe:
        lower = f"{probe}/lower"
        os.mkdir(lower)
        copies = Copies(f"{probe}/copy", (lower,))
        os.mkdir(copies.folder)
        copies.make()
        fault = _tried(copies, f"echo x > '{lower}/f' && mkdir '{lower}/d'")
        if fault is None and (os.listdir(lower) or sorted(os.listdir(copies.upper(lower))) != ["d", "f"]):
            fault = "what was written to an overlay did not stay there"
        copies.remove()
        return fault


def _tried(copies: Copies, script: str) -> str | None:
    with open(os.memfd_create("spec"), "w+b") as spec:
        spec.write(copies.rows(()))
        spec.seek(0)
        try:
            done = subprocess.run(
                [*overlay_program(spec.fileno()), "/bin/sh", "-c", script],
                env={"PATH": "/usr/bin:/bin"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_SECONDS,
                pass_fds=[spec.fileno()],
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"an overlay could not be tried ({type(error).__name__})"
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return None if done.returncode == 0 else (words or ["no overlay can be mounted"])[0][:200]


def overlay_program(spec: int) -> list[str]:
    return [interpreter(), "-I", "-S", os.path.realpath(overlay.__file__), f"{spec}"]


# --- what a command did ---


@dataclass(frozen=True, slots=True)
class Differences:
    """What is different in the copies, by real path of what is copied. `rows` are a diff."""

    created: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()


def differences(copies: Copies, fs: ScopedFs) -> Differences:
    """What a command changed in the scope: not in the temporary directory and the caches."""
    found: dict[str, list[str]] = {"created": [], "changed": [], "deleted": []}
    rows: list[str] = []
    scope = [directory.real for directory in fs.scope.write]
    for directory in copies.directories:
        if is_below(directory, *scope):
            for path, upper, kind in _compared(directory, copies.upper(directory)):
                found[kind].append(path)
                rows += _diff(fs, path, upper, kind)
    created, changed, deleted = (tuple(sorted(paths)) for paths in found.values())
    return Differences(created, changed, deleted, tuple(rows))


def _compared(lower: str, upper: str) -> Iterator[tuple[str, str, str]]:
    """(real path, its copy or nothing, what happened) of each file, link or mode that is different."""
    with os.scandir(upper) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path, state = f"{lower}/{entry.name}", entry.stat(follow_symlinks=False)
        if stat.S_ISCHR(state.st_mode) and state.st_rdev == 0:
            yield from _deleted(path)
        elif stat.S_ISDIR(state.st_mode):
            yield from _directory(path, entry.path, state)
        elif not os.path.lexists(path):
            yield path, entry.path, "created"
        else:
            if os.path.isdir(path) and not os.path.islink(path):
                yield from _deleted(path)
            if not _is_same(path, entry.path):
                yield path, entry.path, "changed"


def _directory(path: str, upper: str, state: os.stat_result) -> Iterator[tuple[str, str, str]]:
    is_directory = os.path.isdir(path) and not os.path.islink(path)
    if is_directory and _is_opaque(upper):
        kept = set(os.listdir(upper))
        for name in sorted(set(os.listdir(path)) - kept):
            yield from _deleted(f"{path}/{name}")
    elif is_directory and stat.S_IMODE(os.lstat(path).st_mode) != stat.S_IMODE(state.st_mode):
        yield path, upper, "changed"
    elif not is_directory:
        if os.path.lexists(path):
            yield path, "", "deleted"
        if not os.listdir(upper):
            yield path, upper, "created"
    yield from _compared(path, upper)


def _is_opaque(upper: str) -> bool:
    try:
        return os.getxattr(upper, "user.overlay.opaque", follow_symlinks=False) == b"y"
    except OSError:
        return False


def _deleted(path: str) -> Iterator[tuple[str, str, str]]:
    if os.path.isdir(path) and not os.path.islink(path):
        inside = [f"{above}/{name}" for above, _, names in folders(path) for name in names]
        yield from ((one, "", "deleted") for one in sorted(inside) or [path])
    else:
        yield path, "", "deleted"


def _is_same(path: str, upper: str) -> bool:
    one, two = os.lstat(path), os.lstat(upper)
    if one.st_mode != two.st_mode:
        return False
    if stat.S_ISLNK(one.st_mode):
        return os.readlink(path) == os.readlink(upper)
    return stat.S_ISREG(one.st_mode) and one.st_size == two.st_size and _same_bytes(path, upper)


def _same_bytes(path: str, upper: str) -> bool:
    try:
        with open(path, "rb") as one, open(upper, "rb") as two:
            while (chunk := one.read(_CHUNK)) == two.read(_CHUNK):
                if not chunk:
                    return True
    except OSError:
        return False  # it can't be read, so it is named but not shown
    return False


# --- the diff ---


def _diff(fs: ScopedFs, path: str, upper: str, kind: str) -> Iterator[str]:
    """A unified diff for texts, one line for anything else and for what is deleted. Directories of tools are named,
    but their files are not shown."""
    if SKIPPED & set(path.split("/")):
        return
    shown = fs.show_real(path)
    if kind == "deleted":
        yield f"D {shown}"
        return
    one, two = _mode(path), _mode(upper) if upper else 0
    if stat.S_ISREG(one) and stat.S_ISREG(two) and one != two:
        yield f"{shown}: mode {stat.S_IMODE(one):04o} -> {stat.S_IMODE(two):04o}"
    elif stat.S_ISDIR(two):
        yield f"{shown}: directory, mode {stat.S_IMODE(two):04o}"
    if stat.S_ISLNK(two):
        yield f"{shown}: link to {escaped(os.readlink(upper))}"
    old, new = _old_text(fs, path, one), _text(upper, two)
    if old is None or new is None:
        yield f"{shown}: no text, or too large to be shown"
    elif old != new:
        yield from unified(old, [whole_splice(old, new)], shown, created=one == 0)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _old_text(fs: ScopedFs, path: str, mode: int) -> bytes | None:
    """The text before the command, read like any file: never through a link, and never what the scope denies."""
    if not stat.S_ISREG(mode):
        return b""
    try:
        with fs.writable_entry(path) as place:
            return None if place.stat is None else _text(place.name, place.stat.st_mode, place.dir_fd)
    except ToolError:
        return None


def _text(name: str, mode: int, dir_fd: int | None = None) -> bytes | None:
    """The bytes of a text; empty if it is not a file; None if it can't be shown."""
    if not stat.S_ISREG(mode):
        return b""
    try:
        data = read_regular(name, _LARGEST_COMPARED + 1, dir_fd=dir_fd)
    except OSError:
        return None
    return None if len(data) > _LARGEST_COMPARED or b"\0" in data else data
