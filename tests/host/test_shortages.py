"""Shortages of descriptors, room and threads, and what finished commands leave: clear errors, and nothing is lost."""

from __future__ import annotations

import glob
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from gripfast.errors import Internal
from gripfast.host.files.closed import ClosedNames
from gripfast.host.files.closed_places import ClosedPlaces
from gripfast.host.files.scope import Scope
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
LEVELS = [pytest.param("bwrap", id="bwrap"), pytest.param("none", id="none")]


def level(name: str) -> Sandbox:
    found = choose("auto")
    if name == "none":
        return Sandbox("none")
    if found.level != name:
        pytest.skip(f"{name} does not work here: {found.faults}")
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def children(pid: int) -> set[int]:
    """Every process below one, by the kernel's lists."""
    found: set[int] = set()
    for task in glob.glob(f"/proc/{pid}/task/*/children"):
        with suppress(OSError):  # it has ended meanwhile
            for child in map(int, Path(task).read_text().split()):
                found |= {child} | children(child)
    return found


@contextmanager
def few_descriptors(free: int) -> Generator[None]:
    """As if this process might open only `free` more files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    names = list(map(int, os.listdir("/proc/self/fd")))
    open_now = [fd for fd in names if os.path.exists(f"/proc/self/fd/{fd}")]  # without the one that listed them
    held = [os.dup2(0, fd) for fd in range(max(open_now)) if fd not in open_now]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(open_now) + 1 + free, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for fd in held:
            os.close(fd)


async def silent(_: bytes) -> None:
    """The output is not looked at."""


@pytest.mark.anyio
@pytest.mark.parametrize("name", LEVELS)
async def test_finished_background_commands_keep_no_descriptor_and_no_process(name: str, tmp_path: Path) -> None:
    async with Shells(Scope.workspace(tmp_path), sandbox=level(name)) as shells:
        await shells.run("true", silent)
        await ended(shells, (await shells.start("echo first")).name)
        before, below = descriptors(), children(os.getpid())
        for number in range(30):
            await shells.start(f"echo {number}")
        for number in range(30):
            await ended(shells, f"bash_{number + 2}")
        await shells.run("true", silent)
        assert descriptors() == before
        await settled(len(below))
        assert [b"".join(shells.look(f"bash_{number + 2}").news()) for number in range(30)] == [
            b"%d\n" % number for number in range(30)
        ]


async def settled(processes: int) -> None:
    """A supervisor that has just reported ends a moment later."""
    with anyio.fail_after(60):
        while len(children(os.getpid())) > processes:
            await anyio.sleep(0.01)


async def ended(shells: Shells, name: str) -> None:
    with anyio.fail_after(60):
        while shells.look(name).ended is None:
            await anyio.sleep(0.01)


@pytest.mark.anyio
async def test_a_broker_whose_walls_are_out_of_date_ends_with_its_last_command(tmp_path: Path) -> None:
    async with Shells(Scope.workspace(tmp_path), sandbox=level("bwrap")) as shells:
        await shells.run("true", silent)
        before, below = descriptors(), len(children(os.getpid()))
        for number in range(4):
            (tmp_path / f"{number}").mkdir()
            (tmp_path / f"{number}" / ".envrc").write_text("new")
            await shells.run("true", silent)
        await shells.run("true", silent)
        assert descriptors() == before
        await settled(below)


PROGRAM = """
import anyio, os, sys
sys.path.insert(0, sys.argv[2])
from gripfast.errors import Internal
from gripfast.host.files.scope import Scope
from gripfast.host.shell.shells import Shells
from test_shortages import descriptors, few_descriptors, level, silent

async def main():
    outcomes = []
    async with Shells(Scope.workspace(sys.argv[1]), sandbox=level(sys.argv[3])) as shells:
        sleeper = await shells.start("sleep 600")
        await shells.run("true", silent)
        before = descriptors()
        for free in range(16):
            with few_descriptors(free):
                try:
                    outcomes.append((await shells.run("true", silent)).exit_code)
                except Internal as fault:
                    assert fault.retriable, fault
                    assert "nothing was run: this process has as many files open" in fault.message, fault
                    outcomes.append("refused")
            assert descriptors() == before, (free, outcomes)
            assert shells.is_running(sleeper), free
        assert (await shells.run("true", silent)).exit_code == 0
    print(outcomes)

