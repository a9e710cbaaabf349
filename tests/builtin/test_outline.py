"""outline: what a model sees of a file and of a directory, and what hostile files cost."""

from __future__ import annotations

import re
import time
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gripfast.builtin.outlining import Outlines
from gripfast.builtin.session import open_session
from gripfast.builtin.tools import TOOLS
from gripfast.host.files.scope import Scope
from gripfast.host.program import worker
from gripfast.host.program.worker import Workers
from gripfast.outline.definition import Definition, Parsed
from gripfast.outline.folds import Fold
from gripfast.outline.text import SourceText
from gripfast.outline.view import Wanted, collapsed, matching
from searching import call, code, make, text

pytest.importorskip("tree_sitter_python")

BODY = "".join(f"        x = {number}\n" for number in range(20))
BOX = f'''"""Boxes."""
import os

LIMIT = 3


@cached
class Box(
    Base,
):
    """A box.

    More words.
    """

    # Says how large it is.
    def size(self) -> int:
{BODY}
    def open(self, key: str, *, force: bool = False) -> None:
        """Opens it."""
{BODY}

def make(size):
    needle = 1
{BODY}
'''
SEEN = """\
… 1–2
     4	LIMIT = 3
     7	@cached
     8	class Box(
     9	    Base,
    10	):
    11	    \"""A box.
… 13–14
    16	    # Says how large it is.
    17	    def size(self) -> int:
… 18–37
    39	    def open(self, key: str, *, force: bool = False) -> None:
    40	        \"""Opens it.\"""
… 41–60
    63	def make(size):
… 64–84
[11 of 85 lines; name_pattern="make" shows that in full]"""


def test_a_file_is_its_definitions_with_true_numbers_and_folded_bodies(tmp_path: Path) -> None:
    make(tmp_path, {"box.py": BOX})
    assert text(tmp_path, "outline", path="box.py") == SEEN


def shown(answer: str) -> dict[int, str]:
    return {int(row): line for row, line in re.findall(r"(?m)^ *(\d+)\t(.*)$", answer)}


def folds(answer: str) -> list[tuple[int, int]]:
    found = re.findall(r"(?m)^… (\d+)(?:–(\d+))?$", answer)
    return [(int(first), int(last or first)) for first, last in found]


def test_a_line_that_begins_with_a_star_is_code_unless_it_is_a_comments(tmp_path: Path) -> None:
    body = "".join(f"fn f{i}(a: &mut i32)\n{{\n{'    *a = a_long_name(1, 2, 3);' * 3}\n}}\n" for i in range(20))
    make(tmp_path, {"a.rs": f"{body}/** Says\n * much\n */\nimpl A\n{{\n    fn g() {{\n        go();\n    }}\n}}\n"})
    answer = text(tmp_path, "outline", path="a.rs")
    every = [*((row, row + 2) for row in range(2, 82, 4)), (87, 88), (89, 89)]
    assert folds(answer) == every  # none for the `{` of row 85
    assert shown(answer)[81] == "/** Says"


def test_with_a_pattern_only_what_matches_is_shown_in_full_and_the_heads_around_it(tmp_path: Path) -> None:
    make(tmp_path, {"box.py": BOX})
    answer = text(tmp_path, "outline", path="box.py", name_pattern=r"Box\.open")
    assert set(shown(answer)) == {*range(7, 11), *range(39, 61)}  # the class's own head, and the method
    assert folds(answer) == [(1, 4), (11, 37), (63, 84)]
    assert answer.endswith('[26 of 85 lines; 1 match; outline(path="box.py") shows the other definitions]')


def test_the_comment_above_belongs_to_what_matches(tmp_path: Path) -> None:
    make(tmp_path, {"box.py": BOX})
    assert 16 in shown(text(tmp_path, "outline", path="box.py", name_pattern="size"))


def test_a_definition_with_a_matching_line_is_shown_in_full(tmp_path: Path) -> None:
    make(tmp_path, {"box.py": BOX})
    rows = shown(text(tmp_path, "outline", path="box.py", content_pattern="needle"))
    assert set(rows) == set(range(63, 85))


