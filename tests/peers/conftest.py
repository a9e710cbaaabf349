"""The third-party programs that `scripts/peers` installs; without them these tests are skipped."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.around import GRIPFAST, PEERS


@pytest.fixture(autouse=True)
def _peers_are_here() -> None:
    if not (PEERS / ".done").exists():
        pytest.skip("scripts/peers has not been run")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
    return root


@pytest.fixture
def http_server(project: Path, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A server over HTTP: its URL and token."""
    process = subprocess.Popen(
        [*GRIPFAST, "serve", "--http", "127.0.0.1:0"],
        cwd=project, env={**os.environ, "XDG_STATE_HOME": str(tmp_path)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    screen = ""
    try:
        while "Ctrl-C" not in screen:
            line = process.stderr.readline()
            assert line, screen
            screen += line
        yield (
            screen.split(" tools at ")[1].split()[0],
            (tmp_path / "gripfast" / "http-token").read_text(encoding="ascii").strip(),
        )
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()
