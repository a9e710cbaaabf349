"""A workspace of two directories: an answer about the first names the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Grep", {"pattern": "needle"}),
    ("Grep", {"pattern": "here"}),
    ("Glob", {"pattern": "**/*.py"}),
    ("Glob", {"pattern": "*.none"}),
    ("tree", {"path": "."}),
    ("outline", {"path": "."}),
)


pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_search_of_the_first_directory_says_how_to_search_the_other(
    tool: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for place, text in ((first, "here"), (second, "needle")):
        place.mkdir()
        (place / "a.py").write_text(f"{text} = 1\n")
    async with open_session(Scope.workspace(first, second)) as session:
        answer = (await session.call(tool, arguments)).text.replace("\\", "")
        assert f"only {first} was searched" in answer and f'path="{second}"' in answer
        there = await session.call(tool, {**arguments, "path": str(second)})
        assert "was searched" not in there.text
    async with open_session(Scope.workspace(first)) as session:
        assert "was searched" not in (await session.call(tool, arguments)).text
