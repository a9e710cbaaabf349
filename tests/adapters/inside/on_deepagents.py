"""deepagents' backend: inside the scope in both forms, under rules, and nothing left when a command is cancelled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gripfast import PermissionRule, Permissions, Scope
from gripfast.adapters.deepagents import ScopeBackend, backend


@pytest.fixture
def place(project: Path) -> Iterator[ScopeBackend]:
    opened = backend(Scope.workspace(project))
    yield opened
    opened.close()


def test_what_is_outside_is_refused_for_files_and_commands(place: ScopeBackend, project: Path) -> None:
    target = "/etc/gripfast-was-here"
    assert "SANDBOX_VIOLATION" in (place.write(target, "x").error or "")
    assert place.read("/etc/hostname").error
    assert place.download_files(["/etc/hostname"])[0].error == "permission_denied"
    assert place.execute(f"echo x > {target}").exit_code != 0
    assert not os.path.exists(target)


def test_git_is_protected_from_files_and_deletion(place: ScopeBackend, project: Path) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("x")
    assert place.write(str(project / ".git" / "hooks" / "pre-commit"), "x").error
    assert place.delete(str(project / ".git")).error
    assert (project / ".git" / "config").exists()


async def test_cancelling_a_command_ends_it(place: ScopeBackend, is_running: Callable[[str], bool]) -> None:
    run = asyncio.ensure_future(place.aexecute("sleep 279.25"))
    while not is_running("279.25"):
        await asyncio.sleep(0.05)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert not is_running("279.25")


async def test_both_forms_work_at_once(place: ScopeBackend, project: Path) -> None:
    path = str(project / "a.txt")
    read, listed, ran = await asyncio.gather(
        place.aread(path), asyncio.to_thread(place.ls, str(project)), place.aexecute("pwd")
    )
    assert read.file_data["content"] == "one\ntwo" and len(listed.entries) == 2 and ran.output == f"{project}\n"


def test_rules_hold_and_the_rest_goes_on(project: Path) -> None:
    rules = Permissions("allow", [PermissionRule("Bash", "rm *", "deny"), PermissionRule("Edit", "*", "ask")])
    place = backend(Scope.workspace(project), permissions=rules)
    try:
        assert "POLICY_DENIED" in place.execute("rm a.txt").output
        assert "POLICY_DENIED" in (place.edit(str(project / "a.txt"), "one", "1").error or "")
        assert place.edit(str(project / "a.txt"), "", "1").error
        assert place.read(str(project / "a.txt"), offset=1).next_offset is None
    finally:
        place.close()
    assert (project / "a.txt").read_text() == "one\ntwo\n"


def test_a_command_past_its_time_says_so(place: ScopeBackend) -> None:
    ran = place.execute("echo begun; sleep 280.25", timeout=1)
    assert ran.exit_code == 124 and "begun" in ran.output and "ended after 1 s" in ran.output
