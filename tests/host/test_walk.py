"""The walk behind tree: order, bounds, one listing a directory, no link followed."""

from __future__ import annotations

import os
import socket
import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gripfast.host.files import walk as engine
from gripfast.host.files.walk import Kind, Node, Tree, walk
from searching import make, powerless


def anything(path: str, name: str, kind: Kind) -> bool:
    return True


def walked(root: Path, *, max_depth: int = 12, max_entries: int = 1000) -> Tree:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return walk(fd, ".", max_depth=max_depth, max_entries=max_entries, accept=anything)
    finally:
        os.close(fd)


def flat(node: Node) -> list[tuple[str, str, int]]:
    return [(node.path, node.kind, node.depth), *(one for child in node.children for one in flat(child))]


def naive(root: Path, path: str = ".", depth: int = 0) -> list[tuple[str, str, int]]:
    """Everything, in order, without any limit."""
    found = [(path, "directory", depth)]
    kinds = {"directory": 0, "file": 1, "symlink": 2}
    entries = [
        ("symlink" if one.is_symlink() else "directory" if one.is_dir() else "file", one.name)
        for one in (root / path).iterdir()
    ]
    for kind, name in sorted(entries, key=lambda one: (kinds[one[0]], one[1].encode("utf-16-be"))):
        below = name if path == "." else f"{path}/{name}"
        found += naive(root, below, depth + 1) if kind == "directory" else [(below, kind, depth + 1)]
    return found


NAME = st.text(st.sampled_from("aBz~\uffee\U0001f600-1"), min_size=1, max_size=3)
TREES = st.lists(st.tuples(st.lists(NAME, min_size=1, max_size=4), st.sampled_from("dfl")), max_size=12)


@settings(max_examples=40, deadline=None)
@given(TREES, st.integers(1, 15), st.integers(0, 4))
def test_the_nodes_are_the_first_of_a_naive_walk(
    entries: list[tuple[list[str], str]], max_entries: int, max_depth: int
) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        for names, kind in entries:
            path = root.joinpath(*names)
            if any(one.is_symlink() or one.is_file() for one in (path, *path.parents)) or path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "d":
                path.mkdir()
            elif kind == "f":
                path.write_text("")
            else:
                path.symlink_to("..")
        expected = [one for one in naive(root) if one[2] <= max_depth][:max_entries]
        found = walked(root, max_depth=max_depth, max_entries=max_entries)
    assert flat(found.root) == expected
    assert found.total == len(expected)
    assert found.limit_reached == (len(expected) == max_entries)


def test_a_directory_with_very_many_entries_costs_one_listing_and_memory_for_the_answer_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20_000):
        os.close(os.open(tmp_path / f"f{number:05d}", os.O_CREAT | os.O_WRONLY))
    listings: list[object] = []
    real = os.scandir

    def counted(fd: int) -> object:
        listings.append(fd)
        return real(fd)

    monkeypatch.setattr(engine.os, "scandir", counted)
    tracemalloc.start()
    try:
        found = walked(tmp_path, max_entries=100)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [child.name for child in found.root.children] == [f"f{number:05d}" for number in range(99)]
    assert len(listings) == 1
    assert peak < 500_000


def test_sockets_fifos_and_what_is_no_file_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(tmp_path)
        try:
            server.bind("sock")
        finally:
            os.chdir(here)
        assert flat(walked(tmp_path).root) == [(".", "directory", 0)]


def test_an_unreadable_directory_is_a_node_that_was_not_looked_into(tmp_path: Path) -> None:
    make(tmp_path, {"closed/x": "", "open/y": ""})
    tmp_path.chmod(0o755)
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    (tmp_path / "closed").chmod(0)
    try:
        with powerless():
            found = walk(fd, ".", max_depth=3, max_entries=100, accept=anything)
    finally:
        (tmp_path / "closed").chmod(0o755)
        os.close(fd)
    closed, opened = found.root.children
    assert closed.truncated and not closed.children
    assert not opened.truncated and opened.children


def test_a_directory_that_is_swapped_for_a_link_while_walking_is_not_entered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path / "ws", {"d/inside": ""})
    make(tmp_path / "out", {"secret": ""})
    real = os.open

    def swap_first(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "d":
            (root / "d").rename(root / "gone")
            (root / "d").symlink_to(tmp_path / "out")
        return real(path, flags, dir_fd=dir_fd)

    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        monkeypatch.setattr(engine.os, "open", swap_first)
        found = walk(fd, ".", max_depth=3, max_entries=100, accept=anything)
    finally:
        monkeypatch.undo()
        os.close(fd)
    assert [(path, kind) for path, kind, _ in flat(found.root)] == [(".", "directory"), ("d", "directory")]
