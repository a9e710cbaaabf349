"""Broken code: what parses is outlined, the rest is said, and no number is wrong."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gripfast.builtin.session import open_session
from gripfast.host.files.scope import Scope
from gripfast.outline.engine import found_in
from gripfast.outline.languages import named
from outline.samples import SAMPLES

pytest.importorskip("tree_sitter_python")

BODY = {
    "Ruby": "    if a\n      go\n    end\n",
    "Java": "        if (a) { go(); }\n",
    "PHP": "        if ($a) { go(); }\n",
}
HEAD = {
    "Ruby": "  def {}(a)\n",
    "Java": "    public int {}(int a) {{\n",
    "PHP": "    public function {}($a)\n    {{\n",
}
END = {"Ruby": "  end\n", "Java": "    }\n", "PHP": "    }\n"}
AROUND = {"Ruby": ("class A\n", "end\n"), "Java": ("class A {\n", "}\n"), "PHP": ("<?php\nclass A {\n", "}\n")}


def method(language: str, name: str, end: str | None = None) -> str:
    return HEAD[language].format(name) + BODY[language] + (END[language] if end is None else end)


@pytest.mark.parametrize("name", AROUND)
def test_a_function_without_an_end_ends_before_the_next_and_hides_nothing(name: str) -> None:
    first, last = AROUND[name]
    source = first + method(name, "one") + method(name, "two", "\n") + method(name, "three") + last
    lines = source.splitlines()
    found = found_in(source.encode(), named(name))
    rows = {each.name: (each.line, each.end) for each in found.definitions}
    begin = [row for row, line in enumerate(lines, 1) if ("(a)" in line and "if" not in line) or "int a" in line]
    begin = begin or [row for row, line in enumerate(lines, 1) if "function" in line]
    assert set(rows) == {"A", "A.one", "A.two", "A.three"}
    assert [rows[f"A.{each}"][0] for each in ("one", "two", "three")] == begin
    assert rows["A.two"][1] == begin[2] - 2 and rows["A"][1] == len(lines)
    assert found.faults == ((rows["A.two"][1], rows["A.two"][1]),)


def test_an_end_too_many_in_ruby_is_said_and_every_method_is_there() -> None:
    source = "class A\n" + method("Ruby", "one", "  end\n  end\n") + method("Ruby", "two") + "end\n"
    found = found_in(source.encode(), named("Ruby"))
    rows = {each.own_name: (each.line, each.end) for each in found.definitions}
    assert rows["one"] == (2, 6) and rows["two"] == (8, 12)
    assert found.faults
    deeper = "class A\n" + method("Ruby", "one", "    end\n  end\n") + method("Ruby", "two") + "end\n"
    found = found_in(deeper.encode(), named("Ruby"))
    assert [(each.name, each.line, each.end) for each in found.definitions] == [
        ("A", 1, 13),
        ("A.one", 2, 7),
        ("A.two", 8, 12),
    ]


def broken(source: str, edits: list[tuple[int, str | None]]) -> str:
    """With lines taken out, and others put in."""
    lines = source.splitlines()
    for at, line in edits:
        if line is None and lines:
            del lines[at % len(lines)]
        elif line is not None:
            lines.insert(at % (len(lines) + 1), line)
    return "\n".join(lines) + "\n"


async def views(root: Path, texts: dict[str, str]) -> dict[str, str]:
    async with open_session(Scope.workspace(root)) as session:
        for name, source in texts.items():
            (root / name).write_text(source, encoding="utf-8")
        return {name: (await session.call("outline", {"path": name})).text for name in texts}


ODD = [
    "}",
    "{",
    "end",
    "  end",
    "(",
    "'",
    '"""',
    "/*",
    "*/",
    "`",
    "def f(",
    "class",
    "    }",
    "<",
    "\\",
    "#if 1",
    "x",
]


@settings(deadline=None, max_examples=6)
@given(st.lists(st.tuples(st.integers(0, 500), st.none() | st.sampled_from(ODD)), min_size=1, max_size=4))
def test_whatever_lines_are_lost_or_put_in_every_number_is_its_lines_own(edits: list[tuple[int, str | None]]) -> None:
    texts = {f"a{named(name).suffixes[0]}": broken(source * 4, edits) for name, source in SAMPLES.items()}
    with TemporaryDirectory() as place:
        answers = anyio.run(views, Path(place).resolve(), texts)
    for name, answer in answers.items():
        lines = texts[name].splitlines()
        last = 0
        for shown in answer.splitlines()[:-1] if answer.endswith("]") else answer.splitlines():
            row = re.match(r" *(\d+)\t(.*?)(?: … (\d+)(?:–(\d+))?)?$", shown)
            fold = re.fullmatch(r"… (\d+)(?:–(\d+))?", shown)
            first = int((row or fold or pytest.fail(f"{name}: {shown}"))[1])
            assert last < first <= len(lines), (name, shown)
            if row:
                assert lines[first - 1].startswith(row[2]), (name, shown)
            last = int((fold and fold[2]) or first)
            beside = int((row and (row[4] or row[3])) or last)
            assert first <= last <= beside <= len(lines), (name, shown)
        assert last > 0, name  # something is shown