def test_with_both_patterns_a_match_of_either_is_enough(tmp_path: Path) -> None:
    make(tmp_path, {"box.py": BOX})
    rows = shown(text(tmp_path, "outline", path="box.py", name_pattern="size", content_pattern="needle"))
    assert rows[17] == "    def size(self) -> int:" and rows[64] == "    needle = 1" and 39 not in rows


def test_a_line_outside_every_definition_is_shown_with_its_neighbours(tmp_path: Path) -> None:
    make(tmp_path, {"box.py": BOX})
    answer = text(tmp_path, "outline", path="box.py", content_pattern="^import os")
    assert set(shown(answer)) == {1, 2, 3, 4} and "1 match;" in answer


def test_a_line_between_the_methods_of_a_large_class_is_shown_with_its_neighbours_and_the_class(
    tmp_path: Path,
) -> None:
    make(
        tmp_path,
        {"a.py": f"class Big:\n    def first(self):\n{BODY * 3}\n    needle = 1\n\n    def last(self): pass\n"},
    )
    rows = set(shown(text(tmp_path, "outline", path="a.py", content_pattern="needle")))
    assert rows == {1, 62, 63, 64, 65, 66}


def test_a_pattern_that_matches_nothing_is_answered_with_similar_names(tmp_path: Path) -> None:
    make(tmp_path, {"box.py": BOX})
    assert text(tmp_path, "outline", path="box.py", name_pattern="Box.opne") == (
        "[nothing in `box.py` matches 'Box.opne'; similar names: Box.open, Box.size; "
        'outline(path="box.py") shows what it defines]'
    )
    assert "similar" not in text(tmp_path, "outline", path="box.py", name_pattern="zzz", content_pattern="xyz")


@pytest.mark.parametrize(
    ("source", "call_", "rows"),
    [
        ("def run():\n{body}\ndef rerun():\n    pass\n", 'name_pattern="^run$"', 21),
        ("def run():\n{body}\ndef go():\n    pass\n", 'name_pattern="run"', 21),
    ],
)
def test_the_call_that_a_note_proposes_shows_that_definition_and_no_other(
    tmp_path: Path, source: str, call_: str, rows: int
) -> None:
    make(tmp_path, {"a.py": source.replace("{body}", BODY) + "\n" * 20})
    answer = text(tmp_path, "outline", path="a.py")
    assert call_ in answer
    assert len(shown(text(tmp_path, "outline", path="a.py", name_pattern=call_.split('"')[1]))) == rows


def test_a_proposed_pattern_is_a_valid_regex_whatever_the_name(tmp_path: Path) -> None:
    body = "".join(f"    go({n});\n" for n in range(40))
    make(tmp_path, {"a.ts": f"class Box {{\n  *[Symbol.iterator](a) {{\n{body}  }}\n}}\n"})
    proposed = re.findall(r'name_pattern="(.*?)"', text(tmp_path, "outline", path="a.ts"))
    assert proposed == ["Box..Symbol.iterator."]
    assert 20 in shown(text(tmp_path, "outline", path="a.ts", name_pattern=proposed[0]))


@pytest.mark.parametrize(("argument", "pattern"), [("name_pattern", "("), ("content_pattern", "(")])
def test_a_bad_pattern_is_told(tmp_path: Path, argument: str, pattern: str) -> None:
    make(tmp_path, {"box.py": BOX})
    assert code(tmp_path, "outline", path="box.py", **{argument: pattern}) == "INVALID_REGEX"


def test_a_pattern_that_explodes_is_stopped(tmp_path: Path) -> None:
    make(tmp_path, {"a.py": f"def {'a' * 190}(): pass\n"})
    began = time.monotonic()
    message = call(tmp_path, "outline", path="a.py", name_pattern="(a|aa|aaa)+$(?<=b)")
    assert time.monotonic() - began < 60
    assert message.error is None or message.error.code == "TIMEOUT"


def test_what_was_outlined_may_be_edited(tmp_path: Path) -> None:
    make(tmp_path, {"box.py": BOX})

    async def both() -> None:
        async with open_session(Scope.workspace(tmp_path)) as session:
            await session.call("outline", {"path": "box.py"})
            edited = await session.call(
                "Edit", {"file_path": "box.py", "old_string": "LIMIT = 3", "new_string": "LIMIT = 4"}
            )
            assert edited.error is None, edited.content

    anyio.run(both)


