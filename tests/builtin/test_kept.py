"""A tool that is called from what an earlier start kept behaves as one that is loaded in full."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.builtin import kept
from gripfast.builtin import tools as tool_list
from gripfast.errors import ToolError
from gripfast.framework.definition import Tool

KEPT: dict[str, Any] = json.loads(kept.kept_text())["tools"]
PLAIN = {one["name"]: one for tools in KEPT.values() for one in tools if one["plain"] is not None}
LOADED = {tool.name: tool for tool in (*tool_list.TOOLS, *tool_list.EXTRA_TOOLS)}
QUICK = {name: kept.quick(LOADED[name], one["plain"]) for name, one in PLAIN.items()}

VALUES: list[Any] = [
    *("", "a.py", "../x", "a\0b", "true", "1", "null", "all", "auto", "content", "1-3", "\ud800", "ü", "x" * 5000),
    *(0, 1, -1, 3, 10**30, 1.0, 0.5, True, False, None, [], ["a"], {}, {"a": 1}),
]


def outcome(tool: Tool, text: Any) -> Any:
    try:
        found = tool.arguments.parse(text)
    except ToolError as fault:
        return fault.code, fault.message, fault.details
    return vars(found), found.model_dump(mode="json", by_alias=True, exclude_unset=True), found.model_dump_json()


def agree(name: str, text: Any) -> None:
    assert outcome(QUICK[name], text) == outcome(LOADED[name], text), (name, text)


def right(name: str) -> dict[str, Any]:
    """The least arguments that a tool takes."""
    return {
        one["sent"]: {"string": "text", "path": "a.py", "integer": 1, "boolean": True}[one["kind"]]
        for one in PLAIN[name]["plain"]["arguments"]
        if one["required"]
    }


def test_the_tools_of_every_day_are_among_them() -> None:
    assert {"Read", "Write", "Edit", "Glob", "Grep", "outline", "done"} <= PLAIN.keys()


@pytest.mark.parametrize("name", PLAIN)
def test_the_least_arguments_are_read_without_pydantic(name: str) -> None:
    parts = QUICK[name].parts
    assert type(parts.arguments.parse(json.dumps(right(name)))).__name__ == "PlainModel"
    agree(name, json.dumps(right(name)))


@pytest.mark.parametrize("name", PLAIN)
def test_every_value_in_every_place_is_taken_or_refused_alike(name: str) -> None:
    for argument in PLAIN[name]["plain"]["arguments"]:
        for value in (*VALUES, *(argument["choices"] or ())):
            agree(name, json.dumps({**right(name), argument["sent"]: value}))
    agree(name, json.dumps({**right(name), "unknown": 1}))
    for missing in right(name):
        agree(name, json.dumps({key: value for key, value in right(name).items() if key != missing}))


TEXTS = (
    "",
    " ",
    "null",
    "[]",
    "1",
    '"a"',
    "{",
    '{"a"}',
    "\ufeff{}",
    '{"message": NaN}',
    '{"message": "\\ud800"}',
    "\ud800",
)
TWICE = (
    '{"message": "a", "message": "b"}',
    '{"message": 1, "message": "b"}',
    '{"message": "NaN"}',
    '{"message":"a"} ',
)


@pytest.mark.parametrize("text", [*TEXTS, *TWICE, b"{}", {}, None, {"message": "x"}], ids=repr)
def test_what_is_not_an_object_of_plain_values_is_answered_alike(text: Any) -> None:
    agree("done", text)


@given(
    name=st.sampled_from(sorted(PLAIN)),
    more=st.dictionaries(
        st.text(max_size=3), st.none() | st.integers() | st.floats() | st.text(max_size=5), max_size=2
    ),
    data=st.data(),
)
def test_any_arguments_are_answered_alike(name: str, more: dict[str, Any], data: st.DataObject) -> None:
    names = [one["sent"] for one in PLAIN[name]["plain"]["arguments"]]
    value = st.none() | st.booleans() | st.integers(-5, 700_000) | st.text(max_size=6)
    chosen = data.draw(st.dictionaries(st.sampled_from(names), value, max_size=3))
    agree(name, json.dumps({**right(name), **chosen, **more}))


@pytest.mark.parametrize("name", PLAIN)
def test_it_is_run_with_the_same_dependencies(name: str) -> None:
    quick, loaded = QUICK[name], LOADED[name]
    assert (quick.parts.needs, quick.parts.context) == (loaded.parts.needs, loaded.parts.context)
    assert (quick.traits, quick.definition) == (loaded.traits, loaded.definition)


def test_a_changed_copy_of_the_arguments_is_dumped_as_changed() -> None:
    text = '{"file_path": "a.py"}'
    quick, loaded = (tool["Read"].arguments.parse(text).model_copy(update={"limit": 3}) for tool in (QUICK, LOADED))
    assert vars(quick) == vars(loaded)
    assert dict(quick) == dict(loaded)
    assert quick.model_dump() == loaded.model_dump()


@pytest.mark.parametrize("called", ["Read", "Bash", "write_todos"])
def test_the_list_of_tools_is_the_same_whatever_is_called(called: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tools, extra = tool_list.TOOLS, tool_list.EXTRA_TOOLS
    monkeypatch.setattr(tool_list, "TOOLS", tools)
    monkeypatch.setattr(tool_list, "EXTRA_TOOLS", extra)
    monkeypatch.setattr(kept, "take_as_tried", list[Any]().append)
    assert kept.use(kept.kept_text(), called)
    for found, real in zip((*tool_list.TOOLS, *tool_list.EXTRA_TOOLS), (*tools, *extra), strict=True):
        for trait in kept.TRAITS:
            assert getattr(found.traits, trait) == getattr(real.traits, trait)
        assert found.definition == real.definition
        if found.name == called:
            assert found.traits == real.traits


def test_the_kept_sandbox_is_used_only_where_no_command_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_list, "TOOLS", tool_list.TOOLS)
    monkeypatch.setattr(tool_list, "EXTRA_TOOLS", tool_list.EXTRA_TOOLS)
    sandbox: dict[str, Any] = {"level": "bwrap", "program": "/usr/bin/bwrap", "spaces": [], "faults": []}
    text = json.dumps({"tools": KEPT, "sandbox": sandbox})
    for name in LOADED:
        taken: list[Any] = []
        monkeypatch.setattr(kept, "take_as_tried", taken.append)
        kept.use(text, name)
        if name in ("Bash", "BashInput", "BashOutput", "KillBash"):
            assert not taken
        if name in ("Read", "Write"):
            assert taken
