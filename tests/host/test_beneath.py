"""Paths that try to get out, by both strategies."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

import pytest

from gripfast.errors import NotDirectory, NotFile, NotFound, SandboxViolation, ToolError
from gripfast.host.files.beneath import Strategy, chosen_strategy, strategy_works
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.scope import Scope


def read(fs: ScopedFs, path: object) -> str:
    return fs.read_bytes(WorkPath.parse(str(path))).decode()


def test_the_walk_works_everywhere() -> None:
    assert strategy_works("walk")
    assert strategy_works(chosen_strategy())


@pytest.mark.parametrize(
    "spelling",
    ["src/a.txt", "./src/a.txt", "src//a.txt", "src/../src/a.txt", "src/./a.txt", "../ws/src/a.txt"],
)
def test_a_file_inside_opens_however_it_is_spelled(fs: ScopedFs, spelling: str) -> None:
    assert read(fs, spelling) == "inside\n"


def test_a_file_inside_opens_by_its_absolute_path(fs: ScopedFs, root: Path) -> None:
    assert read(fs, root / "src" / "a.txt") == "inside\n"


@pytest.mark.parametrize(
    "spelling", ["../out/secret.txt", "src/../../out/secret.txt", "/etc/passwd", "..", "/", "src/../.."]
)
def test_a_path_that_leaves_is_refused(fs: ScopedFs, spelling: str) -> None:
    with pytest.raises(SandboxViolation):
        read(fs, spelling)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("../out/secret.txt", "l"),
        ("{top}/out/secret.txt", "l"),
        ("../out", "l/secret.txt"),
        ("{top}/out", "l/secret.txt"),
        ("src/../../out", "l/secret.txt"),
        ("..", "l/out/secret.txt"),
    ],
)
def test_a_link_that_leaves_is_refused_and_the_error_names_it(
    fs: ScopedFs, root: Path, tmp_path: Path, target: str, path: str
) -> None:
    os.symlink(target.format(top=tmp_path), root / "l")
    with pytest.raises(SandboxViolation, match="`l"):
        read(fs, path)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("src/a.txt", "l"),
        ("{ws}/src/a.txt", "l"),
        ("src", "l/a.txt"),
        ("{ws}/src", "l/a.txt"),
        ("../ws/src", "l/a.txt"),
        ("src/", "l/a.txt"),
    ],
)
def test_a_link_that_stays_inside_works(fs: ScopedFs, root: Path, target: str, path: str) -> None:
    os.symlink(target.format(ws=root), root / "l")
    assert read(fs, path) == "inside\n"
    assert fs.spellings(WorkPath.parse(path)) == (path, "src/a.txt")


def test_a_chain_of_links_works_up_to_forty(fs: ScopedFs, root: Path) -> None:
    previous = "src/a.txt"
    for number in range(41):
        os.symlink(previous, root / f"l{number}")
        previous = f"l{number}"
    assert read(fs, "l39") == "inside\n"
    with pytest.raises(NotFound, match="40 links"):
        read(fs, "l40")


def test_a_circle_of_links_ends(fs: ScopedFs, root: Path) -> None:
    os.symlink("b", root / "a")
    os.symlink("a", root / "b")
    with pytest.raises(NotFound, match="links"):
        read(fs, "a")
    with pytest.raises(NotFound, match="links"):
        read(fs, "a/x")


def test_a_root_given_through_a_link_works_in_both_spellings(root: Path, tmp_path: Path, strategy: Strategy) -> None:
    os.symlink(root, tmp_path / "alias")
    fs = ScopedFs(Scope.workspace(tmp_path / "alias"), strategy=strategy)
    assert read(fs, tmp_path / "alias" / "src" / "a.txt") == "inside\n"
    assert read(fs, root / "src" / "a.txt") == "inside\n"
    assert fs.show(WorkPath.parse(str(tmp_path / "alias" / "src" / "a.txt"))) == "src/a.txt"
    os.symlink(tmp_path / "alias" / "src", root / "l")
    assert read(fs, "l/a.txt") == "inside\n"


def test_a_root_whose_name_begins_like_another_directory_does_not_hold_it(
    root: Path, tmp_path: Path, strategy: Strategy
) -> None:
    (tmp_path / "ws-other").mkdir()
    (tmp_path / "ws-other" / "x").write_text("no")
    with pytest.raises(SandboxViolation):
        read(ScopedFs(Scope.workspace(root), strategy=strategy), tmp_path / "ws-other" / "x")


def test_links_between_two_roots_work(root: Path, tmp_path: Path, strategy: Strategy) -> None:
    os.symlink("../out/secret.txt", root / "relative")
    os.symlink(tmp_path / "out", root / "absolute")
    fs = ScopedFs(Scope.workspace(root, tmp_path / "out"), strategy=strategy)
    assert read(fs, "relative") == "secret\n"
    assert read(fs, "absolute/secret.txt") == "secret\n"
    assert read(fs, "../out/secret.txt") == "secret\n"


def test_two_dots_at_the_start_of_a_name_are_honest(fs: ScopedFs, root: Path) -> None:
    (root / "..foo").write_text("honest")
    (root / "...").mkdir()
    (root / "..." / "x").write_text("also")
    assert read(fs, "..foo") == "honest"
    assert read(fs, ".../x") == "also"


def test_a_fifo_never_hangs_and_never_opens(fs: ScopedFs, root: Path) -> None:
    os.mkfifo(root / "fifo")
    os.symlink("fifo", root / "link")
    for name in ("fifo", "link"):
        with pytest.raises(NotFile, match="FIFO"):
            read(fs, name)


def test_devices_and_kernel_links_are_not_files(root: Path, strategy: Strategy) -> None:
    fs = ScopedFs(Scope(read=None, write=[root]), strategy=strategy)
    for path in ("/dev/null", "/dev/stdin", "/proc/self/exe", "/proc/self/root/etc/passwd", "/proc/version"):
        if os.path.lexists(path):
            with pytest.raises(NotFile):
                read(fs, path)
    if os.path.isdir("/proc/self/fd"):
        with pytest.raises(NotDirectory):
            fs.open_dir(WorkPath("/proc"))
    os.symlink("/proc/self/environ", root / "env")
    with pytest.raises(NotFile):
        read(fs, "env")


def test_unrestricted_reading_follows_links_out(root: Path, tmp_path: Path, strategy: Strategy) -> None:
    os.symlink("../out", root / "l")
    fs = ScopedFs(Scope(read=None, write=[root]), strategy=strategy)
    assert read(fs, "l/secret.txt") == "secret\n"
    assert read(fs, tmp_path / "out" / "secret.txt") == "secret\n"
    with pytest.raises(SandboxViolation):
        read(fs.within_roots(), "l/secret.txt")
    assert read(fs.within_roots(), "src/a.txt") == "inside\n"


def test_a_directory_is_no_file_and_a_file_no_directory(fs: ScopedFs) -> None:
    with pytest.raises(NotFile, match="`src` is a directory"):
        read(fs, "src")
    with pytest.raises(NotDirectory):
        read(fs, "src/a.txt/b")
    with pytest.raises(NotDirectory):
        read(fs, "src/a.txt/")
    with pytest.raises(NotDirectory):
        fs.open_dir(WorkPath.parse("src/a.txt"))


def test_a_missing_path_names_up_to_three_near_ones(fs: ScopedFs, root: Path) -> None:
    for name in ("main.py", "main.pyi", "maim.py", "mian.py", "zebra"):
        (root / "src" / name).write_text("")
    with pytest.raises(NotFound) as caught:
        read(fs, "src/mainn.py")
    near = caught.value.details["near"]
    assert 1 <= len(near) <= 3
    assert "src/main.py" in near
    assert "`src/main.py`" in caught.value.message
    with pytest.raises(NotFound) as caught:
        read(fs, "scr/main.py")
    assert caught.value.details["near"] == ["src/main.py"]


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("a/src/main.py", ["src/main.py"]),
        ("b/src/main.py", ["src/main.py"]),
        ("src\\main.py", ["src/main.py"]),
        ("main.py", ["src/main.py"]),
        ("src/other/main.py", ["src/main.py"]),
        ("deep/one/leaf.md", ["deep/one/two/leaf.md"]),
        ("a/way/key", []),
        ("key", []),
        ("deep/hidden.md", []),
    ],
)
def test_a_missing_path_names_the_file_that_was_meant(root: Path, asked: str, near: list[str]) -> None:
    for name in ("src/main.py", "deep/one/two/leaf.md", "secret/key", ".cache/hidden.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    os.symlink("secret", root / "way")
    with pytest.raises(NotFound) as caught:
        read(ScopedFs(Scope.workspace(root, deny=["secret"])), asked)
    assert caught.value.details["near"] == near


def test_denied_places_are_judged_as_requested_and_as_they_are(
    root: Path, tmp_path: Path, strategy: Strategy
) -> None:
    (root / "keys").mkdir()
    (root / "keys" / "one.pem").write_text("k")
    (root / ".env").write_text("k")
    os.symlink("keys", root / "harmless")
    os.symlink(".env", root / "e")
    os.symlink("src/a.txt", root / "x.pem")
    fs = ScopedFs(Scope.workspace(root, deny=["keys", ".env", "*.pem"]), strategy=strategy)
    for path in ("keys/one.pem", "harmless/one.pem", ".env", "e", "x.pem", "src/../.env", root / ".env"):
        with pytest.raises(SandboxViolation, match="deny pattern"):
            read(fs, path)
    with pytest.raises(SandboxViolation):
        fs.open_dir(WorkPath.parse("harmless"))
    with pytest.raises(NotFound) as caught:
        read(fs, ".envv")
    assert caught.value.details["near"] == []


def test_a_deny_pattern_closes_the_place_in_every_case_and_spelling(
    root: Path, tmp_path: Path, strategy: Strategy
) -> None:
    os.symlink(root, tmp_path / "alias")
    fs = ScopedFs(Scope.workspace(root, deny=[f"{tmp_path}/alias/src"]), strategy=strategy)
    for path in ("src/a.txt", root / "src" / "a.txt"):
        with pytest.raises(SandboxViolation):
            read(fs, path)
    (root / "SECRET").write_text("")
    (root / "se\u200bcret").write_text("")
    fs = ScopedFs(Scope.workspace(root, deny=["secret"]), strategy=strategy)
    for path in ("SECRET", "se\u200bcret"):
        with pytest.raises(SandboxViolation):
            read(fs, path)


def test_no_descriptor_is_left_open(fs: ScopedFs, root: Path) -> None:
    os.symlink("/etc", root / "etc")
    os.symlink("src", root / "l")
    paths = ["src/a.txt", "l/a.txt", "etc/passwd", "nothing/here", "src", "src/a.txt/x", "l/../../..", "none"]

    def attempt() -> None:
        for path in paths:
            with contextlib.suppress(ToolError):
                fs.open_read(WorkPath.parse(path)).close()
            fs.spellings(WorkPath.parse(path))

    attempt()
    gc.collect()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    attempt()
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after <= before


def test_open_dir_gives_a_descriptor_to_list_by(fs: ScopedFs, root: Path) -> None:
    with fs.open_dir(WorkPath.parse(".")) as directory:
        assert os.listdir(directory.fd) == ["src"]
        assert directory.real == str(root)
    with fs.open_dir(WorkPath.parse("src/")) as directory:
        assert os.listdir(directory.fd) == ["a.txt"]