def test_a_small_file_is_shown_whole(tmp_path: Path) -> None:
    make(tmp_path, {"a.py": "import os\n\ndef run():\n    return 1\n"})
    assert set(shown(text(tmp_path, "outline", path="a.py"))) == {1, 2, 3, 4}


def test_an_empty_file_is_said_to_be_empty(tmp_path: Path) -> None:
    make(tmp_path, {"a.py": ""})
    assert text(tmp_path, "outline", path="a.py") == "[`a.py` is empty]"


def test_the_definitions_inside_a_large_function_are_shown(tmp_path: Path) -> None:
    inner = "".join(f"    def inner{n}():\n{BODY}\n" for n in range(10))
    make(tmp_path, {"a.py": f"def outer():\n{inner}", "b.py": f"def outer():\n    def inner():\n{BODY}" + BODY * 2})
    assert "inner7" in text(tmp_path, "outline", path="a.py")
    assert "def inner" not in text(tmp_path, "outline", path="b.py")


def test_the_limit_folds_inner_definitions_before_it_cuts(tmp_path: Path) -> None:
    methods = "".join(f"    def m{n}(self):\n        a = 1\n        return a\n\n" for n in range(30))
    make(tmp_path, {"a.py": "".join(f"class C{n}:\n{methods}\n" for n in range(4))})
    answer = text(tmp_path, "outline", path="a.py", limit=20)
    ends = [(122 * n + 2, 122 * n + 120) for n in range(4)]
    assert list(shown(answer).values()) == [f"class C{n}: … {a}–{b}" for n, (a, b) in enumerate(ends)]
    assert "inner definitions are folded" in answer
    cut = text(tmp_path, "outline", path="a.py", limit=3)
    assert list(shown(cut)) == [1, 123, 245]
    assert "cut before line 367: use a larger limit or a narrower pattern" in cut and "Read(" not in cut


def test_a_long_file_keeps_the_names_of_its_methods_and_gives_up_all_else_for_them(tmp_path: Path) -> None:
    method = "    def {}(\n        self,\n        a,\n    ):\n        a = 1\n        return a\n\n"
    methods = "".join(method.format(f"m{n}") for n in range(40)) + method.format("large").replace(
        "return", "a\n        " * 9
    )
    make(tmp_path, {"a.py": f"class Big:\n{methods}"})
    names = ["class Big:", *(f"    def m{n}(" for n in range(40)), "    def large("]
    marked = text(tmp_path, "outline", path="a.py", limit=100)
    assert list(shown(marked).values()) == names and len(folds(marked)) == 41
    short = text(tmp_path, "outline", path="a.py", limit=60)
    ends = [" … 2–296", *(f" … {7 * n + 3}–{7 * n + 7}" for n in range(40)), " … 283–296"]
    assert list(shown(short).values()) == [f"{name}{end}" for name, end in zip(names, ends, strict=True)]
    assert "[other folds are not marked to keep to the limit; 42 of " in short
    assert short.endswith('name_pattern="Big.large" shows that in full]')


def test_a_name_that_comes_last_is_shown(tmp_path: Path) -> None:
    members = "".join(f"    int member{n};\n" for n in range(40))
    make(tmp_path, {"a.c": f"typedef struct {{\n{members}}} box_t;\n"})
    assert list(shown(text(tmp_path, "outline", path="a.c")).values()) == ["typedef struct {", "} box_t;"]


# --- broken, unknown, other formats ---


def test_of_broken_code_what_parses_is_outlined_and_the_rest_is_named(tmp_path: Path) -> None:
    make(tmp_path, {"a.py": f"def good(a):\n{BODY}\ndef (:\n    )\n\n\ndef other(b):\n{BODY}"})
    answer = text(tmp_path, "outline", path="a.py")
    rows = shown(answer)
    assert rows[1] == "def good(a):" and rows[27] == "def other(b):"
    assert "does not parse at line" in answer


def test_code_that_does_not_parse_at_all_is_never_empty(tmp_path: Path) -> None:
    make(tmp_path, {"a.java": "]] }} (( \n" * 100})
    answer = text(tmp_path, "outline", path="a.java")
    assert shown(answer) and "does not parse" in answer


