"""Writing: atomic, guarded, inside the scope, nothing left behind."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import resource
import stat
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from gripfast.errors import (
    Conflict,
    EncodingProblem,
    Internal,
    NoMatch,
    NotDirectory,
    NotFile,
    NotRead,
    NotUnique,
    SandboxViolation,
    TimedOut,
    ToolError,
)
from gripfast.host.files import atomic, beneath, opened, opening, writing
from gripfast.host.files.atomic import Fresh, locked, sweep_strays
from gripfast.host.files.beneath import Strategy
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.guard import Identity, ReadLog
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope


def tree(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))
    }


def seen(fs: ScopedFs, path: str) -> ReadLog:
    reads = ReadLog()
    with fs.open_read(WorkPath(path)) as file:
        file.record(reads)
    return reads


def test_a_file_is_created_with_its_parents(fs: ScopedFs, root: Path) -> None:
    change = fs.write(WorkPath("new/deep/er/f.txt"), "é\n")
    assert change.created
    assert (root / "new/deep/er/f.txt").read_bytes() == "é\n".encode()
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((root / "new/deep/er/f.txt").stat().st_mode) == 0o666 & ~umask


def test_a_file_is_replaced_and_keeps_mode_and_attributes(fs: ScopedFs, root: Path) -> None:
    target = root / "src" / "a.txt"
    target.chmod(0o4751)
    with contextlib.suppress(OSError):
        os.setxattr(target, "user.note", b"kept")
    kept = os.listxattr(target)
    before = target.stat()
    change = fs.write(WorkPath("src/a.txt"), "other\n")
    assert not change.created
    assert target.read_text() == "other\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o4751
    assert target.stat().st_ino != before.st_ino
    assert os.listxattr(target) == kept


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays(fs: ScopedFs, root: Path) -> None:
    os.chown(root / "src" / "a.txt", 1234, 4321)
    os.chmod(root / "src" / "a.txt", 0o6755)
    fs.write(WorkPath("src/a.txt"), "other\n")
    found = (root / "src" / "a.txt").stat()
    assert (found.st_uid, found.st_gid) == (1234, 4321)
    assert stat.S_IMODE(found.st_mode) == 0o6755


def test_a_link_inside_the_scope_stays_and_its_target_is_written(fs: ScopedFs, root: Path) -> None:
    os.symlink("src/a.txt", root / "l")
    os.symlink(root / "src" / "new.txt", root / "dangling")
    fs.write(WorkPath("l"), "through\n")
    fs.write(WorkPath("dangling"), "made\n")
    assert (root / "l").is_symlink()
    assert (root / "src" / "a.txt").read_text() == "through\n"
    assert (root / "src" / "new.txt").read_text() == "made\n"


def test_a_link_out_of_the_scope_is_never_written_through(fs: ScopedFs, root: Path, tmp_path: Path) -> None:
    os.symlink("../out/secret.txt", root / "file")
    os.symlink("../out", root / "dir")
    os.symlink("../out/new.txt", root / "dangling")
    before = tree(tmp_path / "out")
    for path in ("file", "dir/new.txt", "dir/secret.txt", "dangling", "../out/x", "dir/a/b/c", "/etc/x"):
        with pytest.raises(SandboxViolation):
            fs.write(WorkPath(path), "x")
    assert tree(tmp_path / "out") == before
    assert (root / "file").is_symlink()


def test_only_roots_for_writing_are_written(root: Path, tmp_path: Path, strategy: Strategy) -> None:
    os.symlink("../out", root / "link")
    fs = ScopedFs(Scope(read=None, write=[root]), strategy=strategy)
    for path in (f"{tmp_path}/out/secret.txt", "link/secret.txt", "link/new", f"{tmp_path}/new"):
        with pytest.raises(SandboxViolation, match="not written"):
            fs.write(WorkPath(path), "x")
    fs.write(WorkPath("ok"), "x")
    nothing = ScopedFs(Scope.workspace(root, read_only=True), strategy=strategy)
    with pytest.raises(SandboxViolation, match="nowhere"):
        nothing.write(WorkPath("ok"), "y")
    assert (tmp_path / "out" / "secret.txt").read_text() == "secret\n"


def test_a_writable_directory_inside_a_readable_one_is_found_by_its_real_place(
    root: Path, strategy: Strategy
) -> None:
    (root / "build").mkdir()
    os.symlink("build", root / "b")
    os.symlink("../src", root / "build" / "back")
    fs = ScopedFs(Scope(read=[root], write=[root / "build"]), strategy=strategy)
    fs.write(WorkPath("b/x"), "yes")
    assert (root / "build" / "x").read_text() == "yes"
    for path in ("build/back/a.txt", "src/a.txt", "build/../src/a.txt"):
        with pytest.raises(SandboxViolation):
            fs.write(WorkPath(path), "no")


def test_deny_closes_for_writing_too(root: Path, strategy: Strategy) -> None:
    (root / "closed").mkdir()
    os.symlink("closed", root / "open")
    fs = ScopedFs(Scope.workspace(root, deny=["closed"]), strategy=strategy)
    for path in ("closed/x", "open/x", "closed"):
        with pytest.raises(SandboxViolation, match="deny"):
            fs.write(WorkPath(path), "no")


PROTECTED = """
.git .git/config .git/hooks/pre-commit sub/.git/config .GIT/config .g\u200cit/config .gitmodules .mcp.json .claude/x
.codex/x .cursor/x .gemini/x .vscode/tasks.json .idea/x .husky/x .envrc .npmrc .pre-commit-config.yaml
.github/workflows/ci.yml .github/workflows .bashrc .zshrc .profile sub/.bash_profile gripfast.toml .gripfast.toml
""".split()


@pytest.mark.parametrize("path", PROTECTED)
def test_protected_names_are_not_written_even_when_absent(fs: ScopedFs, root: Path, path: str) -> None:
    before = tree(root)
    with pytest.raises(SandboxViolation, match="protected"):
        fs.write(WorkPath(path), "x")
    assert tree(root) == before


@pytest.mark.parametrize(
    "path", ["gitignore", ".gitignore", ".github/CODEOWNERS", "HEAD", "config", ".gitx", "a.git"]
)
def test_names_beside_the_protected_ones_are_free(fs: ScopedFs, root: Path, path: str) -> None:
    fs.write(WorkPath(path), "x")
    assert (root / path).read_text() == "x"


def test_protection_is_judged_after_resolution_and_can_be_lifted(root: Path, strategy: Strategy) -> None:
    (root / ".git").mkdir()
    os.symlink("../.git", root / "src" / "g")
    os.symlink(".git/config", root / "plain")
    fs = ScopedFs(Scope.workspace(root), strategy=strategy)
    for path in ("src/g/config", "plain", "src/../.git/config", f"{root}/.git/config"):
        with pytest.raises(SandboxViolation, match="protected"):
            fs.write(WorkPath(path), "x")
    assert os.listdir(root / ".git") == []
    lifted = ScopedFs(Scope.workspace(root, protect=[]), strategy=strategy)
    lifted.write(WorkPath("src/g/config"), "x")
    assert (root / ".git" / "config").read_text() == "x"


@pytest.mark.parametrize(
    ("there", "path"),
    [
        (["HEAD", "config", "objects/", "refs/"], "config"),
        (["HEAD", "config", "objects/", "refs/"], "hooks/post-checkout"),
        (["HEAD", "objects/", "refs/"], "config"),
        (["config", "objects/", "refs/"], "HEAD"),
        (["HEAD", "config", "refs/"], "objects/x"),
        (["HEAD", "config", "objects/"], "refs/heads/main"),
        (["HEAD"], "commondir"),
        (["commondir"], "HEAD"),
    ],
)
def test_the_shape_of_a_bare_repository_is_neither_changed_nor_completed(
    fs: ScopedFs, root: Path, there: list[str], path: str
) -> None:
    (root / "data").mkdir()
    for name in there:
        (root / "data" / name).mkdir() if name.endswith("/") else (root / "data" / name).write_text("x")
    before = tree(root)
    with pytest.raises(SandboxViolation, match="git repository"):
        fs.write(WorkPath(f"data/{path}"), "evil")
    assert tree(root) == before


def test_the_git_directory_that_a_git_file_names_is_protected(fs: ScopedFs, root: Path) -> None:
    (root / ".git").write_text("gitdir: ./elsewhere/data\n")
    (root / "elsewhere").mkdir()
    for path in ("elsewhere/data/config", "elsewhere/DATA/hooks/x"):
        with pytest.raises(SandboxViolation, match="git directory"):
            fs.write(WorkPath(path), "evil")
    fs.write(WorkPath("elsewhere/other"), "fine")


def test_directories_fifos_and_devices_are_not_written(fs: ScopedFs, root: Path) -> None:
    os.mkfifo(root / "fifo")
    for path in ("src", ".", "fifo", "src/"):
        with pytest.raises(NotFile):
            fs.write(WorkPath(path), "x")
    with pytest.raises(NotDirectory):
        fs.write(WorkPath("src/a.txt/b"), "x")


def test_a_new_name_in_the_way_of_parents_is_refused_without_a_trace(fs: ScopedFs, root: Path) -> None:
    before = tree(root)
    with pytest.raises(ToolError):
        fs.write(WorkPath("new/../../out/x"), "x")
    with pytest.raises(ToolError):
        fs.write(WorkPath("new/dir/"), "x")
    assert tree(root) == before


# --- the guard ---


def test_an_existing_file_must_have_been_read(fs: ScopedFs, root: Path) -> None:
    with pytest.raises(NotRead, match="read it first"):
        fs.write(WorkPath("src/a.txt"), "x", reads=ReadLog())
    assert (root / "src" / "a.txt").read_text() == "inside\n"
    fs.write(WorkPath("new.txt"), "x", reads=ReadLog())


def test_a_file_read_by_one_spelling_may_be_written_by_another(fs: ScopedFs, root: Path) -> None:
    os.symlink("src", root / "s")
    os.link(root / "src" / "a.txt", root / "hard")
    reads = seen(fs, "s/a.txt")
    assert len(reads.seen()) == 1
    fs.write(WorkPath("hard"), "one\n", reads=reads)
    reads = seen(fs, "s/../src/a.txt")
    fs.write(WorkPath(f"{root}/src/a.txt"), "two\n", reads=reads)
    fs.write(WorkPath("src/a.txt"), "three\n", reads=reads)
    assert (root / "src" / "a.txt").read_text() == "three\n"


def test_a_file_changed_by_somebody_else_is_a_conflict(fs: ScopedFs, root: Path) -> None:
    target = root / "src" / "a.txt"
    reads = seen(fs, "src/a.txt")
    target.write_text("theirs\n")
    with pytest.raises(Conflict, match="read it again"):
        fs.write(WorkPath("src/a.txt"), "mine\n", reads=reads)
    reads = seen(fs, "src/a.txt")
    target.unlink()
    target.write_text("a new file\n")
    with pytest.raises(Conflict):
        fs.write(WorkPath("src/a.txt"), "mine\n", reads=reads)
    assert target.read_text() == "a new file\n"


def test_a_change_that_hides_its_time_and_size_is_found_by_content(fs: ScopedFs, root: Path) -> None:
    target = root / "src" / "a.txt"
    reads = seen(fs, "src/a.txt")
    before = target.stat()
    target.write_text("INSIDE\n")
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(Conflict):
        fs.write(WorkPath("src/a.txt"), "mine\n", reads=reads)


def test_a_change_through_a_mapping_is_found_by_content_and_by_the_next_read(fs: ScopedFs, root: Path) -> None:
    """Somebody who has mapped a file may change it later on without any new time."""
    target = root / "src" / "a.txt"
    with target.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:1] = b"i"  # from now on it may be written to without the kernel being asked
        time.sleep(0.2)
        reads = seen(fs, "src/a.txt")
        mapped[0:6] = b"a\nb\nc\n"[:6]
        with pytest.raises(Conflict):
            fs.write(WorkPath("src/a.txt"), "mine\n", reads=reads)
        with fs.open_read(WorkPath("src/a.txt")) as again:
            assert not again.recall(reads)
            again.record(reads)
        fs.write(WorkPath("src/a.txt"), "mine\n", reads=reads)


@pytest.mark.parametrize(("nanoseconds", "known"), [(0, False), (500_000_000, False), (123_456_789, True)])
def test_times_in_whole_seconds_settle_later(nanoseconds: int, known: bool) -> None:
    """Where the file system counts seconds, a second change may well get the time of the first."""
    when = (time.time_ns() // 10**9 - 1) * 10**9 + nanoseconds
    found = os.stat_result((0o100644, 5, 6, 1, 0, 0, 7, 0, 0, 0), {"st_mtime_ns": when, "st_ctime_ns": when})
    reads = ReadLog()
    reads.record("/ws/a", found, None, 3)
    assert (reads.unchanged("/ws/a", found) is not None) == known


@pytest.mark.parametrize("lines", [-1, 9, 1 << 70])
def test_a_count_of_lines_that_no_such_file_has_is_not_taken_over(fs: ScopedFs, lines: int) -> None:
    state = seen(fs, "src/a.txt").state()
    reads = ReadLog()
    reads.restore([{**entry, "lines": lines} for entry in state])
    assert [one.lines for one in reads.seen()] == [None]


def test_a_touch_or_a_rewrite_of_the_same_bytes_is_no_conflict(fs: ScopedFs, root: Path) -> None:
    target = root / "src" / "a.txt"
    reads = seen(fs, "src/a.txt")
    os.utime(target, (1, 1))
    fs.write(WorkPath("src/a.txt"), "inside\nand more\n", reads=reads)
    target.unlink()
    target.write_text("inside\nand more\n")
    fs.write(WorkPath("src/a.txt"), "mine\n", reads=reads)


def test_over_16_mb_the_identity_stands_alone(fs: ScopedFs, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "HASHED_BYTES", 3)
    target = root / "src" / "a.txt"
    reads = seen(fs, "src/a.txt")
    assert reads.seen()[0].digest is None
    os.utime(target, (1, 1))
    with pytest.raises(Conflict):
        fs.write(WorkPath("src/a.txt"), "mine\n", reads=reads)


def test_the_log_can_be_kept_between_processes(fs: ScopedFs, root: Path) -> None:
    reads = ReadLog()
    reads.restore(seen(fs, "src/a.txt").state())
    fs.write(WorkPath("src/a.txt"), "mine\n", reads=reads)
    other = ReadLog()
    other.restore(reads.state())
    (root / "src" / "a.txt").write_text("theirs\n")
    with pytest.raises(Conflict):
        fs.write(WorkPath("src/a.txt"), "mine\n", reads=other)


def test_two_calls_of_one_session_on_one_file_both_happen(fs: ScopedFs, root: Path) -> None:
    (root / "n.txt").write_text("0\n")
    reads = seen(fs, "n.txt")
    faults: list[BaseException] = []

    def add() -> None:
        try:
            for _ in range(10):
                fs.change(WorkPath("n.txt"), lambda before: b"%d\n" % (int(before or b"") + 1), reads=reads)
        except BaseException as fault:  # noqa: BLE001 - told by the thread that joins
            faults.append(fault)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert (root / "n.txt").read_text() == "40\n"


def test_calls_on_different_files_of_a_directory_dont_wait_for_each_other(fs: ScopedFs, root: Path) -> None:
    """One call is stopped in the middle of its work; another one, on the next file, goes through meanwhile."""
    (root / "b.txt").write_text("b\n")
    (root / "c.txt").write_text("c\n")
    inside, go_on = threading.Event(), threading.Event()

    def slow(before: bytes | None) -> bytes:
        inside.set()
        assert go_on.wait(30)
        return b"slow\n"

    thread = threading.Thread(target=lambda: fs.change(WorkPath("b.txt"), slow))
    thread.start()
    assert inside.wait(30)
    fs.change(WorkPath("c.txt"), lambda before: b"fast\n")
    assert (root / "c.txt").read_text() == "fast\n"
    assert (root / "b.txt").read_text() == "b\n"
    go_on.set()
    thread.join()
    assert (root / "b.txt").read_text() == "slow\n"


def test_a_file_that_changes_while_an_edit_is_computed_is_computed_again(fs: ScopedFs, root: Path) -> None:
    target, calls = root / "src" / "a.txt", list[bytes | None]()

    def edit(before: bytes | None) -> bytes:
        if not calls:
            target.write_text("changed under it\n")
        calls.append(before)
        return (before or b"") + b"!"

    fs.change(WorkPath("src/a.txt"), edit)
    assert calls == [b"inside\n", b"changed under it\n"]
    assert target.read_text() == "changed under it\n!"


def test_a_file_that_appears_while_a_new_one_is_made_is_not_overwritten(fs: ScopedFs, root: Path) -> None:
    def make(before: bytes | None) -> bytes:
        if before is None:
            (root / "new.txt").write_text("theirs")
            return b"mine"
        return before + b" and mine"

    fs.change(WorkPath("new.txt"), make)
    assert (root / "new.txt").read_text() == "theirs and mine"


def test_a_lock_that_is_never_given_up_ends_in_a_timeout(
    fs: ScopedFs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_LOCK_WAIT", 0.05)
    fd = os.open(root / "src", os.O_RDONLY)
    before = tree(root)
    try:
        with locked(fd, "x"), pytest.raises(TimedOut, match="lock"):
            fs.write(WorkPath("src/a.txt"), "x")
    finally:
        os.close(fd)
    assert tree(root) == before


# --- text ---


def test_write_keeps_encoding_mark_and_line_ends(fs: ScopedFs, root: Path) -> None:
    (root / "u16").write_bytes(b"\xff\xfe" + "ä\r\nb\r\n".encode("utf-16-le"))
    (root / "bom").write_bytes(b"\xef\xbb\xbfa\n")
    fs.write(WorkPath("u16"), "ö\nb\n")
    fs.write(WorkPath("bom"), "b\n")
    assert (root / "u16").read_bytes() == b"\xff\xfe" + "ö\r\nb\r\n".encode("utf-16-le")
    assert (root / "bom").read_bytes() == b"\xef\xbb\xbfb\n"


def test_a_named_encoding_is_used_and_an_unnamed_one_refused(root: Path, strategy: Strategy) -> None:
    data = "日本\nソース\n".encode("shift_jis")
    (root / "sjis").write_bytes(data)
    with pytest.raises(EncodingProblem):
        ScopedFs(Scope.workspace(root), strategy=strategy).replace(WorkPath("sjis"), "x", "y")
    assert (root / "sjis").read_bytes() == data
    fs = ScopedFs(Scope.workspace(root), encoding="Shift_JIS", strategy=strategy)
    fs.replace(WorkPath("sjis"), "ソ", "リソ")
    assert (root / "sjis").read_bytes() == "日本\nリソース\n".encode("shift_jis")
    with pytest.raises(EncodingProblem, match="has no"):
        fs.replace(WorkPath("sjis"), "リ", "é")
    fs.write(WorkPath("new"), "日本\n")
    assert (root / "new").read_bytes() == "日本\n".encode("shift_jis")


def test_replace_wants_one_occurrence_or_all(fs: ScopedFs, root: Path) -> None:
    (root / "f").write_text("a b a $1 \\1")
    with pytest.raises(NotUnique, match="2 times"):
        fs.replace(WorkPath("f"), "a", "x")
    with pytest.raises(NoMatch):
        fs.replace(WorkPath("f"), "z", "x")
    fs.replace(WorkPath("f"), "a", "$1\\1", all=True)
    assert (root / "f").read_text() == "$1\\1 b $1\\1 $1 \\1"
    with pytest.raises(ToolError):
        fs.replace(WorkPath("none"), "a", "x")


def test_the_same_content_touches_nothing(fs: ScopedFs, root: Path) -> None:
    before = (root / "src" / "a.txt").stat()
    fs.write(WorkPath("src/a.txt"), "inside\n")
    fs.change(WorkPath("src/a.txt"), lambda _: b"other", commit=False)
    fs.change(WorkPath("new"), lambda _: b"other", commit=False)
    assert Identity.of((root / "src" / "a.txt").stat()) == Identity.of(before)
    assert not (root / "new").exists()


# --- faults ---

CALLS = (
    "open write fsync fchmod fchown link rename stat fstat mkdir listxattr getxattr setxattr pread readlink".split()
)


class FailingOs:
    """The system, with one call that fails."""

    def __init__(self, fail_at: int, code: int) -> None:
        self.calls = 0
        self._fail_at = fail_at
        self._code = code

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CALLS:
            return real

        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self._fail_at:
                raise OSError(self._code, os.strerror(self._code))
            return real(*args, **options)

        return call


@contextlib.contextmanager
def failing(fail_at: int, code: int) -> Generator[FailingOs]:
    fake = FailingOs(fail_at, code)
    modules = (atomic, beneath, opened, opening, writing)
    for module in modules:
        module.os = fake  # type: ignore[attr-defined] - the one seam where a real disk can't be made to fail
    try:
        yield fake
    finally:
        for module in modules:
            module.os = os  # type: ignore[attr-defined] - as above


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("path", ["src/a.txt", "new/deep/f.txt"])
@pytest.mark.parametrize("code", ["ENOSPC", "EROFS"])
def test_whatever_call_fails_it_is_the_old_state_or_the_new_and_nothing_is_left(
    fs: ScopedFs, root: Path, path: str, code: str, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno  # noqa: PLC0415 - only the numbers by name

    if named:
        monkeypatch.setattr(atomic, "_O_TMPFILE", 0)
    (root / "src" / "a.txt").chmod(0o640)
    old = tree(root)
    gc.collect()
    open_before = len(os.listdir("/proc/self/fd"))
    for fail_at in range(1, 200):
        with failing(fail_at, getattr(errno, code)) as fake:
            try:
                fs.write(WorkPath(path), "new content\n")
                error = None
            except ToolError as caught:
                error = caught
        now = tree(root)
        done = now.get(path) == b"new content\n"
        assert len(os.listdir("/proc/self/fd")) <= open_before, f"a descriptor leaks when call {fail_at} fails"
        assert not [name for name in now if ".gripfast-" in name]
        if fake.calls < fail_at:
            assert done and error is None
            break
        if not done:
            assert error is not None
            assert now == old
        elif error is not None:
            assert "was written" in error.message
        if done:
            (root / path).unlink()
            if path.startswith("new"):
                (root / "new/deep").rmdir()
                (root / "new").rmdir()
            else:
                (root / path).write_text("inside\n")
                (root / path).chmod(0o640)
    else:
        pytest.fail("the write never ended")


def test_a_file_too_large_for_the_limit_leaves_the_old_one(fs: ScopedFs, root: Path) -> None:
    before = tree(root)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(Internal, match="EFBIG"):
            fs.write(WorkPath("src/a.txt"), "x" * 100_000)
        with pytest.raises(Internal, match="EFBIG"):
            fs.write(WorkPath("new/f.txt"), "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert tree(root) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_said(fs: ScopedFs, root: Path) -> None:
    (root / "src").chmod(0o555)
    try:
        with pytest.raises(Internal, match="permissions"):
            fs.write(WorkPath("src/a.txt"), "x")
    finally:
        (root / "src").chmod(0o755)
    assert (root / "src" / "a.txt").read_text() == "inside\n"


def test_a_file_that_vanishes_in_mid_call_is_made_anew_or_refused(fs: ScopedFs, root: Path) -> None:
    def edit(before: bytes | None) -> bytes:
        if before is None:
            raise fs.not_found(WorkPath("src/a.txt"))
        (root / "src" / "a.txt").unlink()
        return b"x"

    with pytest.raises(ToolError) as caught:
        fs.change(WorkPath("src/a.txt"), edit)
    assert caught.value.code == "NOT_FOUND"
    assert tree(root) == {"src": None}


def test_a_directory_that_vanishes_in_mid_call_is_said(fs: ScopedFs, root: Path) -> None:
    def edit(before: bytes | None) -> bytes:
        (root / "src" / "a.txt").unlink()
        (root / "src").rmdir()
        return b"x"

    with pytest.raises(ToolError) as caught:
        fs.change(WorkPath("src/a.txt"), edit)
    assert caught.value.code == "NOT_FOUND"


# --- strays ---


def test_what_killed_writers_left_is_swept_and_nothing_else(fs: ScopedFs, root: Path) -> None:
    stray, young, busy = (root / f".gripfast-{digit * 16}.tmp" for digit in "abc")
    mine = root / ".gripfast-notes.tmp"
    for path in (stray, young, busy, mine):
        path.write_text("x")
    for path in (stray, busy, mine):
        os.utime(path, (1, 1))
    fd = os.open(root, os.O_RDONLY)
    holder = os.open(busy, os.O_RDONLY)
    try:
        atomic.fcntl.flock(holder, atomic.fcntl.LOCK_EX)
        assert sweep_strays(fd) == 1
    finally:
        os.close(holder)
        os.close(fd)
    assert sorted(os.listdir(root)) == [young.name, busy.name, mine.name, "src"]
    stray.write_text("again")
    os.utime(stray, (1, 1))
    fs.write(WorkPath("any"), "x")
    assert not stray.exists()


def test_without_nameless_files_a_named_one_is_used_and_does_the_same(
    fs: ScopedFs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_O_TMPFILE", 0)
    fs.write(WorkPath("src/a.txt"), "over\n")
    fs.write(WorkPath("d/new.txt"), "new\n")
    assert tree(root) == {"d": None, "d/new.txt": b"new\n", "src": None, "src/a.txt": b"over\n"}
    fd = os.open(root, os.O_RDONLY)
    with Fresh(fd) as fresh:
        (name,) = set(os.listdir(root)) - {"d", "src"}
        assert name.startswith(".gripfast-") and name.endswith(".tmp")
        fresh.fill(b"x", None)
        with pytest.raises(FileExistsError):
            fresh.publish_new("src")
    os.close(fd)
    assert sorted(os.listdir(root)) == ["d", "src"]
