"""The record through a session: every change is seen, and taken back where nobody else has changed it since."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from gripfast.builtin.rulesets import rule_set
from gripfast.builtin.session import WorkspaceSession, open_session
from gripfast.call.cache import OutputCache
from gripfast.call.decision import PermissionRule
from gripfast.call.rules import Permissions
from gripfast.host.files import sweep
from gripfast.host.files import watch as watching
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.landlock import landlock_version
from gripfast.host.kernel.sparse import copy_file
from gripfast.host.record.shelf import RecordOptions, session_directory, sessions_of
from gripfast.host.record.undo import UndoResult, undo
from gripfast.host.shell import shells
from gripfast.host.shell.sandbox import Sandbox, choose
from gripfast.messages import ToolCall
from trees import tree_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "a").write_text("one\n")
    (root / "b").write_bytes(b"\0\xff binary")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "deep" / "er" / "c").write_text("deep\n")
    (root / "link").symlink_to("a")
    (root / "loop").symlink_to("loop")
    (root / "out").symlink_to("/etc")
    return root


def opened(root: Path, **options: Any) -> WorkspaceSession:
    given: dict[str, Any] = {"record": True, "sandbox": "off", "cache": OutputCache(), **options}
    return open_session(Scope.workspace(root), **given)


@pytest.fixture
async def session(root: Path, state: Path) -> AsyncIterator[WorkspaceSession]:
    async with opened(root) as session:
        yield session


async def bash(session: WorkspaceSession, command: str) -> str:
    return (await session.call("Bash", {"command": command})).text


def names(result: UndoResult) -> list[str]:
    return [done.path for done in result.restored]


COMMANDS = {
    "a new file": "echo x > new",
    "a changed file": "echo x >> a",
    "a replaced file": "echo x > t; mv t a",
    "a deleted file": "rm a",
    "a binary file": "printf 'x\\0y' > b",
    "a truncated file": "truncate -s 0 a",
    "an empty file": "rm a; touch a",
    "sed in place": "sed -i s/one/two/ a",
    "a mode": "chmod 600 run; chmod 700 deep",
    "a rename": "mv a z",
    "a rename over another": "mv a b",
    "a rename that changes the case alone": "mv a A",
    "a directory renamed": "mv deep far",
    "a directory renamed and changed": "mv deep far; echo x >> far/er/c; rm a",
    "a tree deleted": "rm -r deep",
    "a tree made": "mkdir -p n/m/o; echo x > n/m/o/f; ln -s f n/m/o/l",
    "an empty directory made": "mkdir new",
    "an empty directory deleted": "rmdir empty",
    "a file that becomes a directory": "rm a; mkdir a; echo x > a/b",
    "a directory that becomes a file": "rm -r deep; echo x > deep",
    "a link made": "ln -s nowhere l; ln -s / top; ln -s self self",
    "a link deleted": "rm link loop",
    "a link that points elsewhere": "ln -sfn b link",
    "a link that becomes a file": "rm link; echo x > link",
    "a file that becomes a link": "rm a; ln -s b a",
    "a hard link": "ln a hard; echo x >> new",
    "names that are no text": "echo x > $'\\xff\\xfe'; mv b $'b\\x80'",
    "odd names": "touch -- 'a b' $'new\\nline' '-rf' '*' '\\' '\"'",
    "names in other scripts": "mkdir -p 目录/каталог; echo x > 目录/каталог/файл; touch café 🚀 café",
    "names in other scripts, changed": "mv a 文件; echo x >> 文件; mv 文件 файл; mv deep 目录",
    "hidden names": "echo x > .hidden; echo '*.log' > .gitignore; mkdir .config; echo x > .config/x",
    "links to directories": "mkdir -p s/d; echo x > s/d/t; ln -s t s/d/l; ln -s s sl; ln -s $PWD/s/d al",
    "a long name": "touch $(printf 'n%.0s' $(seq 250))",
    "many files": "mkdir m; cd m; for i in $(seq 300); do echo $i > $i; done",
    "an archive": "tar cf t.tar a deep; rm -r deep; tar xf t.tar; echo y > deep/new",
    "a copy": "cp -r deep copy; cp a copy/a",
    "a read-only directory": "chmod 555 deep/er; chmod 500 deep",
    "a link to a new directory in the place of one": "rm -r deep; mkdir -p z/er; ln -s z deep; echo e > z/er/c",
    "a directory moved, a link in its place": "mv deep z; ln -s z deep; echo e > deep/er/c; rm a",
    "a link in the place of a directory below": "mv deep/er z; ln -s ../z deep/er; echo e > z/c; echo e > z/d",
    "a link to the workspace in the place of a directory": "rm -r deep; ln -s . deep; mkdir er; echo e > er/c",
    "links outside in the place of directories": "rm -r deep empty; ln -s /etc deep; ln -s /usr empty",
    "links to each other in the place of directories": "rm -r deep empty; ln -s empty deep; ln -s deep empty",
    "directories that change places by links": "mv deep t; mv empty deep; ln -s t empty; echo e > empty/er/c",
    "a directory in the place of a link": "rm link out; mkdir link; cp -r deep out; echo x > link/a; ln -s ../a out",
    "a directory in the place of a link to it": "ln -s deep d; rm d; mv deep d; ln -s d/er deep; echo x > deep/c",
    "hard links in the place of files": "ln -f a b; ln a deep/er/d; echo x >> deep/er/d; ln -f run a",
    "hard links of one file that is written": "ln a h1; ln a deep/h2; rm a; echo x > h1; mkdir a; ln h1 a/h3",
    "files and directories that change places": "mv a t; mv deep a; mv t deep; echo x >> a/er/c; echo x >> deep",
    "everything": "rm -rf ./*; echo x > only",
}


@pytest.mark.parametrize("name", COMMANDS)
async def test_what_a_command_did_is_taken_back_and_put_back_again(
    name: str, session: WorkspaceSession, root: Path
) -> None:
    before = tree_of(root)
    await bash(session, COMMANDS[name])
    after = tree_of(root)
    assert after != before
    planned = await session.undo(dry_run=True)
    assert tree_of(root) == after
    done = await session.undo()
    assert (done.refused, names(done)) == ((), names(planned))
    assert tree_of(root) == before
    assert done.call is not None
    again = await session.undo(calls=[done.call])
    assert again.refused == ()
    assert tree_of(root) == after


@pytest.mark.parametrize("with_git", [False, True], ids=["without git", "in git"])
async def test_many_commands_without_one_write_are_all_taken_back(with_git: bool, root: Path, state: Path) -> None:
    """An agent that uses Bash alone: nothing is lost, whether or not there is git."""
    if with_git:
        script = "git init -q . && git add a b deep && git -c user.name=x -c user.email=x commit -qm x; echo d >> b"
        subprocess.run(["bash", "-c", script], cwd=root, check=True)
    before = tree_of(root)
    async with opened(root) as session:
        for number in range(24):
            await bash(
                session, f"echo {number} >> a; rm -f deep/er/c; echo x > f{number}; mv f{number} g; sed -i s/d/e/ b"
            )
        done = await session.undo(calls=[call.number for call in session.record.calls() if call.changes])
    assert done.refused == ()
    assert tree_of(root) == before


async def test_a_write_and_an_edit_are_taken_back_with_the_directories_they_made(
    session: WorkspaceSession, root: Path
) -> None:
    before = tree_of(root)
    await session.call("Read", {"file_path": "a"})
    await session.call("Edit", {"file_path": "a", "old_string": "one", "new_string": "two"})
    await session.call("Write", {"file_path": "x/y/new", "content": "n\n"})
    calls = session.record.calls()
    assert [call.tool for call in calls] == ["Read", "Edit", "Write"]
    assert [len(call.changes) for call in calls] == [0, 1, 3]
    await session.undo(calls=[2, 3])
    assert tree_of(root) == before


async def test_a_path_that_somebody_changed_since_is_refused_and_the_rest_is_restored(
    session: WorkspaceSession, root: Path
) -> None:
    await bash(session, "echo x >> a; echo x > new; mkdir dir; rm b")
    (root / "a").write_text("theirs\n")
    (root / "dir" / "theirs").write_text("theirs\n")
    done = await session.undo()
    assert names(done) == ["b", "new"]
    assert [refused.path for refused in done.refused] == ["a"]
    assert [kept.path for kept in done.kept] == ["dir"]
    assert "gripfast diff 1 --path a" in done.refused[0].reason
    assert (root / "a").read_text() == (root / "dir" / "theirs").read_text() == "theirs\n"


async def test_a_file_full_of_holes_does_not_hold_up_an_undo(
    session: WorkspaceSession, root: Path, tmp_path: Path
) -> None:
    await bash(session, "truncate -s 8G big; echo new > a; echo x > grown")
    os.truncate(root / "grown", 8 << 30)
    result = await session.undo()
    reasons = {refused.path: refused.reason for refused in result.refused}
    assert reasons.keys() == {"big", "grown"}
    assert "don't fit into the record" in reasons["big"] and "changed by somebody else" in reasons["grown"]
    assert names(result) == ["a"]
    assert (root / "big").stat().st_size == 8 << 30
    copy_file(str(root / "grown"), str(tmp_path / "copy"), 0o640)
    copied = (tmp_path / "copy").stat()
    assert (copied.st_size, stat.S_IMODE(copied.st_mode)) == (8 << 30, 0o640)
    assert copied.st_blocks * 512 < 1 << 20
    with open(tmp_path / "copy", "rb") as file:
        assert file.read(3) == b"x\n\0"


async def test_a_later_call_is_named_as_the_reason(session: WorkspaceSession, root: Path) -> None:
    await bash(session, "echo x >> a")
    await bash(session, "echo y >> a")
    assert "call 2 changed it later" in (await session.undo(calls=[1])).refused[0].reason
    assert (await session.undo(calls=[1, 2])).refused == ()
    assert (root / "a").read_text() == "one\n"


async def test_each_undo_without_a_number_goes_one_call_further_back(session: WorkspaceSession, root: Path) -> None:
    await bash(session, "echo x >> a")
    await bash(session, "echo y >> a")
    assert (await session.undo()).calls == (2,)
    assert (await session.undo()).calls == (1,)
    assert (root / "a").read_text() == "one\n"
    with pytest.raises(Exception, match="no call of this session"):
        await session.undo()


async def test_paths_choose_what_is_taken_back(session: WorkspaceSession, root: Path) -> None:
    await bash(session, "echo x >> a; echo x >> deep/er/c; rm b")
    assert names(await session.undo(paths=["deep"])) == ["deep/er/c"]
    assert not (root / "b").exists()


async def test_nothing_is_put_back_through_a_link(session: WorkspaceSession, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "er"
    outside.mkdir(parents=True)
    await bash(session, "rm deep/er/c")
    (root / "deep" / "er").rmdir()
    (root / "deep").rmdir()
    (root / "deep").symlink_to(outside.parent)
    done = await session.undo()
    assert [refused.path for refused in done.refused] == ["deep/er/c"]
    assert list(outside.iterdir()) == []


async def test_what_is_not_covered_is_named_in_the_answer_and_refused(root: Path, state: Path) -> None:
    (root / "large").write_bytes(b"x" * 2000)
    async with opened(root, record=RecordOptions(largest_file=1000)) as session:
        text = await bash(session, "rm large; mkdir -p node_modules; echo x > a")
        assert "[undo does not cover: large (larger than 1000 bytes)]" in text
        done = await session.undo()
        assert names(done) == ["a", "node_modules"]
        assert [refused.path for refused in done.refused] == ["large"]


async def test_what_a_command_does_in_git_is_named_and_not_undone(root: Path, state: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    async with opened(root) as session:
        text = await bash(session, "git config a.b c; echo x > a")
        assert "[undo does not cover: .git (not recorded)]" in text
        assert "does not cover" not in await bash(session, "git config a.b d; echo y > a")
        assert session.record.calls()[1].uncovered
        assert names(await session.undo()) == ["a"]


async def test_what_git_ignores_is_not_covered_and_named(root: Path, state: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_text("x\n")
    async with opened(root) as session:
        assert "x.log (ignored by git)" in await bash(session, "rm x.log")


@pytest.mark.parametrize("attributes", ["", "* filter=upper"])
async def test_a_file_that_git_filters_is_put_back_as_it_was(attributes: str, root: Path, state: Path) -> None:
    (root / ".gitattributes").write_text(attributes)
    script = (
        "git init -q . && git config filter.upper.clean 'tr a-z A-Z' && git add . && touch -d '+1 sec' .git/index"
    )
    subprocess.run(["bash", "-c", script], cwd=root, check=True)
    before = tree_of(root)
    async with opened(root) as session:
        await bash(session, "rm -r a deep")
        assert (await session.undo()).refused == ()
    assert tree_of(root) == before


async def test_the_record_is_private_and_a_line_has_what_the_page_promises(
    session: WorkspaceSession, root: Path, state: Path
) -> None:
    await session.call("Write", {"file_path": "new", "content": "n" * 9000})
    for above, directories, files in os.walk(state / "gripfast" / "record"):
        assert all(stat.S_IMODE(os.lstat(f"{above}/{name}").st_mode) == 0o700 for name in directories)
        assert all(stat.S_IMODE(os.lstat(f"{above}/{name}").st_mode) == 0o600 for name in files)
    call = session.record.calls()[0].to_json()
    assert call["arguments"].startswith("sha256:")
    assert call["answer_bytes"] == 4 * call["answer_tokens"] - (-call["answer_bytes"] % 4)
    assert call["changes"][0]["after"] == {
        "kind": "file",
        "mode": "0644",
        "sha256": call["changes"][0]["after"]["sha256"],
        "size": 9000,
    }


DOCUMENTED = {
    "call": int, "time": float, "tool": str, "arguments": str, "decision": str, "milliseconds": float,
    "answer_bytes": int, "answer_tokens": int, "output_ref": str | None, "error": str | None, "changes": list,
    "uncovered": list, "undoes": list, "ended": bool, "answer_sha256": str | None,
    "printed_sha256": str | None,
}  # fmt: skip


async def test_the_keys_of_a_line_are_those_that_the_page_documents(session: WorkspaceSession, root: Path) -> None:
    page = Path(__file__).parents[2].joinpath("docs", "concepts", "record.md").read_text(encoding="utf-8")
    table = page.split("## `gripfast log --json`")[1].split("\n\n")[2]
    assert set(DOCUMENTED) == {
        name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    await bash(session, "echo x >> a; ln -s a l; mkdir n; rm b")
    line = json.loads(json.dumps(session.record.calls()[0].to_json()))
    assert set(line) == set(DOCUMENTED)
    assert all(isinstance(line[key], kind) for key, kind in DOCUMENTED.items())
    states = [state for change in line["changes"] for state in (change["before"], change["after"])]
    assert {tuple(sorted(state)) for state in states} == {
        ("kind",), ("kind", "mode"), ("kind", "target"), ("kind", "mode", "sha256", "size"),
    }  # fmt: skip


async def test_the_line_names_the_rule_or_the_person(root: Path, state: Path) -> None:
    async def yes(_: object) -> bool:
        return True

    rules = Permissions("deny", [PermissionRule("Read", action="allow"), PermissionRule("Write", action="ask")])
    async with opened(root, permissions=rules, ask=yes) as session:
        await session.call("Read", {"file_path": "a"})
        await session.call("Write", {"file_path": "new", "content": ""})
        await session.call("Bash", {"command": "true"})
        decisions = [call.decision for call in session.record.calls()]
    assert decisions[0].startswith("allowed: ") and "allowed by the rule Read" in decisions[0]
    assert decisions[1].startswith("allowed: the user said yes; ")
    assert decisions[2].startswith("denied: ")


def hidden(text: str) -> str:
    return text.replace("s3cret", "***")


async def test_secret_values_don_t_enter_the_record(root: Path, state: Path) -> None:
    async with opened(root, redact=hidden) as session:
        await bash(session, "true s3cret")
        assert session.record.calls()[0].arguments == '{"command": "true ***"}'
    recorded = session_directory(str(root), session.id)
    assert b"s3cret" not in (recorded / "calls.jsonl").read_bytes()


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[:-30],
    "garbage in the middle": lambda data: data.replace(b"\n", b"\n\xff\xfe{]\n", 1),
    "foreign lines": lambda data: b'{"a": 1}\n[]\n3\nnull\n' + data,
    "another version": lambda data: data.replace(b'{"record":1', b'{"record":99', 1),
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_a_damaged_record_costs_no_call_and_what_is_left_of_it_can_be_undone(
    name: str, session: WorkspaceSession, root: Path
) -> None:
    await session.call("Write", {"file_path": "new", "content": "n\n"})
    file = session.record.file
    file.write_bytes(DAMAGE[name](file.read_bytes()))
    assert not (await session.call("Write", {"file_path": "newer", "content": "n\n"})).is_error
    assert names(await session.undo()) == ["newer"]


async def test_a_record_that_can_not_be_written_is_said_with_each_change_and_costs_no_call(
    session: WorkspaceSession, root: Path
) -> None:
    session.record.file.unlink()
    session.record.file.mkdir()
    message = await session.call("Write", {"file_path": "new", "content": "n\n"})
    assert not message.is_error
    assert "[not recorded, so it can't be undone: Is a directory]" in message.text
    assert "not recorded" not in (await session.call("Read", {"file_path": "new"})).text
    assert "not recorded" in (await session.call("Write", {"file_path": "newer", "content": ""})).text


async def test_a_bug_in_the_record_costs_no_call_and_its_traceback_is_in_the_log(
    session: WorkspaceSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(type(session.record), "_append", lambda *_: None + 1)  # type: ignore[operator]
    message = await session.call("Write", {"file_path": "new", "content": "n\n"})
    assert not message.is_error and "[not recorded" in message.text
    assert any(one.exc_info and one.exc_info[0] is TypeError for one in caplog.records)


def set_back(record: Path, time: int) -> None:
    """As if the calls had been made at that time."""
    record.write_text(re.sub(r'"time":[0-9.]+', f'"time":{time}', record.read_text()))


async def test_old_records_go_first_and_the_current_one_never(root: Path, state: Path) -> None:
    for number in range(3):
        async with opened(root, id=f"old{number}") as session:
            await session.call("Write", {"file_path": f"f{number}", "content": "x" * 5000})
        set_back(session.record.file, 1_000_000_000 + number)
    async with opened(root, id="now", record=RecordOptions(quota=25_000, days=1e6)) as session:
        await session.call("Write", {"file_path": "new", "content": "y" * 5000})
    assert sessions_of(str(root)) == ["old2", "now"]
    async with opened(root, id="last", record=RecordOptions(days=1)) as session:
        pass
    assert sessions_of(str(root)) == ["now", "last"]


async def test_a_record_is_as_old_as_its_calls_whatever_the_times_of_its_files_say(root: Path, state: Path) -> None:
    """Under Landlock a command can set the times of files that it can't write."""
    for name in ("one", "two"):
        async with opened(root, id=name) as session:
            await session.call("Write", {"file_path": name, "content": "x" * 5000})
    for path in state.rglob("*"):
        os.utime(path, (1, 1))
    os.utime(session_directory(str(root), "one") / "calls.jsonl")
    async with opened(root, id="now", record=RecordOptions(days=1)):
        pass
    assert sessions_of(str(root)) == ["one", "two", "now"]