def test_an_unknown_language_is_folded_by_indentation_and_said_so(tmp_path: Path) -> None:
    make(
        tmp_path, {"a.xyz": "".join(f"thing {n}\n  inside of it\n  there is more\n  and more\n\n" for n in range(20))}
    )
    answer = text(tmp_path, "outline", path="a.xyz")
    assert list(shown(answer).values()) == [f"thing {n}" for n in range(20)]
    assert "in no language that outline knows; folded by indentation" in answer


def test_a_missing_grammar_is_a_clear_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, {"a.kt": "".join(f"fun f{n}() {{\n  a\n  b\n}}\n" for n in range(20))})
    monkeypatch.setattr(worker, "installed_places", lambda: list[str]())
    answer = text(tmp_path, "outline", path="a.kt")
    assert "Kotlin needs tree-sitter-kotlin: pip install 'gripfast[outline]'" in answer
    assert shown(answer)[1] == "fun f0() {"


@pytest.mark.parametrize(
    ("name", "content", "seen"),
    [
        ("a.md", "# A\n\nwords\n\n## B\n\n" + "x\n\n" * 40, ["# A", "## B"]),
        (
            "a.json",
            '{\n  "a": {\n' + '    "x": 1,\n' * 40 + '    "y": 2\n  },\n  "b": 1\n}\n',
            ['  "a": {', '  "b": 1'],
        ),
        ("a.yaml", "a:\n  b:\n" + "    - x\n" * 40 + "c: 1\n", ["a:", "  b:", "c: 1"]),
        ("a.toml", "[a]\n" + "x = 1\n" * 40 + "[b.c]\ny = 1\n", ["[a]", "[b.c]"]),
        (
            "a.lisp",
            "(defun run (x)\n" + "  (go x)\n" * 40 + ")\n(defvar *y* 1)\n",
            ["(defun run (x)", "(defvar *y* 1)"],
        ),
    ],
)
def test_other_formats_have_the_same_view(tmp_path: Path, name: str, content: str, seen: list[str]) -> None:
    make(tmp_path, {name: content})
    lines = list(shown(text(tmp_path, "outline", path=name)).values())
    assert [line for line in seen if line not in lines] == []
    assert len(lines) < 30


def test_a_notebook_is_shown_by_cells_with_the_numbers_that_read_gives(tmp_path: Path) -> None:
    cells = [
        f'{{"cell_type": "code", "source": ["def f{n}():\\n", "    return {n}\\n", "a\\n", "b\\n", "c\\n"]}}'
        for n in range(12)
    ]
    make(tmp_path, {"a.ipynb": f'{{"cells": [{", ".join(cells)}]}}'})
    answer = shown(text(tmp_path, "outline", path="a.ipynb"))
    read = shown(text(tmp_path, "Read", file_path="a.ipynb"))
    assert answer[7] == "<cell 2 code>" and answer[8] == "def f1():"
    assert all(read[row] == line for row, line in answer.items())


# --- hostile ---


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.py", "(" * 50_000),
        ("a.json", "[" * 50_000),
        ("a.c", "void f() " + "{" * 50_000),
        ("a.js", "f(" * 50_000),
        ("a.html", "<div>" * 50_000),
        ("a.lisp", "(" * 50_000),
        ("a.md", "> " * 50_000),
        ("a.yaml", "- " * 20_000),
    ],
)
def test_deep_nesting_is_answered_and_the_server_lives(tmp_path: Path, name: str, content: str) -> None:
    make(tmp_path, {name: content + "\n", "b.py": BOX})

    async def both() -> tuple[str, str]:
        async with open_session(Scope.workspace(tmp_path)) as session:
            hostile = await session.call("outline", {"path": name})
            return hostile.text, (await session.call("outline", {"path": "b.py"})).text

    began = time.monotonic()
    hostile, good = anyio.run(both)
    assert time.monotonic() - began < 60
    assert hostile and len(hostile) < 70_000
    assert "class Box(" in good


