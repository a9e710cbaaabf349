"""What open_session puts together: the rules in front, before any hook of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from gripfast import PermissionRule, Permissions, Scope, Tool, ToolCall, open_session

pytestmark = pytest.mark.anyio


async def test_in_an_opened_session_the_rules_speak_before_any_other_hook(tmp_path: Path) -> None:
    heard: list[str] = []

    def other(call: ToolCall, tool: Tool, arguments: BaseModel) -> None:
        heard.append(call.name)

    rules = Permissions("allow", [PermissionRule("Write", "*.py", "deny")])
    async with open_session(Scope.workspace(tmp_path), permissions=rules, before=[other]) as session:
        assert (await session.call("Write", {"file_path": "a.py", "content": ""})).is_error
        assert heard == []
        assert not (await session.call("Write", {"file_path": "a.md", "content": ""})).is_error
        assert heard == ["Write"]
