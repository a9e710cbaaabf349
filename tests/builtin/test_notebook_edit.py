"""NotebookEdit: one cell changes, every other byte stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builtin.conftest import Bench
from gripfast.builtin.notebook_cells import CellEdit, edited_span

pytestmark = pytest.mark.anyio

CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "id": "aa", "metadata": {}, "source": ["# Title\n", "text é"]},
    {
        "cell_type": "code",
        "execution_count": 3,
        "id": "bb",
        "metadata": {"n": 1e5},
        "outputs": [{"name": "stdout", "output_type": "stream", "text": ["1\n"]}],
        "source": "print(1)",
    },
]
NOTEBOOK: dict[str, Any] = {"cells": CELLS, "metadata": {"x": [1, {}]}, "nbformat": 4, "nbformat_minor": 5}
AS_JUPYTER = json.dumps(NOTEBOOK, indent=1, ensure_ascii=False) + "\n"


async def opened(bench: Bench, text: str = AS_JUPYTER) -> str:
    bench.put("n.ipynb", text)
    await bench.ok("Read", file_path="n.ipynb")
    return "n.ipynb"


async def test_a_cell_is_replaced_and_nothing_else_changes(bench: Bench) -> None:
    name = await opened(bench)
    answer = await bench.ok("NotebookEdit", notebook_path=name, cell=1, new_source="# New\nline")
    assert answer.startswith("replaced cell 1 of `n.ipynb`\n--- n.ipynb")
    old, new = '"# Title\\n",\n    "text é"', '"# New\\n",\n    "line"'
    assert bench.bytes_of(name).decode() == AS_JUPYTER.replace(old, new)
    await bench.ok("NotebookEdit", notebook_path=name, cell=2, new_source="print(2)")
    assert bench.bytes_of(name).decode() == AS_JUPYTER.replace(old, new).replace("print(1)", "print(2)")
    assert "<cell 2 code [3]>\n     5\tprint(2)" in await bench.ok("Read", file_path=name)


async def test_a_cell_is_inserted_with_an_id_of_its_own_and_deleted_again(bench: Bench) -> None:
    name = await opened(bench)
    for after in (0, 1, 2):
        answer = await bench.ok(
            "NotebookEdit", notebook_path=name, cell=after, new_source="a = 1\nb", edit_mode="insert"
        )
        assert answer.startswith(f"inserted cell {after + 1} of")
        cells = json.loads(bench.bytes_of(name))["cells"]
        new = cells.pop(after)
        assert cells == CELLS
        assert new.pop("id") not in ("aa", "bb")
        code: dict[str, Any] = {
            "cell_type": "code",
            "metadata": {},
            "source": ["a = 1\n", "b"],
            "execution_count": None,
        }
        assert new == {**code, "outputs": []}
        await bench.ok("NotebookEdit", notebook_path=name, cell=after + 1, edit_mode="delete")
        assert bench.bytes_of(name).decode() == AS_JUPYTER


async def test_the_type_of_a_cell_can_change(bench: Bench) -> None:
    name = await opened(bench)
    await bench.ok("NotebookEdit", notebook_path=name, cell=2, new_source="words", cell_type="markdown")
    assert json.loads(bench.bytes_of(name))["cells"][1] == {
        "cell_type": "markdown",
        "id": "bb",
        "metadata": {"n": 1e5},
        "source": ["words"],
    }


async def test_a_new_type_alone_keeps_the_source_and_nothing_new_is_an_error(bench: Bench) -> None:
    name = await opened(bench)
    before = json.loads(bench.bytes_of(name))["cells"][1]["source"]
    await bench.ok("NotebookEdit", notebook_path=name, cell=2, cell_type="markdown")
    cell = json.loads(bench.bytes_of(name))["cells"][1]
    assert (cell["cell_type"], cell["source"]) == ("markdown", before) and before
    assert "give new_source" in await bench.fails("INVALID_ARGUMENT", "NotebookEdit", notebook_path=name, cell=2)


async def test_the_guard_is_that_of_edit_and_faults_change_nothing(bench: Bench) -> None:
    bench.put("n.ipynb", AS_JUPYTER)
    await bench.fails("NOT_READ", "NotebookEdit", notebook_path="n.ipynb", cell=1, new_source="x")
    name = await opened(bench)
    assert "give 1 to 2" in await bench.fails("INVALID_ARGUMENT", "NotebookEdit", notebook_path=name, cell=3)
    assert "give 0 to 2" in await bench.fails(
        "INVALID_ARGUMENT", "NotebookEdit", notebook_path=name, cell=3, edit_mode="insert"
    )
    await bench.fails(
        "INVALID_ARGUMENT", "NotebookEdit", notebook_path=name, cell=1, new_source="x", edit_mode="delete"
    )
    await bench.fails("NOT_FOUND", "NotebookEdit", notebook_path="none.ipynb", cell=1)
    for broken in ("[]", "{}", '{"cells": {}}', '{"cells": [', "no json", '{"cells": ' + "[" * 5000):
        bench.put("n.ipynb", broken)
        await bench.ok("Read", file_path="n.ipynb")
        message = await bench.fails("INVALID_ARGUMENT", "NotebookEdit", notebook_path=name, cell=1)
        assert "is not a notebook" in message
        assert bench.bytes_of(name).decode() == broken


sources = st.text(st.characters(codec="utf-8"), max_size=30)
kinds = st.sampled_from(["code", "markdown"])


@st.composite
def cells(draw: st.DrawFn) -> dict[str, Any]:
    return {"cell_type": draw(kinds), "metadata": {}, "source": draw(sources | st.lists(sources))}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(cells(), max_size=4),
    st.sampled_from([None, 1, 2, "\t"]),
    st.booleans(),
    st.sampled_from(["replace", "insert", "delete"]),
    st.data(),
)
def test_any_notebook_in_any_layout_has_one_cell_changed(
    before: list[dict[str, Any]], indent: int | str | None, ascii_only: bool, mode: Any, data: st.DataObject
) -> None:
    text = json.dumps({"nbformat": 4, "cells": before, "metadata": {}}, indent=indent, ensure_ascii=ascii_only)
    if mode != "insert" and not before:
        return
    cell = data.draw(st.integers(0 if mode == "insert" else 1, len(before)))
    source = data.draw(sources)
    start, end, new = edited_span(text, CellEdit(mode, cell, source), "n")
    after = json.loads(text[:start] + new + text[end:])["cells"]
    expected = [dict(one) for one in before]
    if mode == "delete":
        del expected[cell - 1]
    elif mode == "insert":
        assert "".join(after[cell].pop("source")) == source
        assert after.pop(cell)["cell_type"] == "code"
    else:
        assert "".join(after[cell - 1].pop("source")) == source
        expected[cell - 1].pop("source")
    assert after == expected


async def test_a_file_of_another_kind_is_refused_before_it_has_to_be_read(bench: Bench) -> None:
    bench.put("a.py", "x = 1\n")
    message = await bench.fails("INVALID_ARGUMENT", "NotebookEdit", notebook_path="a.py", cell=1, new_source="x")
    assert message == "`a.py` is not a notebook (.ipynb); use Edit"
