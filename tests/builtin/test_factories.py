"""The built-in tools one by one, bound to a file system, with one state."""

from __future__ import annotations

import json
import pydoc
from pathlib import Path

import pytest

import gripfast
from gripfast import (
    TOOL_DEFINITIONS,
    Scope,
    ScopedFs,
    ToolCatalog,
    ToolContext,
    ToolError,
    WorkPath,
    builtin_tools,
    tool,
)
from gripfast.builtin import factories
from gripfast.builtin.tools import TOOLS

pytestmark = pytest.mark.anyio


async def test_tools_over_one_file_system_share_what_was_read(tmp_path: Path) -> None:
    fs, ctx = ScopedFs(Scope.workspace(tmp_path)), ToolContext()
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    edit = {"file_path": "a.txt", "old_string": "one", "new_string": "1"}
    with pytest.raises(ToolError, match="NOT_READ"):
        await factories.edit_tool(fs).execute_raw(edit, ctx)
    await factories.read_tool(fs).execute_raw({"file_path": "a.txt"}, ctx)
    await factories.edit_tool(fs).execute_raw(edit, ctx)
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "1\n"
    other = ScopedFs(Scope.workspace(tmp_path))
    with pytest.raises(ToolError, match="NOT_READ"):
        await factories.edit_tool(other).execute_raw({**edit, "old_string": "1"}, ctx)


async def test_todos_are_kept_between_calls_without_a_session(tmp_path: Path) -> None:
    todos = next(one for one in builtin_tools(ScopedFs(Scope.workspace(tmp_path))) if one.name == "write_todos")
    await todos.execute_raw({"todos": [{"content": "first"}]}, ToolContext())
    answer = await todos.execute_raw({"todos": [{"content": "second"}]}, ToolContext())
    assert "first" in str(answer) and "second" in str(answer)


def test_there_is_a_factory_for_every_tool_over_files(tmp_path: Path) -> None:
    fs = ScopedFs(Scope.workspace(tmp_path))
    made = [
        make(fs).name for name, make in vars(factories).items() if name.endswith("_tool") and name != "bound_tool"
    ]
    elsewhere = {"tool_output_cache", "tool_output_cache_grep", "done"}
    assert set(made) == {one.name for one in TOOLS} - elsewhere


def test_changing_a_definition_changes_no_tool() -> None:
    before = json.dumps(TOOL_DEFINITIONS["Read"])
    TOOL_DEFINITIONS["Read"]["parameters"]["properties"].clear()
    assert json.dumps(TOOL_DEFINITIONS["Read"]) == before
    assert ToolCatalog.Read.definition.parameters["properties"]


def test_a_path_that_can_not_be_one_can_not_be_made() -> None:
    for text in ("a\0b", "", "x" * 300):
        with pytest.raises(ToolError, match="INVALID_ARGUMENT"):
            WorkPath(text)


@tool
def double(number: int) -> int:
    """Doubles a number."""
    return number * 2


def test_a_decorated_function_can_still_be_called() -> None:
    assert double(21) == 42
    assert double(number=2) == 4


def test_help_on_open_session_is_a_page_not_a_dump() -> None:
    page = pydoc.plain(pydoc.render_doc(gripfast.open_session))
    assert len(page) < 3_000
    assert "ToolDefinition(" not in page


def test_a_tool_may_use_a_code_of_its_own() -> None:
    assert ToolError("QUOTA_USED_UP", "wait").code == "QUOTA_USED_UP"
    for code in ("UNAVAILABLE", "RATE_LIMITED", "UNAUTHORIZED", "TIMEOUT"):
        assert str(ToolError(code, "later")) == f"{code}: later"
    with pytest.raises(ValueError, match="not upper case"):
        ToolError("quota", "wait")