def test_a_hundred_megabytes_are_refused_and_nine_are_not_parsed(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            "a.py": b"x = '%s'\n" % (b"x" * 1000) * 100_000,
            "b.py": b"def f():\n    return '%s'\n" % (b"x" * 200) * 42_000,
        },
    )
    assert code(tmp_path, "outline", path="a.py") == "SIZE_LIMIT_EXCEEDED"
    answer = text(tmp_path, "outline", path="b.py")
    assert "too large to be parsed" in answer and len(answer) < 70_000


def test_millions_of_short_lines_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    make(tmp_path, {"a.txt": b"a\n" * 600_000})
    message = call(tmp_path, "outline", path="a.txt")
    assert message.error is not None and message.error.code == "SIZE_LIMIT_EXCEEDED"
    assert "600000 lines; outline takes at most 500000" in message.text


def test_a_view_of_more_definitions_than_fit_ends_with_the_call_that_shows_the_rest() -> None:
    count = 100_000
    found = Parsed(tuple(Definition("function", f"f{n}", n, n, n, n) for n in range(1, count + 1)))
    view = collapsed(SourceText(["x"] * count), found, limit=50)
    assert view.rows == tuple(range(1, 51)) and view.cut == 51


def test_nuls_are_binary_and_odd_bytes_are_shown(tmp_path: Path) -> None:
    make(tmp_path, {"a.py": b"def f():\n\0\n", "b.py": b"# caf\xe9\n" + BOX.encode(), "c.py": BOX.encode("utf-16")})
    assert code(tmp_path, "outline", path="a.py") == "BINARY_NOT_SUPPORTED"
    odd = text(tmp_path, "outline", path="b.py")
    assert shown(odd)[18] == "    def size(self) -> int:" and "not UTF-8" in odd
    assert shown(text(tmp_path, "outline", path="c.py"))[17] == "    def size(self) -> int:"


HOSTILE = """
import ctypes, time
def hang(order, data):
    time.sleep(1000)
def crash(order, data):
    ctypes.string_at(0)
"""


@pytest.mark.parametrize(
    ("function", "said"), [("hang", "it took too long"), ("crash", "the process that reads it crashed")]
)
def test_a_grammar_that_hangs_or_crashes_is_said_and_the_file_is_folded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, said: str
) -> None:
    make(tmp_path, {"hostile_grammar.py": HOSTILE, "project/box.py": BOX})
    monkeypatch.setattr(worker, "_OWN", str(tmp_path))
    outlines = Outlines(Workers(f"hostile_grammar:{function}", seconds=0.5))

    async def once() -> str:
        scope = Scope.workspace(tmp_path / "project")
        async with open_session(scope, overrides={"outlines": lambda: outlines}) as session:
            return (await session.call("outline", {"path": "box.py"})).text

    answer = anyio.run(once)
    assert f"the Python could not be parsed: {said}; folded by indentation" in answer
    assert shown(answer)[63] == "def make(size):"


# --- directories ---


def test_a_directory_is_what_its_files_define(tmp_path: Path) -> None:
    make(tmp_path, {"src/box.py": BOX, "src/deep/b.go": "package b\n\nfunc Run() {\n}\n", "README.md": "# Title\n"})
    assert text(tmp_path, "outline", path=".").splitlines() == [
        "README.md (1 line)",
        "     1	# Title",
        "src/box.py (85 lines)",
        "     8	class Box(",
        "    63	def make(size):",
        "src/deep/b.go (4 lines)",
        "     3	func Run() {",
        "[3 files]",
    ]


def test_a_map_shows_the_line_with_the_name_and_what_parses_of_broken_files(tmp_path: Path) -> None:
    broken = "def ok():\n    return 1\n\n\ndef bad(:\n    x = = 3\n\n\nclass Fine:\n    def m(self):\n        pass\n"
    make(tmp_path, {"a.java": '@SuppressWarnings("x")\n@Other\npublic class Box {\n}\n', "bad.py": broken})
    assert text(tmp_path, "outline", path=".").splitlines()[:-1] == [
        "a.java (4 lines)",
        "     3	public class Box {",
        "bad.py (11 lines)",
        "     1	def ok():",
        "     9	class Fine:",
    ]
    assert text(tmp_path, "outline", path="bad.py").endswith("[does not parse at lines 5–6]")
    assert shown(text(tmp_path, "outline", path=".", name_pattern="Box")) == {3: "public class Box {"}


