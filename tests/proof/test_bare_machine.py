"""scripts/bench on a machine that lacks things: the row says not run, and why; it ends well, with its page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from benchmarks import peers
from benchmarks.groups import cache, servers, shell
from benchmarks.harness import Run

from gripfast.host.program import programs
from gripfast.host.shell import sandbox

ROOT = Path(__file__).parent.parent.parent
NODE_ROWS = ("server-filesystem (Node)", "Desktop Commander")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(quick=True)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is all of PATH, and a place for peers with nothing in it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(peers, "NPM", tmp_path / "npm")
    monkeypatch.setattr(peers, "VENV", tmp_path / "venv")
    monkeypatch.setattr(servers, "CACHE", tmp_path)
    return programs


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(programs, "_SYSTEM_PLACES", ())
    best = sandbox._best  # pyright: ignore[reportPrivateUsage] - it is remembered
    best.cache_clear()
    yield
    best.cache_clear()


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def missing() -> dict[str, str]:
    found = servers._servers(ROOT)  # pyright: ignore[reportPrivateUsage] - the list itself
    return {one.name: one.missing for one in found if one.name in NODE_ROWS}


def test_without_node_both_its_servers_are_not_run(bare: Path) -> None:
    assert peers.node_peers().count("no node on this machine") == 2
    assert all(why.endswith("no node on this machine") for why in missing().values())


def test_without_npm_both_its_servers_are_not_run(bare: Path) -> None:
    program(bare, "node", "exit 0")
    assert peers.node_peers().count("not installed, no npm on this machine") == 2
    assert len(missing()) == 2
    assert all(why.endswith("no npm on this machine") for why in missing().values())


def test_without_network_npm_is_tried_and_both_its_servers_are_not_run(bare: Path) -> None:
    program(bare, "node", "exit 0")
    program(bare, "npm", f'echo "$@" >> {bare}/asked; exit 1')
    assert peers.node_peers().count("npm could not install it (no network?)") == 2
    assert len((bare / "asked").read_text().splitlines()) == 2
    assert all("no network?" in why for why in missing().values())


def test_without_network_the_python_peers_are_left_out_and_this_python_measures(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    assert peers.python_with_peers() == (sys.executable, "the peers' packages could not be installed (no network?)")


def test_without_a_redis_server_its_row_is_not_run(bare: Path, run: Run, tmp_path: Path) -> None:
    nobody = cast(Any, None)  # nothing is asked of them
    cache._redis(run, nobody, nobody, tmp_path)  # pyright: ignore[reportPrivateUsage] - one part of the group
    (row,) = run.rows
    assert (row.verdict, row.note) == ("not run", "no redis-server on this machine")


@pytest.mark.usefixtures("no_bubblewrap")
def test_without_bubblewrap_its_row_is_not_run_and_what_there_is_instead_is_measured(
    run: Run, tmp_path: Path
) -> None:
    shell._sandboxed(run, tmp_path)  # pyright: ignore[reportPrivateUsage] - one part of the group
    first, *others = run.rows
    assert (first.figure, first.verdict) == ("≤ 8 ms", "not run")
    assert first.note.startswith("bwrap: not installed")
    instead = ["by landlock"] if sandbox.choose("auto").level == "landlock" else []
    assert [row.note.partition(";")[0] for row in others] == instead


def test_on_a_bare_machine_the_script_ends_well_and_its_page_says_what_was_not_run(
    bare: Path, tmp_path: Path
) -> None:
    page = tmp_path / "RESULTS.md"
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--only", "lisp", "--page", str(page)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "GRIPFAST_BENCH_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    text = page.read_text(encoding="utf-8")
    assert "0 figures met, 0 missed, 6 not run" in text
    assert "| the scanner | ≥ 20 MB/s | not run |  | not run | sbcl is not installed |" in text
    assert "node absent" in text
    assert "bwrap absent, sbcl absent" in text