async def test_records_that_were_tidied_just_now_are_not_looked_at_again(root: Path, state: Path) -> None:
    async with opened(root, id="old") as session:
        await session.call("Read", {"file_path": "a"})
    set_back(session.record.file, 1)
    async with opened(root, id="soon"):
        pass
    assert sessions_of(str(root)) == ["old", "soon"]
    (stamp,) = state.rglob("tidied")
    os.utime(stamp, (1, 1))
    async with opened(root, id="later"):
        pass
    assert sessions_of(str(root)) == ["soon", "later"]


async def test_what_no_call_refers_to_is_removed_at_the_end(root: Path, state: Path) -> None:
    (root / "big").write_bytes(b"b" * 100_000)
    async with opened(root) as session:
        await bash(session, "echo x >> a")
        directory = session.record.directory
    assert sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) < 5_000


async def test_two_commands_at_once_share_what_changed(session: WorkspaceSession, root: Path) -> None:
    calls = [ToolCall(str(n), "Bash", {"command": f"sleep 0.3; echo x > f{n}; sleep 0.3"}) for n in range(2)]
    await session.call_all(calls)
    assert all(change.shared for call in session.record.calls() for change in call.changes)


async def run_beside(session: WorkspaceSession, command: str, place: Path, work: Callable[[], Any]) -> None:
    """Runs a command, and `work` while it waits."""
    started, go = place / "started", place / "go"
    async with anyio.create_task_group() as group:
        script = f"touch {started}; while [ ! -e {go} ]; do sleep 0.02; done; {command}"
        group.start_soon(session.call, "Bash", {"command": script})
        with anyio.fail_after(120):
            while not started.exists():
                await anyio.sleep(0.02)
        await work()
        go.touch()


