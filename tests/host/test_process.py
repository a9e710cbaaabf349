"""Shells: what commands answer, and that nothing of them is ever left."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from attacks.shell import NASTY, Nasty, attack, fault, fresh_mark, gone, kill_server, storm, survivors
from gripfast.errors import InvalidArgument, NotFound, ToolError
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.features import may_use
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell import background, broker_connection
from gripfast.host.shell import shells as shells_module
from gripfast.host.shell.background import SPOOL_CAP
from gripfast.host.shell.broker import newest
from gripfast.host.shell.ended import Ended
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
needs_adoption = pytest.mark.skipif(not may_use("subreaper"), reason="orphans are not adopted here")


@asynccontextmanager
async def opened(root: Path, sandbox: Any = "off", **options: Any) -> AsyncGenerator[Shells]:
    shells = Shells(Scope.workspace(root), sandbox=sandbox, **options)
    try:
        yield shells
    finally:
        await shells.close()


async def said(shells: Shells, command: str, timeout_ms: int = 20_000) -> tuple[Ended, str]:
    kept: list[bytes] = []

    async def feed(data: bytes) -> None:
        kept.append(data)

    ended = await shells.run(command, feed, timeout_ms=timeout_ms)
    return ended, b"".join(kept).decode(errors="replace")


def run(main: Callable[[], Coroutine[Any, Any, None]], within: float = 60) -> None:
    async def bounded() -> None:
        with anyio.fail_after(within):
            await main()

    anyio.run(bounded)


@pytest.mark.parametrize("nasty", NASTY, ids=lambda nasty: nasty.name)
def test_nasty_command_gets_its_answer_and_leaves_nothing(nasty: Nasty, tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        async with opened(tmp_path) as shells:
            ended, printed = await attack(shells, nasty, mark)
            assert fault(nasty, ended, printed) is None
            if not nasty.leaves:
                assert await gone(mark) == []
        assert await gone(mark) == []

    run(main)


@pytest.mark.parametrize("level", ["bwrap", "landlock"])
def test_nasty_commands_side_by_side_in_a_sandbox_leave_nothing(level: str, tmp_path: Path) -> None:
    sandbox = sandbox_of(level)

    async def main() -> None:
        shells = Shells(Scope.workspace(tmp_path), sandbox=sandbox)
        try:
            faults = await storm(shells, 60, seed=7)
        finally:
            await shells.close()
        assert faults == []
        assert await gone(shells.mark) == []

    run(main, 180)


def sandbox_of(level: str) -> Sandbox:
    found = choose("auto")
    if level == "bwrap" and found.level != "bwrap":
        pytest.skip(f"bubblewrap does not work here: {found.faults}")
    if level == "landlock":
        if choose_landlock() is None:
            pytest.skip("this kernel has no Landlock")
        return Sandbox("landlock")
    return Sandbox("none") if level == "none" else found


def choose_landlock() -> Sandbox | None:
    return Sandbox("landlock") if landlock_version() else None


HOLDING = {
    "at work": "sleep 987.@ & setsid bash -c 'trap \"\" TERM; sleep 987.@' & echo $TMPDIR; sleep 987.@",
    "without its supervisor": "setsid env -i sleep 987.@ & kill -STOP $PPID; echo $TMPDIR; sleep 987.@",
}


@pytest.mark.parametrize("holding", HOLDING.values(), ids=HOLDING)
@pytest.mark.parametrize("mode", ["off", "auto"])
def test_a_killed_server_leaves_no_process_and_no_temporary_directory(
    mode: str, holding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "setsid env" in holding and not may_use("subreaper"):
        pytest.skip("without a subreaper, a process in a session of its own can outlive a stopped supervisor")
    mark = fresh_mark()
    root, temporary = tmp_path / "in", tmp_path / "tmp"
    root.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    kill_server(str(root), mode, mark, holding)
    assert anyio.run(gone, mark) == []
    until = time.monotonic() + 60
    while list(temporary.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(temporary.iterdir()) == []


def test_two_hundred_commands_at_once_all_answer(tmp_path: Path) -> None:
    async def main() -> None:
        answers: dict[int, str] = {}
        async with opened(tmp_path, "auto") as shells:

            async def one(number: int) -> None:
                _, answers[number] = await said(shells, f"sleep 0.1; echo {number}", 60_000)

            async with anyio.create_task_group() as group:
                for number in range(200):
                    group.start_soon(one, number)
        assert answers == {number: f"{number}\n" for number in range(200)}

    run(main, 120)


def test_output_comes_in_the_order_it_was_printed(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            _, text = await said(shells, "for i in $(seq 50); do echo o$i; echo e$i >&2; done")
        assert text == "".join(f"o{i}\ne{i}\n" for i in range(1, 51))

    run(main)


def test_a_flood_is_fed_whole_in_pieces_of_bounded_size(tmp_path: Path) -> None:
    sizes: list[int] = []

    async def main() -> None:
        async def feed(data: bytes) -> None:
            sizes.append(len(data))

        async with opened(tmp_path) as shells:
            await shells.run("head -c 200000000 /dev/zero", feed, timeout_ms=60_000)

    run(main)
    assert sum(sizes) == 200_000_000
    assert max(sizes) <= 256 * 1024


def test_cancelling_ends_everything_the_command_started(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        async with opened(tmp_path) as shells:
            with anyio.move_on_after(0.5) as scope:
                await said(shells, f"setsid sleep 987.{mark} & sleep 987.{mark}")
            assert scope.cancelled_caught
            assert await gone(mark) == []
            assert (await said(shells, "echo on"))[1] == "on\n"

    run(main)


def test_a_cancelled_command_is_asked_to_end_before_it_is_made_to(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            with anyio.move_on_after(0.5):
                await said(shells, "trap 'touch asked; exit 0' TERM; sleep 60 & wait")
            assert (tmp_path / "asked").exists()

    run(main)


def test_a_reader_that_fails_ends_the_command(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()

        async def feed(data: bytes) -> None:
            raise ValueError("full")

        async with opened(tmp_path) as shells:
            with pytest.raises(ValueError, match="full"):
                await shells.run(f"echo x; sleep 987.{mark}", feed)
            assert await gone(mark) == []

    run(main)


@pytest.mark.parametrize(
    ("command", "lands"),
    [
        ("cd sub", "sub"),
        ("cd sub; exit 3", "sub"),
        ("cd sub; false", "sub"),
        ("set -e; cd sub; false", "sub"),
        ("cd sub; trap 'echo mine' EXIT", "sub"),
        ("cd sub; set -x -u", "sub"),
        ("cd sub; unset PWD; PWD=/nowhere", "sub"),
        ("mkdir $'a\\nb'; cd $'a\\nb'", "a\nb"),
        ("(cd sub)", "."),
        ("cd sub & wait", "."),
        ("cd sub; exec true", "."),
        ("cd sub; kill -9 $$", "."),
        ("echo junk >&199; cd sub", "sub"),
        ("cd sub; exec 199>&-", "."),
    ],
)
def test_the_working_directory_persists(command: str, lands: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()

    async def main() -> None:
        async with opened(tmp_path) as shells:
            await said(shells, command)
            assert shells.directory == os.path.normpath(tmp_path.resolve() / lands)
            _, text = await said(shells, "pwd -P")
            assert text == shells.directory + "\n"

    run(main)


def test_variables_and_functions_do_not_persist(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            await said(shells, "export A=1; B=2; f() { :; }; set -e")
            _, text = await said(shells, 'echo "[$A$B]"; type f 2>&1; false; echo on')
            assert text.startswith("[]\n")
            assert text.endswith("on\n")

    run(main)


def test_a_vanished_directory_runs_nothing_and_says_where_the_next_command_starts(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()

    async def main() -> None:
        async with opened(tmp_path) as shells:
            await said(shells, "cd sub")
            (tmp_path / "sub").rmdir()
            with pytest.raises(NotFound, match="nothing was run"):
                await said(shells, "touch ../ran")
            assert not (tmp_path / "ran").exists()
            assert (await said(shells, "pwd -P"))[1] == f"{tmp_path.resolve()}\n"

    run(main)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("echo a\0b", "NUL"),
        ("x" * 3_000_000, "at most"),
        ("echo \ud800", "surrogate"),
    ],
)
def test_a_command_no_shell_can_take_is_refused(command: str, words: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            with pytest.raises(InvalidArgument, match=words):
                await said(shells, command)

    run(main)


def test_a_command_far_longer_than_an_argument_may_be_runs(tmp_path: Path) -> None:
    body = "é" * 400_000

    async def main() -> None:
        async with opened(tmp_path) as shells:
            _, text = await said(shells, f"cat > big <<'END'\n{body}\nEND\nwc -c < big; echo $LINENO")
        assert text.split() == ["800001", "4"]

    run(main)


def test_the_environment_is_an_allow_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "LD_PRELOAD_X",
        "GIT_DIR",
        "PYTHONPATH",
        "MINE",
        "BASH_ENV",
    ):
        monkeypatch.setenv(name, "leak-7")
    monkeypatch.setenv("PATH", f".::bin:{os.environ['PATH']}")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:leak-7@proxy")

    async def main() -> None:
        async with opened(tmp_path) as shells:
            _, text = await said(shells, "env; echo; git config --get safe.bareRepository")
            assert "leak-7" not in text
            assert text.endswith("explicit\n")
            path = next(line for line in text.splitlines() if line.startswith("PATH="))
            assert all(place.startswith("/") for place in path.removeprefix("PATH=").split(":"))
        async with opened(tmp_path, allow=["MINE", "*"]) as shells:
            _, text = await said(shells, "env")
            assert "MINE=leak-7" in text
            assert text.count("leak-7") == 1

    run(main)


def test_no_terminal_and_no_input(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            ended, text = await said(
                shells, "tty; echo [$(cat)]; (: </dev/tty) 2>&1 | head -c 5; echo $TERM $PAGER $NO_COLOR"
            )
            assert ended.exit_code == 0
            assert text.startswith("not a tty\n[]\n")
            assert text.endswith("dumb cat 1\n")

    run(main)


def test_no_descriptor_of_the_server_reaches_a_command(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            secret, other = os.pipe()
            os.set_inheritable(secret, True)
            _, text = await said(shells, "ls -l /proc/self/fd")
            os.close(secret)
            os.close(other)
            numbers = {int(line.split()[8]) for line in text.splitlines()[1:]}
            assert numbers <= {0, 1, 2, 3, 199}

    run(main)


def test_a_background_shell_is_read_looked_at_and_killed(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        async with opened(tmp_path) as shells:
            shell = await shells.start(f"echo one; setsid sleep 987.{mark} & sleep 987.{mark}")
            while not shell.size:
                await anyio.sleep(0.02)
            assert shell.read(0, 100) == b"one\n"
            assert shells.look(shell.name).ended is None
            killed = await shells.kill(shell.name)
            assert killed.ended is not None
            assert killed.ended.reason == "stopped"
            assert await gone(mark) == []
            with pytest.raises(NotFound, match="bash_1"):
                shells.look("bash_9")

    run(main)


def test_a_background_shell_reports_its_own_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            shell = await shells.start("cd /; echo done; exit 4")
            while shells.look(shell.name).ended is None:
                await anyio.sleep(0.02)
            assert shell.ended is not None
            assert shell.ended.exit_code == 4
            assert shell.read(0, 100) == b"done\n"
            assert shells.directory == str(tmp_path.resolve())

    run(main)


def test_a_command_whose_line_is_cut_is_ended(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        async with opened(tmp_path) as shells:
            shell = await shells.start(f"echo on; setsid sleep 987.{mark} & sleep 987.{mark}")
            while not shell.size:
                await anyio.sleep(0.02)
            shell.job.line.close()
            assert await gone(mark) == []

    run(main)


def test_a_background_command_that_kills_its_supervisor_is_ended_without_being_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        async with opened(tmp_path) as shells:
            shell = await shells.start(f"setsid sleep 987.{mark} & kill -9 $PPID; sleep 987.{mark}")
            await anyio.sleep(0.5)
            assert await gone(mark) == []
            found = shells.look(shell.name).ended
            assert found is not None
            assert found.reason == "lost"

    run(main)


def test_a_background_flood_stops_growing_at_its_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (background, shells_module):
        monkeypatch.setattr(module, "SPOOL_CAP", 100_000)

    async def main() -> None:
        async with opened(tmp_path) as shells:
            shell = await shells.start("head -c 5000000 /dev/zero; echo end")
            while shells.look(shell.name).ended is None:
                await anyio.sleep(0.02)
            assert shell.size == 100_000
            assert shell.full

    assert SPOOL_CAP > 1_000_000
    run(main)


def test_what_a_command_left_can_go_on_printing(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            ended, _ = await said(
                shells, "(sleep 0.5; head -c 3000000 /dev/zero; touch printed; sleep 60) & echo started"
            )
            assert ended.left_running
            while not (tmp_path / "printed").exists():
                await anyio.sleep(0.02)

    run(main)


@needs_adoption
def test_what_a_command_left_lives_until_the_session_ends(tmp_path: Path) -> None:
    async def main() -> None:
        mark = fresh_mark()
        async with opened(tmp_path) as shells:
            ended, _ = await said(shells, f"setsid sleep 987.{mark} & sleep 0.2")
            assert ended.left_names[0].endswith(f"sleep 987.{mark}")
            await said(shells, "true")
            assert survivors(mark)
        assert await gone(mark) == []

    run(main)


@needs_adoption
def test_a_runner_that_is_never_the_same_process_is_caught(tmp_path: Path) -> None:
    """A scan for survivors would miss it: it is somebody else every few milliseconds. Its trace tells."""
    trace = tmp_path / "trace"

    async def main() -> None:
        async with opened(tmp_path) as shells:
            ended, _ = await said(shells, "bash -c 'r() { echo >> trace; ( r & ) ; }; r' & sleep 0.3")
            assert ended.left_running
        length = trace.stat().st_size
        await anyio.sleep(0.5)
        assert trace.stat().st_size == length > 5

    run(main)


def test_a_process_made_this_moment_is_found_without_a_list() -> None:
    def caught() -> bool:
        child = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
        try:
            return child in newest(set(), set())
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)

    assert any(caught() for _ in range(50)), "the machine is busy, but not that busy"


# A process that is another one every two milliseconds, for ten seconds; the pipe ends with the last of them.
RUNNER = """
import os, select, sys, time
from gripfast.host.shell import broker

