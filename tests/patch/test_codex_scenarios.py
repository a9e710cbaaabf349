"""The scenarios of Codex's repository, from the directory GRIPFAST_CODEX_SCENARIOS names. Skipped without it.

Each has `input/`, `patch.txt` and `expected/`. Our own cases of the same kinds are in the other tests of patches.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gripfast.builtin.session import open_session
from gripfast.errors import ToolError
from gripfast.host.files.scope import Scope
from gripfast.patch.grammar import parse

pytestmark = pytest.mark.anyio

DIRECTORY = Path(os.environ.get("GRIPFAST_CODEX_SCENARIOS", "/nonexistent"))
SCENARIOS = sorted(path.parent.name for path in DIRECTORY.glob("*/patch.txt"))
# What we do otherwise, on purpose: the tree stays as it was, with this error.
OTHERWISE = {"010": "NOT_READ", "011": "NOT_READ", "015": "NOT_FOUND"}


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def read_before(text: str) -> list[str]:
    """The files that an agent looks at before it sends the patch: those it updates and deletes."""
    try:
        return [hunk.path for hunk in parse(text).hunks if hunk.kind != "add"]
    except ToolError:  # a scenario of a patch that is none
        return []


@pytest.mark.skipif(not SCENARIOS, reason="GRIPFAST_CODEX_SCENARIOS names no directory with scenarios")
@pytest.mark.parametrize("name", SCENARIOS or ["none"])
async def test_a_scenario_of_codex_has_its_outcome(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root, scenario = tmp_path / "ws", DIRECTORY / name
    if (scenario / "input").is_dir():
        shutil.copytree(scenario / "input", root)
    else:
        root.mkdir()
    before = tree(root)
    text = (scenario / "patch.txt").read_bytes().decode()
    async with open_session(Scope.workspace(root)) as session:
        for path in read_before(text):
            await session.call("Read", {"file_path": path})
        message = await session.call("apply_patch", {"patch": text})
    otherwise = OTHERWISE.get(name[:3])
    if otherwise is not None:
        assert message.error is not None and message.error.code == otherwise
        assert tree(root) == before
    else:
        assert tree(root) == tree(scenario / "expected"), message.text
