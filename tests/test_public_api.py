"""The front door: exactly these names, found when they are first used, and cheap to open."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import gripfast

# What other people's code leans on.
FIXED = """Scope ScopedFs Tool tool define_tool Depends DependencyKey ToolContext ToolCall ToolMessage ToolResult
TextResult JsonResult PartsResult TextPart ImagePart ToolError Session open_session builtin_tools ToolCatalog
TOOL_DEFINITIONS create_tool_context create_agent_toolkit PermissionRule Permissions OutputCache""".split()

# What stands beside them because a user of these needs it.
BESIDE = """AgentToolkit Ask Decision Deny DocumentPart FS OutputRef Question RecordOptions ToolDefinitionError
UndoResult WorkPath WorkspaceSession provider_messages rule_set""".split()

HEAVY = ("mcp", "starlette", "uvicorn", "redis", "tree_sitter", "pypdf", "rich", "httpx", "sqlite3")


def in_a_new_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_public_names_are_exactly_these() -> None:
    assert sorted(gripfast.__all__) == sorted([*FIXED, *BESIDE])


def test_what_is_visible_is_what_is_public() -> None:
    assert sorted(dir(gripfast)) == sorted(gripfast.__all__)


@pytest.mark.parametrize("name", [*FIXED, *BESIDE])
def test_every_public_name_is_there_and_can_be_imported(name: str) -> None:
    namespace: dict[str, object] = {}
    exec(f"from gripfast import {name}", namespace)  # noqa: S102 - the import is what is tested
    assert namespace[name] is getattr(gripfast, name)
    assert not isinstance(namespace[name], ModuleType)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'gripfast' has no attribute 'nothing'"):
        _ = gripfast.nothing  # type: ignore[attr-defined]


def test_the_decorator_stays_reachable_whichever_is_imported_first() -> None:
    assert callable(gripfast.tool)
    room, door = "from gripfast.framework.definition import tool as there", "from gripfast import tool as here"
    for first, then in ((room, door), (door, room)):
        in_a_new_python(f"{first}; {then}; import gripfast; assert here is there is gripfast.tool")


@pytest.mark.parametrize(
    "code",
    [
        "import gripfast",
        "from gripfast import Session, tool, define_tool, Depends, DependencyKey, ToolContext",
    ],
)
def test_opening_the_door_or_defining_a_tool_loads_nothing_heavy(code: str) -> None:
    loaded = in_a_new_python(f"{code}\nimport sys\nprint(*sorted(sys.modules))").split()
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_importing_gripfast_costs_no_more_than_one_and_a_half_times_pydantic() -> None:
    def imported(code: str) -> set[str]:
        return set(in_a_new_python(f"{code}\nimport sys\nprint(*sys.modules)").split())

    # Counted in modules, not in seconds: what a clock says depends on who else is working.
    ours, pydantics = imported("import gripfast"), imported("import pydantic; pydantic.BaseModel")
    assert len(ours) <= 1.5 * len(pydantics)
