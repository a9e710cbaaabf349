"""The catalog and the toolkit: policy, then sandbox, then the operation; three statuses; typed like the tools."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, get_args

import anyio
import jsonschema
import pytest

from gripfast import TOOL_DEFINITIONS, AgentToolkit, ToolCatalog, create_agent_toolkit, create_tool_context
from gripfast.builtin.catalog import Catalog, ToolName
from gripfast.builtin.toolkit import AgentTools, Policy, WriteScope
from gripfast.builtin.tools import TOOLS
from gripfast.errors import InvalidArgument, NotDirectory, NotFound
from gripfast.framework.arguments import Arguments
from searching import make

ALL: Policy = {"default_policy": "allow"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make(tmp_path, {"secret": "secret\n"})
    return make(tmp_path / "ws", {"a.txt": "one\ntwo\n", "src/b.py": "needle\n"})


def kit(root: Path, policy: Policy | None = None, write_scope: WriteScope = "workspace-write") -> AgentToolkit:
    context = create_tool_context(
        workspace_root=str(root), write_scope=write_scope, policy=ALL if policy is None else policy
    )
    return create_agent_toolkit(context)


def invoked(toolkit: AgentToolkit, name: str, /, **arguments: Any) -> dict[str, Any]:
    async def once() -> Any:
        async with toolkit:
            return await toolkit.invoke(name, arguments)

    return anyio.run(once)


# --- the catalog ---


def test_catalog_and_definitions_hold_every_built_in_tool() -> None:
    assert list(ToolCatalog) == list(TOOL_DEFINITIONS) == [tool.name for tool in TOOLS]
    for name, tool in ToolCatalog.items():
        assert TOOL_DEFINITIONS[name]["parameters"] == tool.definition.parameters
        assert set(TOOL_DEFINITIONS[name]) == {"name", "description", "parameters"}
        assert getattr(ToolCatalog, name.replace("-", "_")) is tool


def test_every_definition_is_a_json_schema_of_an_object() -> None:
    for definition in TOOL_DEFINITIONS.values():
        jsonschema.Draft7Validator.check_schema(definition["parameters"])
        json.dumps(definition)


def test_an_editor_knows_every_tool_by_name() -> None:
    typed, annotated = set(get_args(ToolName)), set(Catalog.__annotations__)
    methods = {name for name in vars(AgentTools) if not name.startswith("_")}
    assert set(ToolCatalog) == typed, "ToolName in builtin/catalog.py"
    assert {name.replace("-", "_") for name in typed} == annotated, "the attributes of Catalog in builtin/catalog.py"
    assert annotated == methods, "the methods of AgentTools in builtin/toolkit.py"


@pytest.mark.parametrize("name", list(ToolCatalog))
def test_a_method_has_the_arguments_and_defaults_of_its_tool(name: str) -> None:
    method = inspect.signature(getattr(AgentTools, name.replace("-", "_"))).parameters
    arguments = ToolCatalog[name].arguments
    assert isinstance(arguments, Arguments)
    fields = arguments.model.model_fields
    ours = {parameter: method[parameter] for parameter in method if parameter != "self"}
    theirs = {(field.alias or key).lstrip("-"): field for key, field in fields.items()}
    assert list(ours) == list(theirs) or set(ours) == set(theirs)
    for key, field in theirs.items():
        default = ours[key].default
        if field.is_required():
            assert default is inspect.Parameter.empty, key
        else:
            assert default == field.get_default() or default is None, key


# --- three statuses ---


def test_success_has_the_data(root: Path) -> None:
    found = invoked(kit(root), "read_file", path="a.txt")
    assert found["status"] == "success"
    assert found["data"]["content"] == "one\ntwo\n"
    assert set(found) == {"status", "data"}


def test_text_tools_give_their_text(root: Path) -> None:
    assert invoked(kit(root), "Glob", pattern="**/*.py") == {"status": "success", "data": "src/b.py"}


def test_a_policy_denial_names_the_policy(root: Path) -> None:
    found = invoked(kit(root, {"tools": {"tree": "allow"}}), "read_file", path="a.txt")
    assert (found["status"], found["reason"], found["error"]["code"]) == ("denied", "policy", "POLICY_DENIED")
    assert "`read_file`" in found["message"]


@pytest.mark.parametrize(("name", "path"), [("read_file", "../secret"), ("tree", ".."), ("read_file", "/etc/passwd")])
def test_a_path_outside_is_denied_by_the_sandbox(root: Path, name: str, path: str) -> None:
    found = invoked(kit(root), name, path=path)
    assert (found["status"], found["reason"], found["error"]["code"]) == ("denied", "sandbox", "SANDBOX_VIOLATION")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("read_file", {"path": "nope"}, "NOT_FOUND"),
        ("read_file", {"path": "src"}, "NOT_FILE"),
        ("tree", {"path": "a.txt"}, "NOT_DIRECTORY"),
        ("tree", {"path": ".", "max_depth": 99}, "INVALID_ARGUMENT"),
        ("nope", {}, "TOOL_NOT_FOUND"),
    ],
)
def test_what_fails_in_the_operation_is_a_failure_at_runtime(
    root: Path, name: str, arguments: dict[str, Any], expected: str
) -> None:
    found = invoked(kit(root), name, **arguments)
    assert (found["status"], found["reason"], found["error"]["code"]) == ("failure", "runtime", expected)
    assert set(found) == {"status", "reason", "message", "error"}
    assert set(found["error"]) == {"code", "message", "retriable", "details"}


# --- the order of the gates ---


def test_the_policy_comes_before_the_sandbox_and_before_the_arguments(root: Path) -> None:
    denied = kit(root, {"tools": {"read_file": "deny"}, "default_policy": "allow"}, "read-only")
    assert invoked(denied, "read_file", path="../secret")["reason"] == "policy"
    assert invoked(denied, "read_file", max_lines="x")["reason"] == "policy"


def test_the_sandbox_comes_before_the_operation(root: Path) -> None:
    assert invoked(kit(root, write_scope="read-only"), "Write", nonsense=1)["reason"] == "sandbox"
    assert not (root / "new").exists()


def test_default_policy_is_deny(root: Path) -> None:
    assert kit(root, {}).get_allowed_tools() == []
    assert kit(root, {"tools": {"tree": "allow", "Read": "deny"}}).get_allowed_tools() == ["tree"]


# --- write scopes ---


def test_in_read_only_scope_nothing_that_can_write_runs(root: Path) -> None:
    toolkit = kit(root, write_scope="read-only")
    writers = [name for name, tool in ToolCatalog.items() if tool.traits.effect != "read"]
    assert {"Write", "Edit"} <= set(writers)
    assert not set(writers) & set(toolkit.get_allowed_tools())
    for name in writers:
        found = invoked(toolkit, name, file_path="new", content="x", command="touch new")
        assert (found["status"], found["reason"]) == ("denied", "sandbox"), name
    assert not (root / "new").exists()


def test_workspace_write_writes_inside_only(root: Path) -> None:
    assert invoked(kit(root), "Write", file_path="new", content="x")["status"] == "success"
    outside = invoked(kit(root), "Write", file_path=str(root.parent / "new"), content="x")
    assert (outside["reason"], (root.parent / "new").exists()) == ("sandbox", False)


def test_unrestricted_writes_anywhere_but_read_file_and_tree_stay_inside(root: Path) -> None:
    free = kit(root, write_scope="unrestricted")
    outside = str(root.parent / "new")
    assert invoked(free, "Write", file_path=outside, content="x")["status"] == "success"
    assert (root.parent / "new").exists()
    assert invoked(free, "read_file", path=outside)["reason"] == "sandbox"
    assert invoked(free, "tree", path=str(root.parent))["reason"] == "sandbox"
    assert invoked(free, "read_file", path="a.txt")["data"]["path"] == "a.txt"


# --- making one ---


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"workspace_root": "ROOT/nope"}, NotFound, "nope"),
        ({"workspace_root": "ROOT/a.txt"}, NotDirectory, "a.txt"),
        ({"workspace_root": ""}, InvalidArgument, "root"),
        ({"write_scope": "everything"}, InvalidArgument, "workspace-write"),
        ({"policy": {"tools": {"reed_file": "allow"}}}, InvalidArgument, "did you mean `read_file`"),
        ({"policy": {"tools": {"tree": "yes"}}}, InvalidArgument, "'allow' or 'deny'"),
        ({"policy": {"default_policy": "ask"}}, InvalidArgument, "'allow' or 'deny'"),
        ({"policy": {"defaultPolicy": "deny"}}, InvalidArgument, "default_policy"),
    ],
)
def test_a_context_that_can_not_be_is_refused_when_it_is_made(
    root: Path, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    given: dict[str, Any] = {"workspace_root": str(root), **arguments}
    given["workspace_root"] = given["workspace_root"].replace("ROOT", str(root))
    with pytest.raises(error, match=words):
        create_tool_context(**given)


@pytest.mark.anyio
async def test_methods_and_invoke_are_the_same_call(root: Path) -> None:
    async with kit(root) as toolkit:
        assert await toolkit.tools.read_file("a.txt", max_lines=1) == await toolkit.invoke(
            "read_file", '{"path": "a.txt", "max_lines": 1}'
        )
        found = await toolkit.tools.Grep("NEEDLE", i=True, output_mode="content", n=False)
        assert found == {"status": "success", "data": "src/b.py:needle\n[1 matching line in 1 file]"}
        tree = await toolkit.tools.tree(".", entry_kind="all", exclude=["src"])
        assert tree["status"] == "success" and tree["data"]["total_files"] == 1


@pytest.mark.anyio
async def test_one_toolkit_is_one_session(root: Path) -> None:
    async with kit(root) as toolkit:
        refused = await toolkit.tools.Write("a.txt", "new\n")
        assert refused["status"] == "failure" and refused["error"]["code"] == "NOT_READ"
        await toolkit.tools.Read("a.txt")
        assert (await toolkit.tools.Write("a.txt", "new\n"))["status"] == "success"