broker.become_subreaper()
broker.processes = lambda: []  # a list takes longer to read than each of them lives: none is in it
end = time.monotonic() + 10
read_end, write_end = os.pipe()
if os.fork() == 0:
    while time.monotonic() < end:
        time.sleep(0.002)
        if os.fork():
            break
    os._exit(0)
os.close(write_end)
spared = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
for _ in range(40):
    broker.sweep({spared})
    if select.select([read_end], [], [], 0.05)[0]:
        print("ended", time.monotonic() < end, "spared", os.waitpid(spared, os.WNOHANG) == (0, 0))
        break
os.kill(spared, 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's last process number is read from /proc")
def test_a_runner_that_no_list_of_processes_shows_is_ended_and_who_is_spared_lives() -> None:
    """With somebody to spare, a sweep that sees nothing is over: one look that misses would let it go."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "ended True spared True\n"


def test_a_stopped_supervisor_is_given_up_and_its_command_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (broker_connection, shells_module):
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 1.0)

    async def main() -> None:
        mark = fresh_mark()
        async with opened(tmp_path) as shells:
            ended, _ = await said(shells, f"kill -STOP $PPID; sleep 987.{mark}", 300)
            assert ended.reason == "lost"
            assert await gone(mark) == []
            assert (await said(shells, "echo on"))[1] == "on\n"

    run(main)


@pytest.mark.parametrize("ancestors", [pytest.param(2, marks=needs_adoption), 3])
def test_killing_the_broker_too_ends_the_command_and_the_next_one_runs(ancestors: int, tmp_path: Path) -> None:
    """2: supervisor and broker; 3: the warden as well, after which only the mark finds what is left."""
    climb = "p=$PPID; pids=; for i in $(seq %d); do pids=\"$p $pids\"; p=$(awk '{print $4}' /proc/$p/stat); done; "

    async def main() -> None:
        mark = fresh_mark()
        async with opened(tmp_path) as shells:
            hidden = "env -i" if ancestors == 2 else ""  # without the mark only the warden can find it
            kill = climb % ancestors + f"setsid {hidden} sleep 987.{mark} & kill -9 $pids; sleep 987.{mark}"
            ended, _ = await said(shells, kill)
            assert ended.reason == "lost"
            assert await gone(mark) == []
            assert (await said(shells, "echo on"))[1] == "on\n"

    run(main)


def test_killing_everything_inside_a_sandbox_leaves_the_broker_standing(tmp_path: Path) -> None:
    sandbox = sandbox_of("bwrap")
    if "--unshare-pid" not in sandbox.spaces:
        pytest.skip("no process space of its own here")
    outer = os.readlink("/proc/self/ns/pid")

    async def main() -> None:
        mark = fresh_mark()
        async with opened(tmp_path, sandbox) as shells:
            guard = f"[ $(readlink /proc/self/ns/pid) != '{outer}' ] || exit 99"
            ended, _ = await said(shells, f"{guard}; setsid sleep 987.{mark} & kill -9 1; kill -9 -1")
            assert ended.exit_code != 99
            assert await gone(mark) == []
            assert (await said(shells, "echo on"))[1] == "on\n"

    run(main)


def test_a_closed_session_runs_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            pass
        with pytest.raises(ToolError, match="closed"):
            await said(shells, "true")

    run(main)


def test_closing_twice_or_unused_is_harmless(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened(tmp_path) as shells:
            await shells.close()

    run(main)
