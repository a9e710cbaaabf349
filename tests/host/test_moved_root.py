"""A root that is moved while a command runs: what the command makes there is judged where it is now, and told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.host.sandboxed import LEVELS, git, level, repository_at

from gripfast.host.files.scope import Scope
from gripfast.host.shell.ended import Ended
from gripfast.host.shell.shells import Shells
from plain_user import environment, give, plain_python

pytestmark = pytest.mark.usefixtures("own_state")
EVIL = "[core]\\n\\tfsmonitor = touch PWNED;false\\n"
MAKES = (
    f"echo x > .envrc; git init -q new; printf '{EVIL}' >> new/.git/config; mkdir -p sub/.vscode; "
    "(echo x > .git/hooks/post-checkout; echo evil > .npmrc; echo evil > .github/workflows/ci.yml) 2> /dev/null; "
)
WAITS = f"touch ready; until test -e go; do sleep 0.01; done; {MAKES} touch made"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository_at(tmp_path / "in")
    (root / ".npmrc").write_text("mine\n")
    (root / ".github/workflows").mkdir(parents=True)
    (root / ".github/workflows/ci.yml").write_text("mine\n")
    return root


async def ignore(_: bytes) -> None: ...


async def until(path: Path) -> None:
    with anyio.fail_after(60):
        while not path.exists():
            await anyio.sleep(0.01)


async def move(root: Path, away: Path) -> None:
    """Moves a root while a command in it waits, and lets the command go on."""
    await until(root / "ready")
    root.rename(away)
    (away / "go").touch()


def require_clean(away: Path) -> None:
    git(away, "git status; cd new; git status")
    assert not [path for path in away.rglob("*") if path.name in ("PWNED", ".envrc", ".vscode", "post-checkout")]
    assert "fsmonitor" not in (away / "new/.git/config").read_text()
    assert (away / ".npmrc").read_text() == (away / ".github/workflows/ci.yml").read_text() == "mine\n"


@pytest.mark.parametrize("sandbox", LEVELS)
def test_what_a_command_makes_in_a_root_that_was_moved_is_taken_out_where_it_is(sandbox: str, root: Path) -> None:
    away, ends = root.with_name("away"), list[Ended]()

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            async with anyio.create_task_group() as group:
                group.start_soon(move, root, away)
                ends.append(await shells.run(WAITS, ignore))
            assert (away / "made").exists()
            require_clean(away)
            assert not root.exists(), "nothing is put where the root was"
            away.rename(root)
            ends.append(await shells.run("cat .npmrc && git -C new status", ignore))

    anyio.run(main)
    first, second = ends
    assert [(one.path, one.now) for one in first.moved] == [(str(root), str(away))]
    assert {f"{away}/.envrc", f"{away}/sub/.vscode", f"{away}/new/.git/config"} <= {
        item.path for item in first.quarantined
    }
    assert (second.exit_code, second.moved) == (0, ())
    told_later = {f"{root}/.git/hooks/post-checkout"}  # it was made in a copy, which is settled when the root is back
    assert {item.path for item in second.quarantined} <= told_later, "what is the user's stays"
    require_clean(root)


@pytest.mark.parametrize("sandbox", LEVELS)
def test_what_a_background_shell_makes_in_a_root_that_was_moved_is_taken_out_at_the_end(
    sandbox: str, root: Path
) -> None:
    away = root.with_name("away")

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            await shells.start(f"{WAITS}; sleep 600")
            await move(root, away)
            await until(away / "made")

    anyio.run(main)
    require_clean(away)
    assert not root.exists()


@pytest.mark.parametrize("sandbox", LEVELS)
def test_another_directory_in_the_place_of_a_moved_root_is_left_alone(sandbox: str, root: Path) -> None:
    away = root.with_name("away")

    async def main() -> None:
        async with Shells(Scope.workspace(root), sandbox=level(sandbox)) as shells:
            await shells.start(f"{WAITS}; sleep 600")
            await move(root, away)
            root.mkdir()
            (root / ".envrc").write_text("somebody else's\n")
            await until(away / "made")

    anyio.run(main)
    require_clean(away)
    assert [path.name for path in root.iterdir()] == [".envrc"]


@pytest.mark.parametrize("sandbox", LEVELS)
def test_a_command_that_moves_an_inner_root_hides_nothing(sandbox: str, root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "a").touch()
    ends = list[Ended]()

    async def main() -> None:
        async with Shells(Scope.workspace(root, inner), sandbox=level(sandbox)) as shells:
            attack = (
                "mv inner b; mkdir inner; for d in . b inner; do echo x > $d/.envrc; done; rm -r inner; touch made"
            )
            ends.append(await shells.run(attack, ignore))

    anyio.run(main)
    assert (root / "made").exists()
    assert not list(root.rglob(".envrc"))
    assert [one.path for one in ends[0].moved] == [str(inner)]


_SERVER = """
import asyncio, sys
from pathlib import Path
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.host.shell.shells import Shells

async def main(root, name, command):
    sandbox = Sandbox("landlock") if name == "landlock" and landlock_version() else choose("auto")
    if sandbox.level != name:
        print("skip", flush=True)
        return
    async with Shells(Scope.workspace(root), sandbox=sandbox) as shells:
        await shells.start(command)
        print("started", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gripfast-moved-", dir="/var/tmp") as name:
        yield Path(os.path.realpath(name))


@pytest.mark.parametrize("sandbox", LEVELS)
@pytest.mark.parametrize("end", ["killed", "closed by a plain user"])
def test_the_last_look_of_a_session_finds_a_root_that_was_moved(end: str, sandbox: str, home: Path) -> None:
    root, away = repository_at(home / "in"), home / "away"
    if end != "killed":
        give(home, root, *root.rglob("*"))
    python = [sys.executable] if end == "killed" else plain_python()
    command = [*python, "-c", _SERVER, str(root), sandbox, f"{WAITS}; sleep 600"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment(home), cwd="/", stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        if server.stdout.readline() != "started\n":
            pytest.skip(f"{sandbox} does not work here for this user")

        async def main() -> None:
            await move(root, away)
            await until(away / "made")

        anyio.run(main)
        if end == "killed":
            server.send_signal(signal.SIGKILL)
        server.stdin.close()
    ends_at = time.monotonic() + 60
    while (away / ".envrc").exists() or "fsmonitor" in (away / "new/.git/config").read_text():
        assert time.monotonic() < ends_at, "nobody looked"
        time.sleep(0.05)
    assert not root.exists()
