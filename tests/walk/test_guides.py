"""What the pages about tools and calls show is run here, word for word, as a newcomer would."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def python(*arguments: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for block in blocks("guides/writing-a-tool.md", "python"):
        name = block.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(block, encoding="utf-8")
    return tmp_path


def test_the_tool_of_the_guide_does_in_process_what_the_guide_says(notes: Path) -> None:
    shown = blocks("guides/writing-a-tool.md", "text")[1]
    assert python("try_notes.py", cwd=notes) == shown


def test_the_tool_of_the_guide_is_tested_with_a_fake(notes: Path) -> None:
    python("test_notes.py", cwd=notes)
    assert not (notes / "notes.db").exists()


def test_the_commands_of_the_guide_list_and_call_the_tool(notes: Path) -> None:
    (commands,) = blocks("guides/writing-a-tool.md", "sh")
    listed, called, _ = [re.findall(r"'[^']*'|\S+", line.split("  ")[0]) for line in commands.splitlines()]
    run = ("-c", "from gripfast.edges.cli import main; main()")
    assert "add_note" in python(*run, *listed[1:], cwd=notes)
    assert python(*run, *(word.strip("'") for word in called[1:]), cwd=notes) == "note 1\n"


@pytest.mark.parametrize("page", ["concepts/framework.md", "concepts/call.md"])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path) -> None:
    for block in blocks(page, "python"):
        python("-c", block, cwd=tmp_path)
