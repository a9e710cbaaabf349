"""Calls that answers propose: each works as it is written, with the tools and arguments of its profile."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gripfast.builtin.session import open_session
from gripfast.builtin.tools import TOOLS
from gripfast.edges.profiles import PROFILES, pick
from gripfast.host.files.scope import Scope

pytestmark = pytest.mark.anyio

CELLS = [{"cell_type": "code", "source": [f"line = {n}\n" for n in range(9)], "outputs": []}]
FILES = {
    "long.py": "def f():\n    pass\n" * 2_000,
    "wide.txt": "x€" * 5_000 + "needle" + "y" * 5_000 + "\nend\n",
    "n.ipynb": json.dumps({"cells": CELLS}),
    **{f"many/sub/f{n}.txt": "" for n in range(50)},
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("Read", {"file_path": "long.py", "limit": 3}),
    ("Read", {"file_path": "long.py", "offset": -30, "limit": 3}),
    ("Read", {"file_path": "wide.txt"}),
    ("Read", {"file_path": "wide.txt", "line_offset": 2}),
    ("Read", {"file_path": "n.ipynb", "limit": 2}),
    ("Read", {"file_path": "many"}),
    ("Grep", {"pattern": "needle", "output_mode": "content"}),
    ("Grep", {"pattern": "def", "output_mode": "content", "head_limit": 3}),
    ("outline", {"path": ".", "limit": 20}),
    ("outline", {"path": "many", "limit": 20}),
    ("Bash", {"command": "seq 20000"}),
    ("Bash", {"command": "seq 5", "run_in_background": True}),
    ("BashOutput", {"bash_id": "bash_1", "offset": 0, "filter": "none"}),
]


def proposed(text: str, names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls in an answer, but for those with a part that the model has to fill in."""
    for found in re.finditer(rf"\b(?:{'|'.join(map(re.escape, names))})\([^()\n]*\)", text):
        call = ast.parse(found[0], mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        given = {word.arg or "": ast.literal_eval(word.value) for word in call.keywords}
        if ... not in given.values():
            yield call.func.id, given


@pytest.mark.parametrize("profile", PROFILES)
async def test_every_call_that_an_answer_proposes_works(tmp_path: Path, profile: str) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    tools = {tool.name: tool for tool in pick(TOOLS, profile)}
    followed = 0
    async with open_session(Scope.workspace(tmp_path), builtin=tools.values()) as session:
        for name, arguments in CALLS:
            if name not in tools:
                continue
            answer = await session.call(name, arguments)
            for other, given in proposed(answer.text, [tool.name for tool in TOOLS]):
                assert other in tools, answer.text[-400:]
                assert set(given) <= set(tools[other].definition.parameters["properties"]), answer.text[-400:]
                assert (other, given) != (name, arguments)
                again = await session.call(other, given)
                assert not again.is_error, (given, again.text)
                followed += 1
    assert followed >= 6
