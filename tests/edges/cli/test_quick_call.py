"""`gripfast call` in a process of its own: from the second one on, it loads only the tool that it calls."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    return tmp_path / "project"


def called(
    project: Path, *words: str, program: tuple[str, ...] = ("-m", "gripfast"), **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "XDG_STATE_HOME": str(project.parent / "state"), **variables}
    command = [sys.executable, *program, "call", *words]
    return subprocess.run(
        command, cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120
    )


PRINTING_MODULES = """
import atexit, sys
atexit.register(lambda: print(*sys.modules))
from gripfast.edges.entry import run
run()
"""


def imported(project: Path, *words: str) -> set[str]:
    done = called(project, *words, program=("-P", "-c", PRINTING_MODULES))
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_a_call_from_what_was_kept_answers_as_the_one_before(project: Path) -> None:
    calls = [
        ("Read", '{"file_path": "a.txt", "limit": "1"}'),
        ("Read", '{"file_path": "none.txt", "limt": 0}'),
        ("Reed", "a.txt"),
        ("Write", '{"file_path": "a.txt", "content": "x"}', "--rules", "read-only"),
    ]
    first = [called(project, *words, GRIPFAST_NEW=str(at)) for at, words in enumerate(calls)]
    second = [called(project, *words, GRIPFAST_NEW=str(at)) for at, words in enumerate(calls)]
    assert [(one.stdout, one.stderr, one.returncode) for one in second] == [
        (one.stdout, one.stderr, one.returncode) for one in first
    ]
    assert [one.returncode for one in second] == [0, 1, 2, 1]


def test_the_second_call_loads_neither_pydantic_nor_other_tools(project: Path) -> None:
    assert "pydantic" in imported(project, "Read", "a.txt")
    found = imported(project, "Read", "a.txt")
    assert "gripfast.builtin.read" in found
    unneeded = {"pydantic", "pydantic_core", "gripfast.builtin.bash", "gripfast.builtin.edit", "gripfast.patch.plan"}
    unneeded |= {"gripfast.host.shell.shells", "gripfast.host.stores.redis_store"}
    unneeded |= {"gripfast.call.command_lines", "gripfast.call.shell.commands"}
    unneeded |= {"gripfast.host.program.repository", "gripfast.host.search.line_search", "gripfast.builtin.write"}
    assert not found & unneeded


def test_nothing_is_kept_where_tools_of_ones_own_are_added(project: Path) -> None:
    source = 'from gripfast import tool\n\n\n@tool\ndef hello() -> str:\n    """Says hello."""\n    return "hello"\n'
    (project / "mine.py").write_text(source, encoding="utf-8")
    for _ in range(2):
        done = called(project, "hello", "--with", "mine.py")
        assert (done.stdout, done.returncode) == ("hello\n", 0), done.stderr
