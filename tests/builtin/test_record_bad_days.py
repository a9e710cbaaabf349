"""The record on a bad day: too little time, no room, many files, odd names, and git's own state beside it."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from gripfast.builtin.rulesets import rule_set
from gripfast.builtin.session import WorkspaceSession, open_session
from gripfast.call.cache import OutputCache
from gripfast.host.files.scope import Scope
from gripfast.host.record import cover
from gripfast.host.record.contents import Contents
from searching import powerless
from trees import tree_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "ws"
    root.mkdir()
    return root


def opened(root: Path, **options: Any) -> WorkspaceSession:
    given: dict[str, Any] = {"record": True, "sandbox": "off", "cache": OutputCache(), **options}
    return open_session(Scope.workspace(root), **given)


async def bash(session: WorkspaceSession, command: str) -> str:
    return (await session.call("Bash", {"command": command})).text


async def test_a_directory_that_may_not_be_read_is_refused_by_name_and_the_rest_is_undone(root: Path) -> None:
    (root / "shut").mkdir()
    (root / "shut" / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    with powerless():
        async with opened(root) as session:
            await bash(session, "chmod 311 shut")
            await bash(session, "rm shut/a.txt; echo changed > b.txt")
            result = await session.undo([2])
    assert [one.path for one in result.restored] == ["b.txt"]
    assert [(one.path, one.reason) for one in result.refused] == [
        ("shut/a.txt", "you may not read and write `shut`; chmod u+rwx it first")
    ]
    assert (root / "b.txt").read_text() == "b\n"


async def test_files_and_directories_that_a_command_closed_to_their_owner_are_put_back_and_closed_again(
    root: Path,
) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "one").write_text("one\n")
    (root / "f").write_text("f\n")
    before = tree_of(root)
    with powerless():
        async with opened(root) as session:
            answer = await bash(session, "echo x > f; chmod 0 d/e; chmod 0 f")
            assert "changed f" in answer
            await session.undo(dry_run=True)
            assert (root / "f").stat().st_mode & 0o777 == 0
            done = await session.undo()
            assert (done.refused, tree_of(root)) == ((), before)
            assert done.call is not None
            again = await session.undo([done.call])
            assert again.refused == () and (root / "f").stat().st_mode & 0o777 == 0
            assert (root / "d" / "e").stat().st_mode & 0o777 == 0
            (root / "f").chmod(0o600)
            assert (root / "f").read_text() == "x\n"


async def test_what_is_in_a_directory_that_a_command_closed_is_named_and_undone_once_it_is_open(root: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "one").write_text("one\n")
    (root / "d" / "e" / "two").write_text("two\n")
    before = tree_of(root)
    with powerless():
        async with opened(root) as session:
            await bash(session, "echo x > d/one; rm d/e/two")
            assert "undo does not cover: d (you may not look into it now" in await bash(session, "chmod 0 d")
            done = await session.undo([1, 2])
            assert [one.path for one in done.restored] == ["d"]
            assert [one.path for one in done.refused] == ["d/e/two", "d/one"]
            done = await session.undo([1])
            assert (done.refused, tree_of(root)) == ((), before)


async def test_a_link_to_a_closed_directory_in_the_place_of_one_does_not_stop_the_undo(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "closed" / "er").mkdir(parents=True, mode=0o755)
    (tmp_path / "closed").chmod(0o555)
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "a").write_text("a\n")
    before = tree_of(root)
    with powerless():
        async with opened(root) as session:
            await bash(session, f"rm -r deep; ln -s {tmp_path}/closed deep")
            result = await session.undo()
    assert (result.refused, tree_of(root)) == ((), before)


# --- commands that come before everything is covered ---


async def test_the_first_command_waits_while_one_file_after_the_other_is_covered(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        (root / f"f{number}").write_text("old\n")
    before, copy = tree_of(root), Contents.put_file

    def slow(self: Contents, source: int) -> str:
        threading.Event().wait(0.05)  # a slow disk
        return copy(self, source)

    monkeypatch.setattr(Contents, "put_file", slow)
    for name in ("_MOST_WAITED", "_STALLED"):
        monkeypatch.setattr(cover, name, 600.0)
    async with opened(root) as session:
        assert "does not cover" not in await bash(session, "sed -i s/old/new/ f*")
        done = await session.undo()
    assert (len(done.restored), done.refused) == (40, ())
    assert tree_of(root) == before


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Files are covered only once this is set, and nobody waits long for that."""
    free, copy = threading.Event(), Contents.put_file

    def held(self: Contents, source: int) -> str:
        if threading.current_thread().name == "gripfast-cover":
            free.wait()
        return copy(self, source)

    monkeypatch.setattr(Contents, "put_file", held)
    monkeypatch.setattr(cover, "_STALLED", 0.0)
    yield free
    free.set()