def test_the_deepest_directories_are_folded_first(tmp_path: Path) -> None:
    files = {f"a/b/c/f{n}.py": "def deep(): pass\n" for n in range(50)}
    make(tmp_path, {**files, "top.py": "def top(): pass\n", "a/mid.py": "def mid(): pass\n"})
    answer = text(tmp_path, "outline", path=".", limit=20)
    assert "def top" in answer and "def mid" in answer
    assert "a/b/c/ … 50 files" in answer
    assert answer.endswith('[52 files; 50 in folded directories: outline(path="a/b/c")]')


def test_a_large_directory_is_named_by_no_call_to_itself(tmp_path: Path) -> None:
    make(tmp_path, {**{f"many/f{n:03}.txt": "" for n in range(60)}, "top.py": ""})
    proposed = re.compile(r'outline\(path="([^"]*)"(?:, limit=(\d+))?\)')
    asked, answer = (".", "20"), text(tmp_path, "outline", path=".", limit=20)
    seen: set[tuple[str, str]] = set()
    while found := proposed.search(answer):
        assert asked not in seen
        seen.add(asked)
        asked = found[1], found[2] or "20"
        answer = text(tmp_path, "outline", path=asked[0], limit=int(asked[1]))
    assert asked == ("many", "151")
    assert "many/f059.txt" in answer and answer.endswith("\n[60 files]")


def test_ignored_files_are_left_out(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "built/\n", "built/a.py": "def a(): pass\n", "b.py": "def b(): pass\n"})
    assert "built" not in text(tmp_path, "outline", path=".")


def test_denied_files_are_left_out_of_a_map(tmp_path: Path) -> None:
    make(tmp_path, {"secret/a.py": "def a(): pass\n", "b.py": "def b(): pass\n"})
    answer = text(Scope.workspace(tmp_path, deny=["secret/**"]), "outline", path=".")
    assert "def b" in answer and "def a" not in answer


def test_a_pattern_on_a_directory_finds_definitions_in_all_files(tmp_path: Path) -> None:
    make(tmp_path, {"a/box.py": BOX, "b/other.py": "class Other:\n    def open(self):\n        needle()\n"})
    answer = text(tmp_path, "outline", path=".", name_pattern=r"\.open$")
    assert shown(answer) == {
        39: "Box.open: def open(self, key: str, *, force: bool = False) -> None:",
        2: "Other.open: def open(self):",
    }
    assert "[2 definitions match;" in answer
    assert "[1 definition matches;" in text(tmp_path, "outline", path=".", name_pattern="^make$")
    assert "a/box.py" in text(tmp_path, "outline", path=".", content_pattern="needle =")
    assert "no definition matches" in text(tmp_path, "outline", path=".", name_pattern="absent")


def test_a_changed_file_is_outlined_anew(tmp_path: Path) -> None:
    make(tmp_path, {"a.py": "def before(): pass\n"})

    async def twice() -> tuple[str, str]:
        async with open_session(Scope.workspace(tmp_path)) as session:
            first = await session.call("outline", {"path": "."})
            make(tmp_path, {"a.py": "def after1(): pass\n"})
            return first.text, (await session.call("outline", {"path": "."})).text

    first, second = anyio.run(twice)
    assert "before" in first and "after1" in second


def test_a_place_outside_the_scope_is_refused(tmp_path: Path) -> None:
    make(tmp_path, {"in/a.py": BOX, "out/b.py": BOX})
    scope = Scope.workspace(tmp_path / "in")
    assert code(scope, "outline", path=str(tmp_path / "out")) == "SANDBOX_VIOLATION"
    assert code(scope, "outline", path="../out/b.py") == "SANDBOX_VIOLATION"


# --- the hint of Read ---


def test_a_long_read_of_source_ends_with_a_hint_where_outline_is_offered(tmp_path: Path) -> None:
    make(tmp_path, {"a.py": "x = 1\n" * 3000, "a.log": "x\n" * 3000, "b.py": "x = 1\n"})
    assert text(tmp_path, "Read", file_path="a.py").endswith('\n[outline(path="a.py") shows what it defines]')
    assert "outline" not in text(tmp_path, "Read", file_path="a.log")
    assert "outline" not in text(tmp_path, "Read", file_path="b.py")

    async def alone() -> str:
        tools = [tool for tool in TOOLS if tool.name == "Read"]
        async with open_session(Scope.workspace(tmp_path), builtin=tools) as session:
            return (await session.call("Read", {"file_path": "a.py"})).text

    assert "outline" not in anyio.run(alone)


