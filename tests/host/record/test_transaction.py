"""Transaction: several paths change as a whole or not at all, whatever fails and whenever the process is killed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gripfast.errors import Conflict, SandboxViolation, ToolError
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.scope import Scope
from gripfast.host.record import transaction
from gripfast.host.record.calls import CallsFile
from gripfast.host.record.contents import Contents
from gripfast.host.record.states import ABSENT, PathState, state_at
from gripfast.host.record.transaction import Looks, Step, Transaction, recover

ROOM = 1 << 30


def write_step(contents: Contents, path: str, before: PathState, data: bytes, mode: int) -> Step:
    """A step that puts these bytes at a path."""
    return Step(path, before, PathState("file", mode, contents.put(data), len(data)))


def move_steps(source: str, before: PathState, target: str) -> list[Step]:
    return [Step(source, before, ABSENT), Step(target, ABSENT, before)]


class Bench:
    """A workspace, and a change of all kinds at once."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = tmp_path / "ws"
        (self.root / "dir" / "sub").mkdir(parents=True)
        for name in ("a", "b", "moved", "dir/sub/c"):
            (self.root / name).write_text(f"old {name}\n")
        (self.root / "b").chmod(0o600)
        (self.root / "link").symlink_to("a")
        self.fs = ScopedFs(Scope.workspace(self.root))
        self.contents = Contents(tmp_path / "contents", ROOM)
        self.journals = tmp_path / "journals"

    def state(self, name: str) -> PathState:
        return state_at(str(self.root / name), largest=ROOM)

    def steps(self) -> list[Step]:
        def path(name: str) -> str:
            return str(self.root / name)

        return [
            write_step(self.contents, path("a"), self.state("a"), b"new a\n", 0o644),
            write_step(self.contents, path("new/er/file"), ABSENT, b"new\n", 0o755),
            Step(path("b"), self.state("b"), ABSENT),
            *move_steps(path("moved"), self.state("moved"), path("new/place")),
            Step(path("dir/sub/c"), self.state("dir/sub/c"), ABSENT),
            Step(path("dir/sub"), self.state("dir/sub"), ABSENT),
            Step(path("link"), self.state("link"), PathState("link", target="b")),
        ]

    def tree(self) -> dict[str, PathState]:
        found = [os.path.join(above, name) for above, *names in os.walk(self.root) for name in (*names[0], *names[1])]
        return {os.path.relpath(path, self.root): _plain(state_at(path, largest=ROOM)) for path in found}

    def commit(self) -> None:
        with Transaction(self.fs, self.contents, self.journals) as change:
            change.prepare(self.steps())
            change.commit()


def _plain(state: PathState) -> PathState:
    return PathState(state.kind, state.mode, state.digest, state.size, state.target)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.contents.put_file(os.open(bench.root / "moved", os.O_RDONLY))
    return bench


def test_a_change_of_many_kinds_is_done_as_a_whole(bench: Bench) -> None:
    bench.commit()
    assert sorted(bench.tree()) == ["a", "dir", "link", "new", "new/er", "new/er/file", "new/place"]
    assert (bench.root / "new/place").read_text() == "old moved\n"
    assert bench.state("new/er/file").mode == 0o755
    assert os.readlink(bench.root / "link") == "b"
    assert list(bench.journals.iterdir()) == []


def test_a_path_that_is_not_what_was_expected_stops_it_before_anything_is_done(bench: Bench) -> None:
    steps = bench.steps()
    (bench.root / "dir/sub/c").write_text("theirs\n")
    before = bench.tree()
    with Transaction(bench.fs, bench.contents, bench.journals) as change, pytest.raises(Conflict, match="sub/c"):
        change.prepare(steps)
    assert bench.tree() == before


def test_left_without_a_commit_nothing_is_done(bench: Bench) -> None:
    before = bench.tree()
    with Transaction(bench.fs, bench.contents, bench.journals) as change:
        change.prepare(bench.steps())
    assert bench.tree() == before


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "../outside", "out/file"])
def test_no_step_leaves_the_scope_or_writes_a_protected_name(path: str, bench: Bench, tmp_path: Path) -> None:
    (bench.root / "out").symlink_to(tmp_path)
    step = write_step(bench.contents, os.path.normpath(bench.root / path), ABSENT, b"x", 0o644)
    with Transaction(bench.fs, bench.contents, bench.journals) as change, pytest.raises(ToolError) as raised:
        change.prepare([step])
    assert isinstance(raised.value, SandboxViolation) or "not a directory" in raised.value.message
    assert not (tmp_path / "outside").exists() and not (tmp_path / "file").exists()