def changed(session: WorkspaceSession) -> dict[str, dict[str, bool]]:
    return {
        call.tool: {os.path.basename(change.path): change.shared for change in call.changes}
        for call in session.record.calls()
    }


async def test_what_another_call_writes_while_a_command_runs_is_not_the_command_s(
    session: WorkspaceSession, root: Path, tmp_path: Path
) -> None:
    await run_beside(
        session, "echo x > b", tmp_path, lambda: session.call("Write", {"file_path": "mine", "content": "m\n"})
    )
    assert changed(session) == {"Bash": {"b": False}, "Write": {"mine": False}}
    assert names(await session.undo(calls=[1])) == ["b"]
    assert (root / "mine").read_text() == "m\n"


async def test_a_path_that_a_command_changes_after_another_call_is_undone_to_what_that_call_left(
    session: WorkspaceSession, root: Path, tmp_path: Path
) -> None:
    write = {"file_path": "mine", "content": "m\n"}
    await run_beside(session, "echo x >> mine", tmp_path, lambda: session.call("Write", write))
    assert names(await session.undo(calls=[1])) == ["mine"]
    assert (root / "mine").read_text() == "m\n"


async def test_what_another_session_writes_while_a_command_runs_is_not_the_command_s(
    session: WorkspaceSession, root: Path, tmp_path: Path
) -> None:
    async with opened(root) as other:
        write = {"file_path": "theirs", "content": "t\n"}
        await run_beside(session, "echo x > b", tmp_path, lambda: other.call("Write", write))
        assert changed(session) == {"Bash": {"b": False}}
        assert changed(other) == {"Write": {"theirs": False}}


