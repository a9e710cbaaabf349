"""The guide's tools, run as they stand on the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gripfast import Scope, ScopedFs, ToolContext, open_session

pytestmark = pytest.mark.anyio

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "own-tools-with-files.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The names the page's Python blocks define, but for the block that runs a program."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    source = "\n".join(block.replace("anyio.run(main)", "") for block in blocks)
    names: dict[str, Any] = {"__name__": "guide", "ToolContext": ToolContext}
    exec(compile(source, str(GUIDE), "exec"), names)  # noqa: S102 - our own page
    return names


async def test_the_tool_sorts_inside_the_scope_and_is_refused_outside(page: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("c\na\nb\n")
    async with open_session(Scope.workspace(tmp_path), tools=[page["sort_lines"]]) as session:
        done = await session.call("sort_lines", {"path": "words.txt"})
        refused = await session.call("sort_lines", {"path": "/etc/hosts"})
    assert done.text == "sorted 3 lines of words.txt"
    assert (tmp_path / "words.txt").read_text() == "a\nb\nc\n"
    assert refused.error is not None and refused.error.code == "SANDBOX_VIOLATION"
    expected = refused.text.replace(str(tmp_path), "/home/me/project")
    assert expected in GUIDE.read_text(encoding="utf-8")


async def test_the_other_tools_of_the_page_do_what_it_says(page: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "n").write_text("4\n")
    async with open_session(Scope.workspace(tmp_path), tools=[page["count_up"], page["clear"]]) as session:
        assert (await session.call("count_up", {"path": "n"})).text == "5"
        unread = await session.call("clear", {"path": "n"})
        assert unread.error is not None and unread.error.code == "NOT_READ"
        await session.call("Read", {"file_path": "n"})
        assert (await session.call("clear", {"path": "n"})).text == "n is empty"


def test_the_test_of_the_page_passes(page: dict[str, Any], tmp_path: Path) -> None:
    page["test_it_sorts"](tmp_path)
    assert ScopedFs(Scope.workspace(tmp_path)).roots == (str(tmp_path),)
