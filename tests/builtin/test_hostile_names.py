"""Names with invisible characters: every tool writes them out; the contents of files stay as they are."""

from __future__ import annotations

import pytest

from builtin.conftest import Bench
from gripfast import Scope, open_session

pytestmark = pytest.mark.anyio

TAGS = "".join(chr(0xE0000 + ord(char)) for char in "rm")
HIDDEN = [TAGS, "\u202e", "\u200b", "\x1b[31m", "\ufe0f\ufe0f", "\u3164", "\ue000", "\U000e0100"]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Glob", {"pattern": "**"}),
        ("Grep", {"pattern": "needle"}),
        ("Grep", {"pattern": "needle", "output_mode": "content"}),
        ("tree", {"path": ".", "entry_kind": "all"}),
        ("Read", {"file_path": "d/notess"}),
        ("Bash", {"command": "ls d"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_no_tool_shows_a_hidden_character_of_a_name(
    bench: Bench, tool: str, arguments: dict[str, str], hidden: str
) -> None:
    bench.put(f"d/notes{hidden}", "needle\n")
    message = await bench.session.call(tool, arguments)
    assert "notes" in message.text
    assert not any(char in message.text for char in hidden if not char.isascii() or char == "\x1b")


async def test_the_content_of_a_file_is_read_as_it_is_and_can_be_edited(bench: Bench) -> None:
    content = f"a{TAGS}\u200b\u00a0👨\u200d👩 می\u200cخواهم\u202e\n"
    path = bench.put("a.txt", content)
    message = await bench.session.call("Read", {"file_path": "a.txt"})
    assert content.rstrip("\n") in message.text
    edit = {"file_path": "a.txt", "old_string": content.rstrip("\n"), "new_string": f"{TAGS}b"}
    assert not (await bench.session.call("Edit", edit)).is_error
    assert path.read_text(encoding="utf-8") == f"{TAGS}b\n"


async def test_an_error_hides_nothing_that_it_quotes(bench: Bench) -> None:
    async with open_session(Scope.workspace(bench.root, deny=[f"secret{TAGS}\u202e"])) as session:
        message = await session.call("Read", {"file_path": "secret"})
    assert message.is_error and "deny pattern" in message.text and message.text.isprintable()
