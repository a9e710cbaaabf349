"""Plans of patches: where chunks go, what is refused, and files seen through the hunks before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.errors import ToolError
from gripfast.patch.grammar import parse
from gripfast.patch.plan import OldFile, PatchPlan, plan


class Disk:
    """Files in memory."""

    def __init__(self, **files: str | bytes) -> None:
        self.files = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}

    def read(self, place: str) -> OldFile | None:
        return _File(self.files[place]) if place in self.files else None

    def plan(self, *hunks: str) -> PatchPlan:
        patch = parse("*** Begin Patch\n" + "\n".join(hunks) + "\n*** End Patch\n")
        return plan(patch, {path: path.removeprefix("./") for path in patch.paths()}, self.read)

    def apply(self, *hunks: str) -> dict[str, str]:
        planned = self.plan(*hunks)
        assert not planned.failures, [str(failure) for failure in planned.failures]
        after = dict(self.files)
        for place, file in planned.files.items():
            after.pop(place, None)
            if file.exists:
                after[place] = file.text()
        return {place: data.decode() for place, data in after.items()}

    def fails(self, *hunks: str) -> list[tuple[str, str]]:
        return [(one.error.code, str(one)) for one in self.plan(*hunks).failures]


class _File:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def body(self) -> bytes:
        return self._data


def changed(content: str, chunk: str) -> str:
    return Disk(f=content).apply(f"*** Update File: f\n{chunk}")["f"]


def refused(content: str, chunk: str) -> list[tuple[str, str]]:
    return Disk(f=content).fails(f"*** Update File: f\n{chunk}")


# --- the place of a chunk ---


@pytest.mark.parametrize(
    ("content", "chunk", "after"),
    [
        ("a\nb\nc\n", "@@\n a\n-b\n+B\n", "a\nB\nc\n"),
        ("a  \nb\t\nc\n", "@@\n a\n-b\n+B\n", "a  \nB\nc\n"),
        ("  a\n  b\n", "@@\n a\n-b\n+B\n", "  a\n  B\n"),
        ("if x:\n\ta\n", "@@\n if x:\n-    a\n+    b\n", "if x:\n\tb\n"),
        ("a “b” – c\n", '@@\n-a "b" - c\n+d\n', "d\n"),
        ("a\nb\n", "@@\n a\n-b\n+B\n\n", "a\nB\n"),
        ("a\nb\na\n", "@@\n-a\n+z\n*** End of File", "a\nb\nz\n"),
        ("a\nb\n", "@@\n+c\n+d", "a\nb\nc\nd\n"),
        ("a\nb\nc\n", "@@ a\n+x\n@@\n-c\n+C", "a\nx\nb\nC\n"),
        ("a\nb\n", "@@ a\n a\n-b\n+B", "a\nB\n"),
        ("class A(B):\n  x\nclass C:\n  x\n", "@@ class C\n-  x\n+  y", "class A(B):\n  x\nclass C:\n  y\n"),
        ("x\na\nx\n", "@@\n-a\n+b\n@@\n-x\n+y", "x\nb\ny\n"),
        ("x\na\nx\n", "@@\n-x\n+y\n@@\n-a\n+b", "y\nb\nx\n"),
        ("x\nx\n", "@@\n-x\n+y\n@@\n-x\n+z", "y\nz\n"),
        ("a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A", "A\nB\n"),
        ("h:\n  a\nc:\n  b\n", "@@ c:\n-  b\n+  B\n@@ h:\n-  a\n+  A", "h:\n  A\nc:\n  B\n"),
        ("h:\n  a\n  b\n", "@@ h:\n-  a\n+  A\n@@ h:\n-  b\n+  B", "h:\n  A\n  B\n"),
        ("a\nb\n", "@@\n      1\ta\n-     2\tb\n+     2\tB", "a\nB\n"),
        ("a\nb\n", "@@\n-     2\tb\n+B", "a\nB\n"),
        ("a\n", "@@\n-a", ""),
        ("", "@@\n+a", "a\n"),
    ],
    ids=range(21),
)  # fmt: skip
def test_a_chunk_goes_where_it_belongs(content: str, chunk: str, after: str) -> None:
    assert changed(content, chunk) == after


def test_a_header_above_the_chunk_before_is_said_to_be_there() -> None:
    ((code, message),) = refused("h:\n  a\n  a\nc:\n  b\n", "@@ c:\n-  b\n+  B\n@@ h:\n-  a\n+  A")
    assert code == "NO_MATCH"
    assert "the `@@` header `h:` is at line 1, above the chunk before it; chunks go from top to bottom" in message


@pytest.mark.parametrize(
    ("content", "after"),
    [
        ("a\r\nb\r\n", "a\r\nX\r\nY\r\n"),
        ("a\nb", "a\nX\nY"),
        ("\ta\nb\n\n", "\ta\nX\nY\n\n"),
        ("a\r\nb\nc\r\n", "a\r\nX\r\nY\r\nc\r\n"),
    ],
)
def test_line_ends_and_the_final_newline_are_the_files_own(content: str, after: str) -> None:
    assert changed(content, "@@\n-b\n+X\n+Y") == after


def test_deleting_the_last_line_of_a_file_without_a_final_newline_leaves_none() -> None:
    assert changed("a\nb", "@@\n-b") == "a"
    assert changed("a\nb", "@@\n+c") == "a\nb\nc"


def test_a_lone_carriage_return_ends_a_line_where_the_patch_says_so() -> None:
    assert changed("a\rb\nc\n", "@@\n a\n-b\n+B") == "a\rB\nc\n"


def test_a_context_that_fits_several_places_is_refused_with_its_lines() -> None:
    ((code, message),) = refused("x\na\nx\n", "@@\n-x\n+y")
    assert code == "NOT_UNIQUE" and "2 places, at lines 1, 3" in message and "line 3 of the patch" in message


def test_a_header_makes_a_context_unique_but_not_within_its_own_block() -> None:
    content = "def f():\n    x\n    x\n\ndef g():\n    x\n"
    assert changed(content, "@@ def g():\n-    x\n+    y").endswith("def g():\n    y\n")
    ((code, message),) = refused(content, "@@ def f():\n-    x\n+    y")
    assert code == "NOT_UNIQUE" and "lines 2, 3" in message


def test_stacked_headers_each_narrow() -> None:
    content = "class A:\n  def f():\n    x\nclass B:\n  def f():\n    x\n"
    after = changed(content, "@@ class B:\n@@ def f():\n-    x\n+    y")
    assert after == content[: -len("x\n")] + "y\n"


def test_the_brackets_of_a_block_do_not_end_it() -> None:
    content = "int f(\n  int a\n)\n{\n  x;\n}\nint g()\n{\n  x;\n}\n"
    assert changed(content, "@@ int f(\n-  x;\n+  y;") == content.replace("x;", "y;", 1)


def test_lines_only_added_below_a_header_that_occurs_twice_are_refused() -> None:
    ((code, message),) = refused("a\nb\na\n", "@@ a\n+x")
    assert code == "NOT_UNIQUE" and "header fits 2 places, at lines 1, 3" in message


def test_line_numbers_that_are_not_the_files_own_are_text() -> None:
    ((code, _),) = refused("a\nb\n", "@@\n-     7\tb\n+B")
    assert code == "NO_MATCH"


def test_numbers_on_some_added_lines_only_are_refused() -> None:
    ((code, _),) = refused("a\nb\n", "@@\n-     2\tb\n+     2\tB\n+C")
    assert code == "NO_MATCH"


def test_lines_whose_indentation_nobody_can_tell_are_refused() -> None:
    ((code, message),) = refused("def f():\n    if a:\n        b()\n", "@@\n def f():\n if a:\n-b()\n+b()\n+c()")
    assert code == "NO_MATCH" and "     3|        b()" in message


def test_every_failing_chunk_of_every_hunk_is_told_with_its_nearest_place() -> None:
    disk = Disk(a="first = one\nsecond = two\n", b="x\n")
    failures = disk.fails(
        "*** Update File: a\n@@\n-first = ONE\n+1\n@@\n-second = TWO\n+2",
        "*** Update File: missing\n@@\n-x\n+y",
        "*** Update File: b\n@@ nowhere\n-x\n+y",
        "*** Delete File: gone",
    )
    assert [code for code, _ in failures] == ["NO_MATCH", "NO_MATCH", "NOT_FOUND", "NO_MATCH", "NOT_FOUND"]
    messages = [message for _, message in failures]
    assert "The nearest is at line 1:\n     1|first = one" in messages[0]
    assert "The nearest is at line 2:\n     2|second = two" in messages[1]
    assert "hunk 3 (Update File: b)" in messages[3] and "the `@@` header `nowhere` is not" in messages[3]


def test_context_keeps_the_files_own_text_where_a_pass_forgave_a_difference() -> None:
    assert changed("a   \n“b”\nc\n", '@@\n a\n "b"\n-c\n+C') == "a   \n“b”\nC\n"


# --- files through the hunks before ---


def test_a_file_may_be_added_moved_and_updated_in_one_patch() -> None:
    after = Disk().apply(
        "*** Add File: a\n+one\n+two",
        "*** Update File: a\n*** Move to: b",
        "*** Update File: ./b\n@@\n-two\n+2",
    )
    assert after == {"b": "one\n2\n"}


def test_two_hunks_on_one_file_see_each_other() -> None:
    after = Disk(a="x\n").apply("*** Update File: a\n@@\n-x\n+y", "*** Update File: a\n@@\n-y\n+z")
    assert after == {"a": "z\n"}


def test_files_change_places() -> None:
    after = Disk(a="A\n", b="B\n").apply(
        "*** Update File: a\n*** Move to: t",
        "*** Update File: b\n*** Move to: a",
        "*** Update File: t\n*** Move to: b",
    )
    assert after == {"a": "B\n", "b": "A\n"}


def test_deleted_and_added_again_is_replaced_in_the_old_ones_ways() -> None:
    assert Disk(a="x\r\n").apply("*** Delete File: a", "*** Add File: a\n+y\n+z") == {"a": "y\r\nz\r\n"}


@pytest.mark.parametrize(
    ("hunks", "fault"),
    [
        (["*** Delete File: a", "*** Update File: a\n@@\n-x\n+y"], "is deleted or moved away by hunk 1"),
        (["*** Add File: n\n+x", "*** Add File: n\n+y"], "is there already, made or changed by hunk 1"),
        (["*** Add File: n\n+x", "*** Update File: a\n*** Move to: n"], "is there already, made by hunk 1"),
        (["*** Delete File: a", "*** Delete File: a"], "is deleted or moved away by hunk 1"),
    ],
)
def test_hunks_that_contradict_each_other_are_refused(hunks: list[str], fault: str) -> None:
    ((_, message),) = Disk(a="x\n").fails(*hunks)
    assert fault in message and "hunk 2" in message


def test_the_splices_of_a_single_hunk_are_those_lines_alone() -> None:
    planned = Disk(a="ä\nb\nc\nd\n").plan("*** Update File: a\n@@\n-b\n+B\n@@\n-d")
    assert planned.files["a"].splices is not None
    assert [(one.start, one.end, one.new) for one in planned.files["a"].splices] == [(3, 5, b"B\n"), (7, 9, b"")]


LINES = st.lists(st.sampled_from(["a", "b", "  c", "d ", "", "é"]), max_size=12)


@given(
    LINES, st.integers(0, 12), st.integers(0, 3), st.lists(st.sampled_from(["x", "y", ""]), max_size=3), st.booleans()
)
def test_a_chunk_applied_is_the_file_with_these_lines_replaced_or_refused(
    lines: list[str], at: int, height: int, new: list[str], final: bool
) -> None:
    """The whole file as context has one place; so the outcome is known."""
    at = min(at, len(lines))
    removed = lines[at : at + height]
    rows = [f" {line}" for line in lines[:at]] + [f"-{line}" for line in removed] + [f"+{line}" for line in new]
    rows += [f" {line}" for line in lines[at + height :]]
    if not any(row[0] in "+-" or row.strip() for row in rows):
        return
    expected = [*lines[:at], *new, *lines[at + height :]]
    end = "\n" if final or not lines or not lines[-1] else ""
    content = "\n".join(lines) + (end if lines else "")
    if not lines:
        end = "\n"
    result = changed(content, "@@\n" + "\n".join(rows))
    assert result == ("\n".join(expected) + end if expected else "")


@given(st.binary(max_size=60), st.text(max_size=80))
def test_no_text_of_a_patch_breaks_the_planner(content: bytes, body: str) -> None:
    try:
        Disk(f=content.decode("utf-8", "replace")).plan("*** Update File: f\n@@\n-" + body)
    except ToolError:
        return