async def test_what_a_command_changed_before_it_was_covered_is_named_in_answer_log_and_undo(
    root: Path, stuck: threading.Event
) -> None:
    names = [f"f{number:02}" for number in range(14)]
    for name in names:
        (root / name).write_text("old\n")
    async with opened(root) as session:
        text = await bash(session, "sed -i s/old/new/ f*; echo x > made")
        stuck.set()
        why = "it was changed before a copy was made"
        shown = ", ".join(f"{name} ({why})" for name in names[:10])
        assert f"[undo does not cover: {shown} and 4 more]" in text
        assert session.record.calls()[0].uncovered == tuple(f"{root}/{name}: {why}" for name in names)
        done = await session.undo()
    assert [one.path for one in done.restored] == ["made"]
    assert [(one.path, why in one.reason) for one in done.refused] == [(name, True) for name in names]
    assert {(root / name).read_text() for name in names} == {"new\n"}


async def test_what_somebody_writes_while_the_look_after_a_command_goes_on_is_not_the_command_s(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the end of a command and the look at a content, a person may have saved the file."""
    (root / "a").write_text("old\n")
    (root / "b").write_text("old\n")
    copy, theirs = Contents.put_file, "a person's, and longer\n"

    def late(self: Contents, source: int) -> str:
        if os.pread(source, 10, 0) == b"new\n":
            (root / "b").write_text(theirs)
        return copy(self, source)

    async with opened(root) as session:
        await bash(session, "true")
        monkeypatch.setattr(Contents, "put_file", late)
        await bash(session, "echo new > a; echo other > b")
        monkeypatch.undo()
        monkeypatch.setenv("XDG_STATE_HOME", str(root.parent / "state"))
        done = await session.undo()
    assert [one.path for one in done.restored] == ["a"]
    assert [one.path for one in done.refused] == ["b"]
    assert (root / "b").read_text() == theirs


async def test_what_somebody_writes_right_after_a_command_is_never_overwritten(root: Path) -> None:
    for name in ("same length", "same time", "gone", "mode"):
        (root / name).write_text("old\n")
    async with opened(root) as session:
        await bash(session, 'for f in *; do echo new > "$f"; done')
        (root / "same length").write_text("NEW\n")
        times = (root / "same time").stat()
        (root / "same time").write_text("NEW\n")
        os.utime(root / "same time", ns=(times.st_atime_ns, times.st_mtime_ns))
        (root / "gone").unlink()
        (root / "mode").chmod(0o600)
        done = await session.undo()
        assert done.restored == ()
        assert [one.path for one in done.refused] == ["gone", "mode", "same length", "same time"]
    assert (root / "same length").read_text() == (root / "same time").read_text() == "NEW\n"


async def test_what_somebody_writes_while_a_command_runs_is_kept_in_the_record_when_it_is_taken_back(
    root: Path,
) -> None:
    """It can't be told from what the command did; but it is not lost, and the undo of the undo brings it back."""
    (root / "theirs").write_text("old\n")
    async with opened(root) as session:
        async with anyio.create_task_group() as group:
            group.start_soon(bash, session, "mkfifo go; touch started; read < go; rm go; echo x > own")
            while not (root / "started").exists():
                await anyio.sleep(0.01)
            (root / "theirs").write_text("a person's\n")
            await anyio.to_thread.run_sync((root / "go").write_text, "\n")
        planned = await session.undo(dry_run=True)
        assert "theirs" in [one.path for one in planned.restored], "it is said before it is done"
        done = await session.undo()
        assert (root / "theirs").read_text() == "old\n"
        assert done.call is not None
        await session.undo(calls=[done.call])
        assert (root / "theirs").read_text() == "a person's\n"


async def test_rm_is_asked_about_as_long_as_what_it_removes_is_not_covered(
    root: Path, stuck: threading.Event
) -> None:
    (root / "a").write_text("a\n")
    async with opened(root, permissions=rule_set("workspace"), rules="workspace") as session:
        assert "is not recorded yet" in await bash(session, "rm a")
        assert (root / "a").exists()
        stuck.set()
        assert session.record.cover.wait(60)
        assert "not recorded" not in await bash(session, "rm a")
        assert not (root / "a").exists()


async def test_what_a_background_command_does_where_undo_does_not_reach_is_named(root: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    async with opened(root) as session:
        await session.call("Bash", {"command": "git config a.b c; touch done", "run_in_background": True})
        with anyio.fail_after(60):
            while not (root / "done").exists():
                await anyio.sleep(0.02)
        assert ".git (not recorded)" in await bash(session, "true")
        (uncovered,) = session.record.calls()[0].uncovered
    assert uncovered == f"{root}/.git: not recorded"


async def test_what_a_tool_wrote_while_background_commands_ran_is_not_said_of_them(root: Path) -> None:
    (root / "a.txt").write_text("one\n", encoding="utf-8")
    async with opened(root) as session:
        await session.call("Read", {"file_path": "a.txt"})
        for _ in range(2):
            await session.call("Bash", {"command": "sleep 600", "run_in_background": True})
        patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n"
        assert not (await session.call("apply_patch", {"patch": patch})).is_error
        assert "undo does not cover" not in await bash(session, "true")
        assert [call.tool for call in session.record.calls() if call.changes] == ["apply_patch"]


# --- a full disk ---


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk, and not everywhere")
    monkeypatch.setenv("XDG_STATE_HOME", str(place))
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def test_on_a_full_disk_every_call_works_and_says_that_it_is_not_recorded(root: Path, small_disk: Path) -> None:
    (root / "a").write_text("one\n")
    async with opened(root) as session:
        assert "recorded" not in (await session.call("Write", {"file_path": "early", "content": "e\n"})).text
        with open(small_disk / "filler", "wb", buffering=0) as filler, pytest.raises(OSError):
            while True:
                filler.write(b"x" * 512)
        large = "y" * 20_000
        for name in ("new", "newer"):
            message = await session.call("Write", {"file_path": name, "content": large})
            assert not message.is_error and (root / name).read_text() == large
            assert "[not recorded, so it can't be undone: No space left on device]" in message.text
        text = await bash(session, "echo two >> a; echo done")
        assert "done" in text and "[undo does not cover: a (No space left on device)]" in text
        (small_disk / "filler").unlink()
        message = await session.call("Write", {"file_path": "late", "content": "l\n"})
        assert "recorded" not in message.text
        assert [one.path for one in (await session.undo()).restored] == ["late"]
    assert not (root / "late").exists()
    assert (root / "a").read_text() == "one\ntwo\n"


# --- many files, odd names ---


async def test_thousands_of_changes_by_one_command_are_taken_back_and_put_back(root: Path) -> None:
    for number in range(1_100):
        (root / f"f{number}").write_text(f"{number}\n")
    before = tree_of(root)
    async with opened(root) as session:
        await bash(session, "sed -i s/^/x/ f*; mkdir d; cd d; seq 1000 | split -l 1 -a 4 - n")
        after = tree_of(root)
        done = await session.undo()
        assert (len(done.restored), done.refused) == (2_101, ())
        assert tree_of(root) == before
        assert done.call is not None
        assert (await session.undo(calls=[done.call])).refused == ()
    assert tree_of(root) == after


async def test_files_become_directories_and_files_again_over_several_calls(root: Path) -> None:
    (root / "a").write_text("a\n")
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "f").write_text("f\n")
    before = tree_of(root)
    async with opened(root) as session:
        await bash(session, "rm a; mkdir -p a/b; echo x > a/b/c; rm -r d; echo y > d")
        await bash(session, "rm -r a; echo z > a; rm d; mkdir d; echo w > d/e")
        await session.undo(calls=[1, 2])
    assert tree_of(root) == before


async def test_names_that_are_not_utf_8_are_restored_and_shown_escaped(root: Path) -> None:
    name = os.fsdecode(b"n\xff\xfe")
    (root / name).write_text("old\n")
    before = tree_of(root)
    async with opened(root) as session:
        await bash(session, 'for f in n*; do echo new > "$f"; mv "$f" "$f"$\'\\x80\'; done')
        done = await session.undo()
        assert session.record.calls()[0].changes[0].path == f"{root}/{name}"
    assert (len(done.restored), done.refused) == (2, ())
    assert tree_of(root) == before


# --- git's own state ---

PLAIN = "git init -q . && echo 1 > a && echo 2 > b && git add . && git commit -qm x"
PREPARED = {
    "a dirty index": f"{PLAIN}; echo s > a; git add a; echo d > a; git rm -q --cached b; touch new; git add -N new",
    "a worktree": f"mkdir ../main && (cd ../main && {PLAIN} && git worktree add -q --force $OLDPWD -b other)",
    "a submodule": f"mkdir ../s; (cd ../s && {PLAIN}) && {PLAIN} && git submodule add -q ../s sub; git commit -qm x",
}
GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
    **{f"GIT_{who}_{what}": "x@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def everything_of_git(place: Path) -> dict[str, bytes]:
    """Each file of every repository below a directory, byte for byte."""
    files = [file for file in place.rglob("*") if ".git" in file.parts and file.is_file()]
    return {str(file.relative_to(place)): file.read_bytes() for file in files}


@pytest.mark.parametrize("name", PREPARED)
async def test_git_s_own_state_is_byte_for_byte_as_before_after_an_undo(
    name: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in GIT.items():
        monkeypatch.setenv(key, value)
    subprocess.run(["bash", "-ec", PREPARED[name]], cwd=root, check=True, capture_output=True)
    before, git = tree_of(root), everything_of_git(tmp_path)
    assert git
    async with opened(root) as session:
        await bash(session, "echo x >> a; rm -f b; mv new newer; echo y >> sub/a; rm -f sub/b; mkdir d; echo z > d/z")
        assert tree_of(root) != before
        done = await session.undo()
    assert done.refused == ()
    assert tree_of(root) == before
    assert everything_of_git(tmp_path) == git
