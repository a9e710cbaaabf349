"""A full disk, links that lead in a circle, a root that is moved or unmounted: a clear error, nothing lost, and the
session goes on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gripfast.builtin.session import WorkspaceSession, open_session
from gripfast.call.cache import OutputCache
from gripfast.host.files.scope import Scope
from gripfast.messages import ToolMessage

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk, and not everywhere")
    yield place
    subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)


@asynccontextmanager
async def session_in(root: Path) -> AsyncGenerator[WorkspaceSession]:
    with anyio.fail_after(90):
        async with open_session(Scope.workspace(root), cache=OutputCache(), record=True) as session:
            yield session


async def bash(session: WorkspaceSession, command: str) -> ToolMessage:
    return await session.call("Bash", {"command": command})


async def test_a_full_disk_is_told_and_costs_no_file(small_disk: Path) -> None:
    (small_disk / "mine").write_text("mine\n" * 1000)
    async with session_in(small_disk) as session:
        assert not (await session.call("Read", {"file_path": "mine"})).is_error
        full = await bash(session, "cat /dev/zero > big")
        assert "No space left on device" in full.text
        for content in ("x" * 100_000, "y" * 300_000):
            written = await session.call("Write", {"file_path": "mine", "content": content})
            assert written.is_error and "space" in written.text.lower()
        assert (small_disk / "mine").read_text() == "mine\n" * 1000
        assert "still here" in (await bash(session, "rm big; echo still here")).text
        assert not (await session.call("Write", {"file_path": "mine", "content": "new\n"})).is_error
    assert (small_disk / "mine").read_text() == "new\n"


async def test_links_that_lead_in_a_circle_stop_nothing(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True)
    for name, target in {".envrc": ".vscode", ".vscode": ".envrc", ".git": ".git", "d/up": "..", "a": "a"}.items():
        (root / name).symlink_to(target)
    async with session_in(root) as session:
        assert (await bash(session, "echo ok > d/up/new; cat new")).text.startswith("ok\n")
        assert (await session.call("Read", {"file_path": "a"})).is_error
        assert "new" in (await session.call("Glob", {"pattern": "**/*"})).text
    assert os.readlink(root / ".git") == ".git"


async def refused(session: WorkspaceSession) -> None:
    calls = [("Bash", {"command": "echo x > new"}), ("Read", {"file_path": "a"}), ("Grep", {"pattern": "x"})]
    for name, arguments in calls:
        message = await session.call(name, arguments)
        assert message.is_error and "is no longer the directory this session started with" in message.text


async def test_a_root_that_is_moved_away_is_refused_until_it_is_back(tmp_path: Path) -> None:
    root, away = tmp_path / "work", tmp_path / "away"
    root.mkdir()
    (root / "a").write_text("a\n")
    async with session_in(root) as session:
        assert (await bash(session, "cat a")).text == "a\n"
        root.rename(away)
        await refused(session)
        root.mkdir()  # another directory of the same name
        await refused(session)
        assert list(root.iterdir()) == []
        root.rmdir()
        away.rename(root)
        assert (await bash(session, "cat a")).text == "a\n"
    assert sorted(path.name for path in root.iterdir()) == ["a"]


async def test_a_root_that_is_moved_while_a_command_runs_is_reported_and_no_file_counts_as_deleted(
    tmp_path: Path,
) -> None:
    root, away = tmp_path / "work", tmp_path / "away"
    root.mkdir()
    for name in "ab":
        (root / name).write_text("old\n")
    said: list[str] = []

    async def move() -> None:
        with anyio.fail_after(60):
            while not (root / "ready").exists():
                await anyio.sleep(0.01)
        root.rename(away)
        (away / "go").touch()

    async with session_in(root) as session:
        await session.call("Read", {"file_path": "a"})
        async with anyio.create_task_group() as group:
            group.start_soon(move)
            command = "touch ready; until test -e go; do sleep 0.01; done; rm go ready"
            said.append((await bash(session, command)).text)
        assert f"[the root {root} was moved to {away};" in said[0]
        assert "deleted" not in said[0]
        away.rename(root)
        assert (await bash(session, "cat a")).text == "old\n"
        edit = await session.call("Edit", {"file_path": "a", "old_string": "old", "new_string": "new"})
        assert not edit.is_error, edit.text


async def test_a_root_that_is_unmounted_is_refused(small_disk: Path) -> None:
    (small_disk / "a").write_text("a\n")
    async with session_in(small_disk) as session:
        assert (await bash(session, "cat a")).text == "a\n"
        subprocess.run(["umount", "-l", str(small_disk)], check=True)
        await refused(session)
    assert list(small_disk.iterdir()) == []
