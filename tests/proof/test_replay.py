"""scripts/replay on a small transcript made by hand: what counts as applied, as wrong, and as neither."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.replay import Block, Files, Result, Tally, as_patch, blocks_in, files_of, is_wrong, replay, table

ROOT = Path(__file__).parents[2]
BEFORE = "def f():\n    return 1\n\n\ndef g():\n    return 1\n\n\ndef h():\n    x = 2\n    return x\n"
AFTER = BEFORE.replace("    x = 2\n", "    x = 3\n")
CHAT = """\
I change `h`:

pkg/a.py
```python
<<<<<<< SEARCH
    x = 2
=======
    x = 3
>>>>>>> REPLACE
```

Once more, then one that fits twice and one that fits nowhere:

pkg/a.py
```python
<<<<<<< SEARCH
    x = 2
=======
    x = 3
>>>>>>> REPLACE

<<<<<<< SEARCH
    return 1
=======
    return 7
>>>>>>> REPLACE
<<<<<<< SEARCH
entirely something else
=======
nothing
>>>>>>> REPLACE
```

other.py
```python
<<<<<<< SEARCH
a
=======
b
>>>>>>> REPLACE
```
"""


def test_the_edits_of_a_chat_are_found_with_their_files() -> None:
    found = list(blocks_in(CHAT))
    assert [block.path for block in found] == ["pkg/a.py"] * 4 + ["other.py"]
    assert found[0] == Block("pkg/a.py", "    x = 2\n", "    x = 3\n")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository as of `acme__app`, and a transcript about it."""
    repository = tmp_path / "repositories" / "acme__app"
    (repository / "pkg").mkdir(parents=True)
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    (repository / "pkg" / "a.py").write_text(BEFORE)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    (repository / "pkg" / "a.py").write_text(AFTER)
    diff = subprocess.run([*git, "diff"], check=True, capture_output=True, text=True).stdout
    transcripts = tmp_path / "transcripts"
    transcripts.mkdir()
    (transcripts / "acme__app-1.md").write_text(CHAT)
    (transcripts / "acme__app-1.json").write_text(json.dumps({"model_patch": diff}))
    (transcripts / "unknown__thing-2.md").write_text(CHAT)
    return tmp_path


def test_a_transcript_is_replayed_and_counted(place: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.replay", str(place / "transcripts"), str(place / "repositories")]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "4 edits replayed; 1 others left out" in done.stdout
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| gripfast")]
    edit, patch = ([cell.split()[0] for cell in row[1:]] for row in rows)
    assert edit == ["1", "0", "1", "1", "1"]  # applied, wrong, already applied, several places, nowhere
    assert patch == ["1", "0", "0", "1", "2"]


def test_the_outcome_is_the_base_with_the_diff(place: Path) -> None:
    diff = json.loads((place / "transcripts" / "acme__app-1.json").read_text())["model_patch"]
    files = files_of(diff, lambda _: BEFORE)
    assert files == Files({"pkg/a.py": BEFORE}, {"pkg/a.py": AFTER})


def test_an_edit_at_another_place_than_the_transcripts_is_wrong() -> None:
    block = Block("a", "    return 1\n", "    return 5\n")
    first, second = BEFORE.replace("return 1", "return 5", 1), "5".join(BEFORE.rsplit("1", 1))
    assert is_wrong(second, block, first) and not is_wrong(first, block, first)
    tally = Tally()
    chat = "a.py\n```\n<<<<<<< SEARCH\n    return 1\n=======\n    return 5\n>>>>>>> REPLACE\n```\n"
    files = Files({"a.py": BEFORE}, {"a.py": first})
    replay(chat, files, {"careless": lambda _, __: Result(second), "right": lambda _, __: Result(first)}, tally)
    assert "| careless | 0 (0.0%) | 1 (100.0%) |" in table(tally) and "| right | 1 (100.0%) | 0 (0.0%) |" in table(
        tally
    )


def test_a_block_as_a_patch_removes_and_adds_its_lines() -> None:
    assert as_patch(Block("a", "x\n\ny\n", "z\n")).split("\n")[3:-1] == ["-x", "-", "-y", "+z"]