# --- whatever is defined, every row is shown or folded, and none twice ---


@st.composite
def definitions(draw: st.DrawFn) -> tuple[list[str], Parsed]:
    total = draw(st.integers(31, 120))
    kinds = ["", "x", "    y", "{", "}", "# words", "@idle"]
    lines = draw(st.lists(st.sampled_from(kinds), min_size=total, max_size=total))
    found: list[Definition] = []
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(1, total))
        end = draw(st.integers(start, total))
        head = draw(st.integers(start, end))
        kind = draw(st.sampled_from(["function", "class", "constant"]))
        found.append(Definition(kind, "n", start, start, head, end, draw(st.integers(0, 3))))
    return lines, Parsed(tuple(sorted(found, key=lambda each: (each.start, -each.end))))


@settings(deadline=None)
@given(definitions(), st.integers(1, 200), st.lists(st.integers(1, 31), max_size=3))
def test_folds_never_overlap_nor_hide_a_shown_row_and_cover_all_other_code(
    given_: tuple[list[str], Parsed], limit: int, hits: list[int]
) -> None:
    lines, found = given_
    source = SourceText(lines, ("#",), idle=("@idle",))
    view = matching(source, found, Wanted(hits=hits), limit) if hits else collapsed(source, found, limit)
    covered: list[int] = []
    for row in view.rows:
        covered += [row] if isinstance(row, int) else [] if view.beside else range(row.first, row.last + 1)
    assert covered == sorted(set(covered)) and all(1 <= row <= len(lines) for row in covered)
    assert len([row for row in view.rows if isinstance(row, int) or not view.beside]) <= limit
    if view.cut is None and not view.beside:
        missing = set(range(1, len(lines) + 1)) - set(covered)
        assert {lines[row - 1] for row in missing} <= {"", "# words", "{", "@idle"}


@settings(deadline=None)
@given(definitions(), st.integers(1, 200))
def test_no_fold_runs_past_the_end_of_a_shown_definition(given_: tuple[list[str], Parsed], limit: int) -> None:
    lines, found = given_
    view = collapsed(SourceText(lines, ("#",)), found, limit)
    ends = [each.end for each in found.definitions if each.kind == "function" and not each.depth]
    past = [
        (fold, end) for fold in view.rows if isinstance(fold, Fold) for end in ends if fold.first <= end < fold.last
    ]
    assert not past or view.beside


CODE = (
    """\
import a;

/**
 * First.
 */
class Box {
    @Override
    public int size() {
        return 1;
    }

    private int x = 3;
    static { go(); }

    /* What it does,
       in words. */
    void open() {
    }
}

run(1);
run(2);

// A comment.

class Other { }
// the end
"""
    + "\n" * 30
)


def test_a_fold_ends_with_its_definition_and_what_follows_has_its_own(tmp_path: Path) -> None:
    make(tmp_path, {"a.java": CODE + "x();\n" * 40})
    answer = text(tmp_path, "outline", path="a.java")
    assert answer.splitlines()[:-1] == [
        "… 1",
        "     4	 * First.",
        "     6	class Box {",
        "     8	    public int size() {",
        "… 9–10",
        "… 12–13",
        "    15	    /* What it does,",
        "    17	    void open() {",
        "… 18",
        "… 19",
        "… 21–22",
        "    26	class Other { }",
        "… 27–97",
    ]


@pytest.mark.parametrize(
    "content",
    ['{"cells": ' + "[" * 2000 + "]" * 2000 + "}", '{"cells": [], "nbformat": 4, "metadata": {}}', "", "not JSON\n"],
    ids=["too deep", "no cells", "empty", "no notebook"],
)
def test_a_notebook_without_cells_is_shown_as_what_it_is(content: str, tmp_path: Path) -> None:
    make(tmp_path, {"a.ipynb": content})
    answer = text(tmp_path, "outline", path="a.ipynb")
    assert "INTERNAL" not in answer and answer.strip()