anyio.run(main)
"""


@pytest.mark.parametrize("name", LEVELS)
def test_a_shortage_of_descriptors_is_told_and_ends_no_other_command(name: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / ".git").mkdir(parents=True)
    level(name)
    words = [sys.executable, "-c", PROGRAM, str(root), str(Path(__file__).parent), name]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = eval(done.stdout)  # noqa: S307 - what PROGRAM printed
    assert outcomes[0] == "refused"
    assert outcomes[-1] == 0


def test_protected_names_are_not_taken_for_gone_when_no_directory_can_be_opened(tmp_path: Path) -> None:
    """Listings are remembered: an empty one would leave the names open to every later command."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".envrc").write_text("kept")
    scope = Scope.workspace(tmp_path)
    names = ClosedNames(scope, ClosedPlaces(scope))
    with few_descriptors(0), pytest.raises(OSError, match="Too many open files"):
        names.look()
    assert [name.path for name in names.look()] == [str(tmp_path / "a" / ".envrc")]


@pytest.mark.anyio
async def test_a_refused_start_closes_what_it_opened(tmp_path: Path) -> None:
    async with Shells(Scope.workspace(tmp_path), sandbox=Sandbox("bwrap", "/bin/false")) as shells:
        with pytest.raises(Internal, match="did not start"):
            await shells.run("true", silent)
        before, below = descriptors(), children(os.getpid())
        with pytest.raises(Internal, match="did not start"):
            await shells.run("true", silent)
        assert descriptors() == before
        await settled(len(below))


# ---- threads and memory ----

_SCARCE = """
import os, resource, sys, threading
import anyio
from pathlib import Path
from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope

async def main(kind, warm, root):
    Path(root, "a").write_text("text\\n")
    async with open_session(Scope.workspace(root), record=True) as session:
        await session.call("Read", {"file_path": "a"})
        if warm:
            await session.call("Bash", {"command": "true"})
        before = resource.getrlimit(kind)
        now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(kind, (1 if kind == resource.RLIMIT_NPROC else now + (24 << 20), before[1]))
        edit = {"file_path": "a", "old_string": "text", "new_string": "new"}
        calls = {"Bash": {"command": "echo x > b"}, "Grep": {"pattern": "t"}, "Edit": edit, "Glob": {"pattern": "*"}}
        for name, arguments in calls.items():
            message = await session.call(name, arguments)
            if message.error:
                print(name, message.error)
        resource.setrlimit(kind, before)
        message = await session.call("Bash", {"command": "cat a; echo fine"})
        assert message.text in ("text\\nfine\\n", "new\\nfine\\n"), message.text

threading.stack_size(256 << 20)
anyio.run(main, int(sys.argv[1]), sys.argv[2] == "warm", sys.argv[3])
print("closed")
"""


_USABLE = """
import os, sys, gripfast.builtin.session
from gripfast.host.program.programs import interpreter
print(sys.version_info[:2] if os.access(interpreter(), os.X_OK) else "")
"""


def _plain(home: Path) -> list[str]:
    """The beginning of a command line that runs Python with this package, as a user to whom limits apply."""
    if os.geteuid() != 0:
        return [sys.executable]
    for python in (sys.executable, "/usr/bin/python3"):
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", python]
        done = subprocess.run(
            [*words, "-c", _USABLE], env=_environment(home), capture_output=True, text=True, check=False
        )
        if done.stdout.strip() == str(sys.version_info[:2]):
            return words
    pytest.skip("no interpreter here that another user can run")


def _common_directory() -> str:
    for above in map(Path, (tempfile.gettempdir(), "/var/tmp", "/dev/shm")):
        if above.is_dir() and all(place.stat().st_mode & 0o001 for place in (above, *above.parents)):
            return str(above)
    pytest.skip("no directory here that another user can get to")


def _environment(home: Path) -> dict[str, str]:
    path = ":".join([str(Path(__file__).parents[2] / "src"), *filter(None, sys.path)])
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": path, "TMPDIR": str(home)}


@pytest.mark.parametrize("warm", ["warm", "cold"])
@pytest.mark.parametrize("kind", ["RLIMIT_NPROC", "RLIMIT_AS"])
def test_a_shortage_of_threads_or_memory_is_told_and_loses_nothing(kind: str, warm: str) -> None:
    with tempfile.TemporaryDirectory(prefix="gripfast-test-", dir=_common_directory()) as place:
        (root := Path(place) / "ws").mkdir()
        for path in (Path(place), root):
            path.chmod(0o777)
        command = [*_plain(root), "-c", _SCARCE, str(getattr(resource, kind)), warm, str(root)]
        environment = _environment(Path(place))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *faults, last = done.stdout.splitlines()
    assert last == "closed"
    short = ("no more threads", "no more processes", "not enough memory")
    assert all(any(word in fault for word in short) for fault in faults), faults
    assert faults or warm == "warm"