async def test_what_commands_of_two_sessions_change_at_once_is_shared_and_undo_says_so(
    session: WorkspaceSession, root: Path, tmp_path: Path
) -> None:
    async with opened(root) as other:
        await run_beside(session, "echo x > b", tmp_path, lambda: bash(other, "echo y > theirs"))
        assert changed(session) == {"Bash": {"b": False, "theirs": True}}
        done = await session.undo(dry_run=True)
    assert {one.path: one.what for one in done.restored} == {
        "b": "restored",
        "theirs": "removed, but perhaps made by another command that ran at the same time",
    }


async def test_what_a_background_shell_changes_belongs_to_the_call_that_started_it(
    session: WorkspaceSession, root: Path
) -> None:
    before = tree_of(root)
    await session.call("Bash", {"command": "echo x >> a; touch done", "run_in_background": True})
    with anyio.fail_after(60):
        while not (root / "done").exists():
            await anyio.sleep(0.02)
    await session.call("Write", {"file_path": "mine", "content": "m\n"})
    await session.undo(calls=[2])
    calls = {
        call.number: [os.path.basename(change.path) for change in call.changes] for call in session.record.calls()
    }
    assert calls[1] == ["a", "done"]
    await session.undo(calls=[1])
    assert tree_of(root) == before


async def test_a_record_that_lies_inside_the_workspace_does_not_record_itself(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
    async with opened(root) as session:
        assert await bash(session, "echo x >> a") == "[files: changed a]"
        await session.call("Write", {"file_path": "new", "content": "n\n"})
        assert await bash(session, "echo y >> a") == "[files: changed a]"
        assert names(await session.undo()) == ["a"]


async def test_a_session_without_a_record_says_how_to_have_one(root: Path, state: Path) -> None:
    async with opened(root, record=False) as session:
        with pytest.raises(Exception, match="record=True"):
            await session.undo()
    assert not state.exists()


@pytest.mark.parametrize("rules", ["workspace", "trusted"])
async def test_rm_runs_unasked_where_all_that_it_removes_can_be_brought_back(
    rules: str, root: Path, state: Path
) -> None:
    script = "git init -q . && git add a b && mkdir dist && touch .env dist/x deep/er/y"
    subprocess.run(["bash", "-c", script], cwd=root, check=True)
    (root / ".gitignore").write_text(".env\ndist\n")
    (root / "deep" / "large").write_bytes(b"x" * 5000)
    before = tree_of(root)
    async with opened(
        root, permissions=rule_set(rules), record=RecordOptions(largest_file=1000), rules=rules
    ) as session:
        session.prepare()
        assert session.record.cover.wait(60)
        for line in ("rm -f .env", "rm -rf deep", "rm -rf a .env", "rm -rf ./*"):
            assert "could not be brought back" in await bash(session, line), line
        assert tree_of(root) == before
        for line in ("rm -f a b", "rm -rf deep/er", "rm -rf link empty", "rm -f nothing"):
            assert "could not be brought back" not in await bash(session, line), line
        assert not any((root / name).is_symlink() or (root / name).exists() for name in ("a", "b", "deep/er", "link"))
        await session.undo(calls=[call.number for call in session.record.calls() if call.changes])
        assert tree_of(root) == before
        assert "could not be brought back" not in await bash(session, "rm -rf dist")
        assert not (root / "dist").exists()


async def test_what_is_made_again_is_removed_unasked_without_a_gitignore_too(root: Path, state: Path) -> None:
    for path in ("node_modules/x.js", "web/node_modules/x.js", "deep/__pycache__/x.pyc"):
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text("x")
    (root / "web" / "package-lock.json").write_text("{}")
    async with opened(root, permissions=rule_set("trusted"), record=True, rules="trusted") as session:
        session.prepare()
        assert session.record.cover.wait(60)
        asked = await bash(session, "rm -rf node_modules")
        assert "if node_modules can be made again, name it in .gitignore" in asked
        assert (root / "node_modules" / "x.js").exists()
        for line in ("rm -rf web/node_modules", "rm -rf deep/__pycache__"):
            assert "could not be brought back" not in await bash(session, line), line
        assert not (root / "web" / "node_modules").exists()
        assert not (root / "deep" / "__pycache__").exists()


async def test_an_environment_of_a_project_is_removed_unasked_and_undo_says_that_it_is_empty(
    root: Path, state: Path
) -> None:
    for path in (".venv", "tools/env"):
        (root / path / "lib").mkdir(parents=True)
        (root / path / "pyvenv.cfg").write_text("home = /usr/bin\n")
        (root / path / "lib64").symlink_to("lib")
    (root / "pyproject.toml").write_text("[project]\n")
    async with opened(root, permissions=rule_set("trusted"), record=True, rules="trusted") as session:
        session.prepare()
        assert session.record.cover.wait(60)
        await bash(session, "rm -rf .venv")
        assert not (root / ".venv").exists()
        (done,) = (await session.undo()).restored
        assert (done.path, done.what) == (".venv", "restored empty, because what was in it is not recorded")


async def test_an_undo_of_the_last_change_passes_over_what_git_ignores(root: Path, state: Path) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    (root / ".gitignore").write_text("target/\n")
    async with opened(root, record=True) as session:
        await session.call("Write", {"file_path": "new.rs", "content": "fn main() {}\n"})
        await bash(session, "mkdir target; touch target/a target/b")
        result = await session.undo(dry_run=True)
        assert [done.path for done in result.restored] == ["new.rs"]
        await session.undo()
        assert not (root / "new.rs").exists() and (root / "target" / "a").exists()
        assert [done.path for done in (await session.undo()).restored] == ["target", "target/a", "target/b"]


async def test_without_a_record_rm_is_asked_about(root: Path) -> None:
    async with opened(root, permissions=rule_set("workspace"), record=False) as session:
        assert "nothing is recorded" in await bash(session, "rm a")
    assert (root / "a").exists()


# ---- what is written by another name of a file ----

BY_ANOTHER_NAME = {
    "below node_modules": ("ln a node_modules/p/x; echo evil > node_modules/p/x",),
    "and the name removed again": ("ln a node_modules/x; echo evil > node_modules/x; rm node_modules/x",),
    "made by an earlier command": ("ln a node_modules/p/x", "true", "echo evil > node_modules/p/x"),
    "and its time put back": ("touch -r a t; ln a node_modules/x; echo bad > node_modules/x; touch -r t a; rm t",),
    "outside the workspace": ("ln a ../x; echo evil > ../x",),
}


@pytest.fixture(params=["small", "large"])
def tree_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """In a large tree files are compared after the answer."""
    if request.param == "large":
        monkeypatch.setattr(watching, "COMPARED_AT_ONCE", 1)
    return request.param


@pytest.mark.parametrize("name", BY_ANOTHER_NAME)
async def test_what_a_command_writes_by_another_name_of_a_file_is_told_and_taken_back(
    name: str, tree_size: str, root: Path, state: Path
) -> None:
    (root / "node_modules/p").mkdir(parents=True)
    async with opened(root) as session:
        texts = [await bash(session, command) for command in BY_ANOTHER_NAME[name]]
        writer = len(texts)
        if tree_size == "small":
            assert "changed a" in texts[-1]
        else:  # a name that an earlier comparison found is compared at once
            session.record.collect(all=True)
            told = texts[-1] + await bash(session, "true")
            assert "changed a" in told or "through another name of the file: a]" in told
        assert [change.path for change in session.record.changes(writer)] == [f"{root}/a"]
        done = await session.undo(calls=[writer])
        assert (names(done), done.refused) == (["a"], ())
    assert (root / "a").read_text() == "one\n"


async def test_an_undo_finds_what_was_written_by_another_name(
    root: Path, state: Path, tree_size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_REST", 10**12)  # nothing is compared in the background after the first command
    (root / "node_modules").mkdir()
    async with opened(root) as session:
        await bash(session, "true")
        session.record.collect(all=True)
        await bash(session, "ln a node_modules/x; echo evil > node_modules/x")
        assert names(await session.undo()) == ["a"]
    assert (root / "a").read_text() == "one\n"


async def test_the_end_of_a_session_finds_what_was_written_by_another_name(
    root: Path, state: Path, tree_size: str
) -> None:
    (root / "node_modules").mkdir()
    async with opened(root) as session:
        await bash(session, "ln a node_modules/x; echo evil > node_modules/x")
    assert [change.path for call in session.record.calls() for change in call.changes] == [f"{root}/a"]


async def test_without_a_record_what_was_written_by_another_name_is_told(
    root: Path, state: Path, tree_size: str
) -> None:
    (root / "node_modules").mkdir()
    async with opened(root, record=False) as session:
        told = await bash(session, "ln a node_modules/x; echo evil > node_modules/x")
        for _ in range(1000 if tree_size == "large" else 0):  # compared in the background, told when it is found
            if "changed a" in told:
                break
            told = await bash(session, "true")
        assert "changed a" in told


async def test_what_the_session_has_read_is_compared_at_once_in_any_tree(
    root: Path, state: Path, tree_size: str
) -> None:
    (root / "node_modules").mkdir()
    async with opened(root) as session:
        await session.call("Read", {"file_path": "a"})
        assert "changed a" in await bash(session, "ln a node_modules/x; echo evil > node_modules/x")
        assert [change.path for change in session.record.changes(2)] == [f"{root}/a"]


async def test_a_new_name_or_mode_of_a_file_is_no_change_of_its_content(session: WorkspaceSession) -> None:
    assert "changed" not in await bash(session, "ln a elsewhere; chmod 600 run")


async def test_a_write_whose_time_is_put_back_is_told(session: WorkspaceSession) -> None:
    assert "changed a" in await bash(session, "touch -r a /tmp/t$$; echo bad > a; touch -r /tmp/t$$ a; rm /tmp/t$$")


async def test_calls_of_two_processes_in_one_record_have_different_numbers(root: Path, state: Path) -> None:
    async with opened(root, id="same") as one, opened(root, id="same") as other:
        first = one.record.begin("1", "Read", "{}")
        second = other.record.begin("2", "Read", "{}")
        first.end()
        third = one.record.begin("3", "Read", "{}")
        second.end()
        third.end()
        fourth = other.record.begin("4", "Read", "{}")
        fourth.end()
        assert [first.number, second.number, third.number, fourth.number] == [1, 2, 3, 4]
        assert [call.number for call in one.record.calls() if call.ended] == [1, 2, 3, 4]


async def test_a_record_whose_file_was_removed_goes_on_in_a_new_one(root: Path, state: Path) -> None:
    async with opened(root) as session:
        await session.call("Read", {"file_path": "a"})
        session.record.file.unlink()
        answer = await session.call("Read", {"file_path": "a"})
        assert "not recorded" not in answer.text
        assert [call.tool for call in session.record.calls()] == ["Read"]
        assert session.record.calls()[0].number == 2


async def test_a_call_that_ends_after_its_session_leaves_no_file_open(root: Path, state: Path) -> None:
    async with opened(root) as session:
        entry = session.record.begin("1", "Read", "{}")
    entry.end()
    assert session.record.calls()[0].ended
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if fd_is_open(fd)]
    assert str(session.record.file) not in held


def fd_is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


@pytest.fixture(params=["bwrap", "landlock"])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Commands run at this level of the sandbox."""
    level = str(request.param)
    chosen = Sandbox("landlock") if level == "landlock" and landlock_version() else choose("auto")
    if chosen.level != level:
        pytest.skip(f"{level} does not work here: {chosen.faults}")

    def always(_: object) -> Sandbox:
        return chosen

    monkeypatch.setattr(shells, "choose", always)
    return level


async def test_ci_files_that_git_moved_are_recorded_and_those_that_were_put_back_are_not(
    level: str, root: Path, state: Path
) -> None:
    ci = root / ".github/workflows/ci.yml"
    ci.parent.mkdir(parents=True)
    ci.write_text("one\n")
    set_up = """git init -qb main .; git config user.email a@b; git config user.name a; git add .; git commit -qm one
    git switch -qc other; echo two > .github/workflows/ci.yml; echo x > .github/workflows/new.yml; git add .
    git commit -qm two; git switch -q main"""
    subprocess.run(["bash", "-ec", set_up], cwd=root, check=True)
    async with opened(root, sandbox="auto") as session:
        text = await bash(session, "git status -s; echo three > .github/workflows/ci.yml; git add .")
        assert "[taken out of the workspace: .github/workflows/ci.yml (a protected file that a command" in text
        assert "changed .github" not in text and "created .github" not in text
        text = await bash(session, "git reset -q; git switch -q other")
        assert "created .github/workflows/new.yml; changed .github/workflows/ci.yml" in text
        assert ci.read_text() == "two\n"


LOSING = {
    "restore": "git restore .",
    "checkout": "git checkout -- .",
    "removal": "git add -A; git rm -rqf .github; git gc -q --prune=now",
    "an untracked file": "git hash-object -w .github/workflows/mine.yml; git clean -qfd; git gc -q --prune=now",
}


@pytest.mark.parametrize("how", LOSING)
async def test_what_git_took_from_ci_files_comes_back(how: str, level: str, root: Path, state: Path) -> None:
    workflows = root / ".github" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "ci.yml").write_text("good\n")
    git = "git -c user.name=u -c user.email=e"
    subprocess.run(f"git init -q; git add .; {git} commit -qm one", shell=True, cwd=root, check=True)
    (workflows / "ci.yml").write_text("good\nmy work\n")
    (workflows / "mine.yml").write_text("mine\n")
    before = {path.name: path.read_text() for path in workflows.iterdir()}
    async with opened(root, sandbox="auto") as session:
        for command in LOSING[how].split("; "):
            await bash(session, command)
        calls = [call.number for call in session.record.calls() if call.changes]
        result = await session.undo(calls)
    assert not result.refused
    assert {path.name: path.read_text() for path in workflows.iterdir()} == before


async def test_a_protected_name_that_was_written_by_leave_is_put_back_for_a_person_alone(
    root: Path, state: Path
) -> None:
    (root / ".envrc").write_text("old\n")

    async def yes(*_: object) -> bool:
        return True

    async with opened(root, permissions=rule_set("workspace"), ask=yes) as session:
        await session.call("Read", {"file_path": ".envrc"})
        written = await session.call("Write", {"file_path": ".envrc", "content": "new\n"})
        assert not written.is_error, written.text
        result = await session.undo()
        assert "protected" in result.refused[0].reason
        assert (root / ".envrc").read_text() == "new\n"
        result = undo(session.record, by_person=True)
        assert names(result) == [".envrc"]
        assert (root / ".envrc").read_text() == "old\n"