@pytest.mark.parametrize("has_o_path", [True, False])
def test_a_mode_is_set_without_o_path_too_and_never_through_a_link(
    has_o_path: bool, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_o_path:  # as on macOS, where there is no /proc either
        real = os.chmod

        def chmod(path: str, mode: int, **options: Any) -> None:
            assert not path.startswith("/proc")
            real(path, mode, **options)

        monkeypatch.setattr(transaction, "_HAS_O_PATH", False)
        monkeypatch.setattr(os, "chmod", chmod)
    path = str(bench.root / "a")
    bench.contents.put_file(os.open(path, os.O_RDONLY))
    with Transaction(bench.fs, bench.contents, bench.journals) as change:
        change.prepare([Step(path, bench.state("a"), replace(bench.state("a"), mode=0o750))])
        change.commit()
    assert bench.state("a").mode == 0o750
    directory = os.open(bench.root, os.O_RDONLY)
    place = SimpleNamespace(name="link", dir_fd=directory)
    transaction._chmod(cast("Any", place), 0o777)  # pyright: ignore[reportPrivateUsage] - a link put there just now
    os.close(directory)
    assert bench.state("a").mode == 0o750


CALLS = ["rename", "unlink", "mkdir", "rmdir", "symlink", "open", "link", "fsync", "fchmod", "write", "chmod", "stat"]


@pytest.mark.parametrize("name", CALLS)
def test_whichever_system_call_fails_everything_is_taken_back(
    name: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each use of the call fails once, the first, then the second, until the whole goes through."""
    before, real = bench.tree(), getattr(os, name)
    for nth in range(200):
        count = 0

        def failing(*arguments: Any, real: Callable[..., Any] = real, nth: int = nth, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == nth + 1:
                raise OSError(errno.EIO, "injected")
            return real(*arguments, **options)

        with monkeypatch.context() as patch:
            change = Transaction(bench.fs, bench.contents, bench.journals)
            with change:
                change.prepare(bench.steps())
                patch.setattr(os, name, failing)
                try:
                    change.commit()
                except (ToolError, OSError):
                    patch.undo()
                    assert bench.tree() == before, f"{name} failed at use {nth + 1}"
                    continue
        break
    assert bench.tree() != before


KILLED = textwrap.dedent("""
    import os, sys
    from pathlib import Path
    sys.path[:0] = {paths!r}
    from record.test_transaction import Bench
    import record.test_transaction as module
    bench = Bench.__new__(Bench)
    tmp = Path({tmp!r})
    from gripfast.host.files.fs import ScopedFs
    from gripfast.host.files.scope import Scope
    from gripfast.host.record.contents import Contents
    bench.root, bench.journals = tmp / "ws", tmp / "journals"
    bench.fs, bench.contents = ScopedFs(Scope.workspace(bench.root)), Contents(tmp / "contents", 1 << 30)
    for nth in range(1, 40):
        if os.fork() == 0:
            count = 0
            def trace(event, arguments):
                global count
                if event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.link", "os.chmod"):
                    count += 1
                    if count == nth:
                        os.kill(os.getpid(), 9)
            sys.addaudithook(trace)
            bench.commit()
            os._exit(0)
        _, status = os.wait()
        from gripfast.host.record.transaction import recover
        recover(bench.fs, bench.journals)
        print(nth, status, len(bench.tree()), (bench.root / "a").read_text().split()[0], flush=True)
        if status == 0:
            break
""")


def test_killed_at_any_point_the_next_start_finds_it_done_or_not_done(bench: Bench, tmp_path: Path) -> None:
    paths = [str(Path(__file__).parent.parent)]
    script = KILLED.format(paths=paths, tmp=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert len(rows) > 8, done.stderr
    for row in rows:
        assert row[2:] == (["7", "new"] if int(row[1]) == 0 else ["7", "old"]), done.stdout
    assert int(rows[0][1]) == signal.SIGKILL


def test_a_journal_that_can_not_be_read_is_put_aside(bench: Bench) -> None:
    bench.journals.mkdir()
    (bench.journals / "x.json").write_text("{")
    before = bench.tree()
    assert recover(bench.fs, bench.journals) == []
    assert bench.tree() == before
    assert (bench.journals / "x.unreadable").exists()


def test_the_journal_of_another_version_is_left_to_who_can_read_it(bench: Bench) -> None:
    bench.journals.mkdir()
    (bench.journals / "x.json").write_text('{"version": 99, "moves": []}')
    assert recover(bench.fs, bench.journals) == []
    assert (bench.journals / "x.json").exists()


def test_a_journal_that_was_never_finished_is_swept_once_it_is_old_and_nobody_holds_it(bench: Bench) -> None:
    bench.journals.mkdir()
    names = ("young", "old", "held")
    for name in names:
        (bench.journals / f"{name}.new").write_bytes(b'{"version": 1, "ste')
    for name in names[1:]:
        os.utime(bench.journals / f"{name}.new", (time.time() - 60, time.time() - 60))
    with open(bench.journals / "held.new", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert recover(bench.fs, bench.journals) == []
        assert sorted(path.stem for path in bench.journals.iterdir()) == ["held", "young"]


def test_what_a_killed_process_did_to_a_protected_name_by_a_person_s_leave_is_taken_back(bench: Bench) -> None:
    path = bench.root / ".envrc"
    path.write_text("old\n")
    step = replace(write_step(bench.contents, str(path), bench.state(".envrc"), b"new\n", 0o644), lifted=True)
    bench.contents.put(b"old\n")
    row = [step.path, step.before.to_json(), step.after.to_json(), True]
    journal = {"version": 1, "contents": str(bench.contents.directory), "steps": [row]}
    bench.journals.mkdir()
    (bench.journals / "x.json").write_text(json.dumps(journal))
    path.write_text("new\n")
    assert recover(bench.fs, bench.journals) == [str(path)]
    assert path.read_text() == "old\n"


def test_what_a_process_finishes_just_now_is_not_taken_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its journal is removed and let go of between another's opening and locking it."""
    path = bench.root / "a"
    path.write_text("old\n")
    step = write_step(bench.contents, str(path), bench.state("a"), b"new\n", 0o644)
    bench.contents.put(b"old\n")
    row = [step.path, step.before.to_json(), step.after.to_json(), False]
    bench.journals.mkdir()
    journal = bench.journals / "x.json"
    journal.write_text(json.dumps({"version": 1, "contents": str(bench.contents.directory), "steps": [row]}))
    path.write_text("new\n")
    lock = fcntl.flock

    def finished(fd: int, how: int) -> None:
        journal.unlink(missing_ok=True)
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", finished)
    assert recover(bench.fs, bench.journals) == []
    assert path.read_text() == "new\n"


def test_a_protected_name_is_refused_unless_it_is_lifted(bench: Bench) -> None:
    step = write_step(bench.contents, str(bench.root / ".envrc"), ABSENT, b"x\n", 0o644)
    for lifted in (False, True):
        with Transaction(bench.fs, bench.contents, bench.journals) as change:
            refusal = contextlib.nullcontext() if lifted else pytest.raises(SandboxViolation, match="protected")
            with refusal:
                change.prepare([replace(step, lifted=lifted)])
                change.commit()
        assert (bench.root / ".envrc").exists() is lifted


def test_a_file_that_was_compared_is_not_read_again_unless_it_looks_different(tmp_path: Path) -> None:
    path, long_after = tmp_path / "f", time.time_ns() + 10**10
    path.write_text("old\n")
    looks, then = Looks(), path.stat()
    looks.add("f", then, long_after)
    assert looks.is_same("f", path.stat()) and not looks.is_same("g", path.stat())
    path.write_text("new\n")
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
    while path.stat().st_ctime_ns == then.st_ctime_ns:  # it moves in steps of some milliseconds
        os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (then.st_size, then.st_mtime_ns)
    assert not looks.is_same("f", path.stat()), "the time of the last change of the inode can't be set back"


def test_a_file_changed_a_moment_ago_is_read_again(tmp_path: Path) -> None:
    """Its time moves in steps: it could be changed once more without a new one."""
    path = tmp_path / "f"
    path.write_text("old\n")
    looks, found = Looks(), path.stat()
    looks.add("f", found, found.st_ctime_ns + 1_000_000)
    assert not looks.is_same("f", found)


def test_what_changes_between_plan_and_commit_is_not_lost(tmp_path: Path) -> None:
    bench, looks = Bench(tmp_path), Looks()
    steps = bench.steps()
    for step in steps:
        looks.add(step.path, os.lstat(step.path) if os.path.lexists(step.path) else None, time.time_ns() + 10**10)
    (bench.root / "a").write_text("somebody else's\n")
    with (
        Transaction(bench.fs, bench.contents, bench.journals, looks) as change,
        pytest.raises(Conflict, match="changed by somebody else"),
    ):
        change.prepare(steps)
    assert (bench.root / "a").read_text() == "somebody else's\n"


def test_many_replaced_files_leave_no_descriptor_open(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    paths = [bench.root / f"f{number}" for number in range(150)]
    for path in paths:
        path.write_text("old\n")
    before = set(os.listdir("/dev/fd"))
    with Transaction(bench.fs, bench.contents, bench.journals) as change:
        change.prepare([write_step(bench.contents, str(p), bench.state(p.name), b"new\n", 0o644) for p in paths])
        change.commit()
    assert {path.read_text() for path in paths} == {"new\n"}
    assert len(os.listdir("/dev/fd")) == len(before)


def test_a_record_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    lines = [json.dumps({"begins": number, "time": 1, "tool": "T", "arguments": "x" * 50}) for number in (1, 2)]
    file.write_text("\n".join(lines) + "\n")
    calls = CallsFile(file)
    calls.look()
    assert [call.number for call in calls.all()] == [1, 2]
    file.write_text(lines[1] + "\n")
    calls.look()
    assert [call.number for call in calls.all()] == [2]
