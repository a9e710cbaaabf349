"""What the README and the examples show passes the type checkers that users have."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    """A directory with the examples, and each block of Python in the README as a file."""
    for example in (ROOT / "examples").glob("*.py"):
        (tmp_path / example.name).write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert blocks
    for number, block in enumerate(blocks):
        named = re.match(r"# (\w+\.py)\n", block)
        (tmp_path / (named[1] if named else f"readme_{number}.py")).write_text(block, encoding="utf-8")
    return tmp_path


def test_mypy_accepts_the_readme_and_the_examples(shown: Path) -> None:
    """`--strict` only adds checks: what it accepts, mypy accepts without it."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--strict", *map(str, sorted(shown.glob("*.py")))]
    done = subprocess.run(command, cwd=shown, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_accepts_the_readme_and_the_examples(shown: Path) -> None:
    pytest.importorskip("pyright")
    (shown / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard"}), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(shown)]
    done = subprocess.run(command, cwd=shown, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
