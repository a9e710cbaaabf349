"""A client's file keeps every line it had, and gains a server."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gripfast.edges.cli.clients import CLIENTS
from gripfast.edges.cli.merge import AlreadyThere, merged

ENTRY = {"command": "gripfast", "args": ["serve"]}
CURSOR, CODEX = CLIENTS["cursor"], CLIENTS["codex"]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150)
@given(
    there=st.dictionaries(NAMES, VALUES, max_size=4),
    servers=st.none() | st.dictionaries(NAMES, st.just(ENTRY), max_size=3),
    indent=st.sampled_from([None, 2, 4, "\t"]),
    first=st.booleans(),
)
def test_any_json_file_reads_as_before_with_the_server_added(
    there: dict[str, Any], servers: dict[str, Any] | None, indent: Any, first: bool
) -> None:
    there.pop("mcpServers", None)
    if servers is not None:
        servers.pop("gripfast", None)
        there = {"mcpServers": servers, **there} if first else {**there, "mcpServers": servers}
    after = merged(json.dumps(there, indent=indent), CURSOR, "gripfast", ENTRY)
    assert json.loads(after) == {**there, "mcpServers": {**(servers or {}), "gripfast": ENTRY}}


WITH_COMMENTS = """\
// my servers
{
    // "mcpServers": {} was here
    "theme": "dark, {very}", /* keep
    this */
    "mcpServers": {
        // the first one
        "other": { "command": "x", "args": ["//not a comment", "}"], },
    },
}
"""


def test_comments_and_trailing_commas_stay_where_they_are() -> None:
    after = merged(WITH_COMMENTS, CURSOR, "gripfast", ENTRY)
    kept = iter(after.splitlines())
    assert all(line in kept for line in WITH_COMMENTS.splitlines())
    assert '"gripfast": {' in after
    assert after.index('"gripfast"') > after.index('"mcpServers": {\n')


@pytest.mark.parametrize("text", ["{}", "{ }", "{\n}\n", '{"mcpServers": {}}', '{"mcpServers": {\n}}\r\n'])
def test_an_empty_place_is_filled(text: str) -> None:
    assert json.loads(merged(text, CURSOR, "gripfast", ENTRY)) == {"mcpServers": {"gripfast": ENTRY}}


@pytest.mark.parametrize("text", ["[]", "nonsense", '{"mcpServers": []}', '{"mcpServers": {"a": 1}', '"text"'])
def test_what_can_not_be_read_is_not_touched(text: str) -> None:
    with pytest.raises(ValueError):
        merged(text, CURSOR, "gripfast", ENTRY)


def test_a_server_of_that_name_is_left_alone() -> None:
    with pytest.raises(AlreadyThere):
        merged('{"mcpServers": {"gripfast": {}}}', CURSOR, "gripfast", ENTRY)
    with pytest.raises(AlreadyThere):
        merged("[mcp_servers.gripfast]\n", CODEX, "gripfast", ENTRY)


TOML = '# mine\nmodel = "x"  # the model\n\n[mcp_servers.other]\ncommand = "y"'


def test_a_toml_file_gains_a_table_at_its_end() -> None:
    after = merged(TOML, CODEX, "gripfast", ENTRY)
    assert after.startswith(TOML)
    assert tomllib.loads(after)["mcp_servers"] == {"other": {"command": "y"}, "gripfast": ENTRY}


def test_a_toml_file_that_can_not_be_added_to_is_not_touched() -> None:
    with pytest.raises(ValueError):
        merged("mcp_servers = { other = { command = 'x' } }\n", CODEX, "gripfast", ENTRY)


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("entry", ["stdio", "http"])
def test_a_new_file_reads_back_as_what_was_meant(name: str, entry: str) -> None:
    client = CLIENTS[name]
    server = client.on_stdio(["a b", 'c"d']) if entry == "stdio" else client.over_http("http://h/mcp", "t")
    text = merged("", client, "gripfast", server)
    found: Any = tomllib.loads(text) if client.form == "toml" else json.loads(text)
    assert found[client.keys[0]]["gripfast"] == server
