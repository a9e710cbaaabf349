"""Bash(dry_run=true): the command runs on a copy, its output and what it would change are shown, nothing is kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from gripfast.builtin.rulesets import rule_set
from gripfast.builtin.session import WorkspaceSession, open_session
from gripfast.call.cache import OutputCache
from gripfast.call.decision import PermissionRule
from gripfast.call.rules import Permissions
from gripfast.errors import ToolError
from gripfast.host.files.scope import Scope
from gripfast.host.record.shelf import RecordOptions
from gripfast.host.shell import rehearsal
from gripfast.host.shell.sandbox import choose
from gripfast.host.shell.walls import Walls
from trees import tree_of

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws, with: odd\\ name"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "a").write_text("one\ntwo\n")
    (root / "b").write_bytes(b"\0\xff")
    (root / "deep" / "er" / "c").write_text("deep\n")
    (root / "link").symlink_to("a")
    return root


@pytest.fixture
async def session(root: Path) -> AsyncIterator[WorkspaceSession]:
    if choose().level != "bwrap":
        pytest.skip("no bubblewrap here")
    async with open_session(Scope.workspace(root), cache=OutputCache(), record=True) as session:
        if (fault := rehearsal.fault_of(tempfile.gettempdir())) is not None:
            pytest.skip(fault)
        yield session


async def dry(session: WorkspaceSession, command: str) -> str:
    return (await session.call("Bash", {"command": command, "dry_run": True})).text


COMMANDS = {
    "a changed file": ("echo three >> a", "change a", "+three"),
    "a new file": ("echo x > new", "create new", "--- /dev/null"),
    "a deleted file": ("rm a", "delete a", "\nD a\n"),
    "a tree deleted": ("rm -r deep", "delete deep/er/c", "\nD deep/er/c\n"),
    "a tree replaced": ("rm -r deep; mkdir deep; echo n > deep/n", "create deep/n; delete deep/er/c", "+n"),
    "a directory moved": ("mv deep far", "create far/er/c; delete deep/er/c", "+deep"),
    "a mode": ("chmod 600 a", "change a", "a: mode 0644 -> 0600"),
    "a binary file": ("printf '\\0x' > b", "change b", "b: no text"),
    "a link": ("ln -sfn b link", "change link", "link: link to b"),
    "a file that becomes a directory": ("rm a; mkdir a; echo x > a/f", "create a/f; delete a", "+x"),
    "a directory that becomes a file": ("rm -r deep; echo x > deep", "change deep; delete deep/er/c", "+x"),
    "an empty directory": ("mkdir n", "create n", "n: directory"),
    "nothing": ("touch a; cat a > /dev/null", "change no file", ""),
}


async def test_what_a_command_would_do_is_shown_and_not_done(session: WorkspaceSession, root: Path) -> None:
    before = tree_of(root)
    for name, (command, note, row) in COMMANDS.items():
        text = await dry(session, f"{command}; echo printed")
        assert text.startswith("printed"), name
        assert text.endswith(f"[dry run, nothing was kept: it would {note}]"), name
        assert row in text, name
        assert tree_of(root) == before, name
    assert all(not call.changes for call in session.record.calls())


async def test_the_command_sees_what_it_wrote_and_nobody_sees_it_afterwards(
    session: WorkspaceSession, root: Path, tmp_path: Path
) -> None:
    text = await dry(session, "echo x > /tmp/t; echo x > f; cat f /tmp/t; cd deep; pwd; (exit 3)")
    assert f"x\nx\n{root}/deep" in text and "[exit code 3]" in text
    after = (await session.call("Bash", {"command": "ls /tmp/t f; pwd"})).text
    assert "No such file" in after and f"{root}\n" in f"{after}\n" and "deep" not in after
    assert list((tmp_path / "state" / "gripfast" / "dry-runs").iterdir()) == []


async def test_a_process_that_a_dry_run_leaves_is_ended_with_it(session: WorkspaceSession, root: Path) -> None:
    text = await dry(session, "(while sleep 0.05; do echo x >> a; done) & echo started")
    assert text.startswith("started") and "left running" not in text
    assert (root / "a").read_text() == "one\ntwo\n"


async def test_a_dry_run_that_takes_too_long_or_is_cancelled_leaves_nothing(
    session: WorkspaceSession, root: Path, tmp_path: Path
) -> None:
    text = (await session.call("Bash", {"command": "echo x > a; sleep 600", "dry_run": True, "timeout": 500})).text
    assert "[timed out after 0.5 s" in text and "change a" in text
    with anyio.move_on_after(0.5):
        await dry(session, "sleep 600")
    assert (root / "a").read_text() == "one\ntwo\n"
    assert list((tmp_path / "state" / "gripfast" / "dry-runs").iterdir()) == []


async def test_what_a_killed_process_left_is_removed_by_the_next_dry_run(
    session: WorkspaceSession, tmp_path: Path
) -> None:
    left = tmp_path / "state" / "gripfast" / "dry-runs" / "gripfast-dry-left"
    (left / "0" / "work" / "work").mkdir(parents=True, mode=0o000)
    (left / "lock").touch()
    await dry(session, "true")
    assert not left.exists()


async def test_a_dry_run_is_judged_like_the_command(root: Path) -> None:
    rules = Permissions("allow", [PermissionRule("Bash", "rm *", "deny")])
    async with open_session(Scope.workspace(root), cache=OutputCache(), permissions=rules) as session:
        message = await session.call("Bash", {"command": "rm a", "dry_run": True})
        assert message.error is not None and message.error.code == "POLICY_DENIED"


async def test_what_could_not_be_undone_is_not_asked_about_in_a_dry_run(root: Path) -> None:
    options = RecordOptions(largest_file=1)
    rules = rule_set("trusted")
    async with open_session(Scope.workspace(root), permissions=rules, record=options) as session:
        for command in ("rm -rf deep", "git clean -fdx", "find . -delete", "rm -rfv deep"):
            asked = await session.call("Bash", {"command": command})
            assert asked.error is not None and asked.error.code == "POLICY_DENIED", command
            dry = await session.call("Bash", {"command": command, "dry_run": True})
            assert dry.error is None or dry.error.code != "POLICY_DENIED", command
        for command in ("git push", "sudo ls"):
            away = await session.call("Bash", {"command": command, "dry_run": True})
            assert away.error is not None and away.error.code == "POLICY_DENIED", command
    assert (root / "deep" / "er" / "c").exists()


async def test_the_text_of_deleted_files_is_not_shown(session: WorkspaceSession, root: Path) -> None:
    (root / "deep" / "long").write_text("line\n" * 20_000)
    text = await dry(session, "rm -r deep")
    assert text == "D deep/er/c\nD deep/long\n[dry run, nothing was kept: it would delete deep/er/c, deep/long]"


async def test_a_denied_file_stays_hidden_in_a_dry_run(session: WorkspaceSession, root: Path) -> None:
    (root / "secret").write_text("s3cret\n")
    async with open_session(Scope([root], deny=["secret"]), cache=OutputCache()) as denied:
        text = (await denied.call("Bash", {"command": "cat secret; rm secret; mv secret x", "dry_run": True})).text
    assert "s3cret" not in text and "change no file" in text


async def test_a_dry_run_in_the_background_is_refused(session: WorkspaceSession) -> None:
    arguments = {"command": "true", "dry_run": True, "run_in_background": True}
    assert "a dry run does not take " in (await session.call("Bash", arguments)).text


async def test_without_a_sandbox_a_dry_run_is_refused_and_nothing_runs(root: Path) -> None:
    async with open_session(Scope.workspace(root), cache=OutputCache(), sandbox="off") as session:
        message = await session.call("Bash", {"command": "echo x > a", "dry_run": True})
        assert message.error is not None and message.error.code == "SANDBOX_VIOLATION"
        assert "dry_run needs the bubblewrap sandbox" in message.text
    assert (root / "a").read_text() == "one\ntwo\n"


async def test_where_no_overlay_can_be_mounted_the_reason_is_given(
    session: WorkspaceSession, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIPFAST_WITHOUT", "namespaces")
    rehearsal.fault_of.cache_clear()
    try:
        text = await dry(session, "echo x > a")
    finally:
        rehearsal.fault_of.cache_clear()
    assert "dry_run can't work here: no overlays (switched off by GRIPFAST_WITHOUT)" in text
    assert (root / "a").read_text() == "one\ntwo\n"


def test_a_dry_run_works_for_who_may_mount_nothing(root: Path, tmp_path: Path) -> None:
    """As for any user but root: in a user namespace."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("the other tests run as a plain user already, or there is no setpriv")
    drop = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    gripfast = [sys.executable, "-m", "gripfast", "call", "Bash", "command=id -u; rm a", "dry_run=true"]
    command = [*drop, *gripfast, "--rules", "none", "--root", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    if "dry_run can't work here" in done.stdout + done.stderr or choose().level != "bwrap":
        pytest.skip(done.stdout + done.stderr)
    assert "it would delete a]" in done.stdout, done.stderr
    assert (root / "a").exists()


def test_roots_that_can_not_be_copied_are_refused() -> None:
    with pytest.raises(ToolError, match="commands may write `/` itself"):
        rehearsal.copies_for(Walls((), everywhere=True))
