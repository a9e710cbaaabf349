"""Directories nested deeper than Python's stack."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope
from gripfast.host.kernel.folders import folders

pytestmark = pytest.mark.anyio
DEPTH = 1500


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "in"
    root.mkdir()
    (root / "near.txt").write_text("hello\n")
    fd = os.open(root, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(os.open("deep.txt", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=fd))
    os.close(fd)
    yield root
    subprocess.run(["rm", "-rf", root], check=True)


CALLS = [("Grep", {"pattern": "hello"}), ("Glob", {"pattern": "**/*.txt"}), ("outline", {"path": "."})]


@pytest.mark.parametrize("call", CALLS)
async def test_files_are_found_beside_them(call: tuple[str, dict[str, str]], root: Path) -> None:
    async with open_session(Scope.workspace(root), sandbox="off") as session:
        answer = await session.call(*call)
    assert not answer.is_error and "near.txt" in answer.text


def test_every_directory_is_walked_as_deep_as_a_path_can_be(root: Path) -> None:
    places = [place for place, _, _ in folders(root)]
    assert len(places) >= min(DEPTH, (os.pathconf("/", "PC_PATH_MAX") - len(str(root))) // 2 - 1)
    assert places == sorted(places, key=len)


def test_it_says_the_same_as_the_standard_library(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").touch()
    (tmp_path / "link").symlink_to("a")
    walked = {place: ({*inner}, {*names}) for place, inner, names in os.walk(tmp_path)}
    found = {place: ({*inner}, {*names}) for place, inner, names in folders(tmp_path)}
    walked[str(tmp_path)] = (walked[str(tmp_path)][0] - {"link"}, walked[str(tmp_path)][1] | {"link"})
    assert found == walked
