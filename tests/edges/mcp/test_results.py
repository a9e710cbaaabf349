"""Results as clients take them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import Implementation, TextContent
from tests.serving import client_of, text_of

from gripfast.edges.mcp.results import result_of
from gripfast.edges.settings import SessionSettings
from gripfast.framework.definition import tool
from gripfast.messages import ToolMessage

GEMINI = "gemini-cli-mcp-client"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SPACE = st.text(" \t\r\n", max_size=3)


@tool(effect="read")
def answer() -> str:
    """Answers."""
    return "42\n"


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "blocks"), [(GEMINI, ["", "42\n"]), ("another", ["42\n"])])
async def test_a_number_is_no_object_for_a_client_that_parses_text(
    tmp_path: Path, name: str, blocks: list[str]
) -> None:
    settings = SessionSettings((str(tmp_path),), (answer,))
    async with client_of(settings, "legacy", client_info=Implementation(name=name, version="1")) as client:
        result = await client.call_tool("answer", {})
    assert [block.text for block in result.content if isinstance(block, TextContent)] == blocks
    assert text_of(result).strip() == "42"


@given(value=VALUES, before=SPACE, after=SPACE)
def test_gemini_cli_reads_nothing_but_an_object_as_structure(value: Any, before: str, after: str) -> None:
    text = f"{before}{json.dumps(value)}{after}"
    result = result_of(ToolMessage("1", "t", text), None, GEMINI)
    first = result.content[0]
    assert isinstance(first, TextContent)
    assert (first.text == "") != isinstance(value, dict)
    assert text_of(result).removeprefix("\n" if first.text == "" else "") == text


@given(
    text=st.text() | st.sampled_from(["[" * 100_000, "1" * 10_000, "true story", "- item", '"quoted" word', "1\t2"])
)
def test_other_text_and_other_clients_get_one_block(text: str) -> None:
    assert len(result_of(ToolMessage("1", "t", text), None, "codex-mcp-client").content) == 1
    blocks = result_of(ToolMessage("1", "t", f"{text}\n[exit code 1]"), None, GEMINI).content
    assert len(blocks) == 1 or text.startswith("[[")
