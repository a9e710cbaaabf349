"""Edit, line by line of its contract."""

from __future__ import annotations

import hashlib
import json
import re
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builtin.conftest import Bench
from gripfast.builtin.edit import EditRequest, plan_edit
from gripfast.builtin.session import open_session
from gripfast.builtin.tools import TOOLS
from gripfast.errors import ToolError
from gripfast.host.files.diff import counted, unified, whole_splice
from gripfast.host.files.guard import Identity
from gripfast.host.files.scope import Scope
from gripfast.text.match import Splice, spliced

pytestmark = pytest.mark.anyio


async def opened(bench: Bench, content: str | bytes, name: str = "f.py") -> str:
    bench.put(name, content)
    await bench.ok("Read", file_path=name)
    return name


async def test_an_exact_text_is_replaced_and_the_difference_shown(bench: Bench) -> None:
    name = await opened(bench, "a\nb\nc\nd\ne\nf\ng\n")
    answer = await bench.ok("Edit", file_path=name, old_string="d", new_string="D\nDD")
    assert answer == (
        "edited `f.py`: 1 replacement (exact)\n--- f.py\n+++ f.py\n"
        "@@ -1,7 +1,8 @@\n a\n b\n c\n-d\n+D\n+DD\n e\n f\n g"
    )
    assert bench.bytes_of(name) == b"a\nb\nc\nD\nDD\ne\nf\ng\n"


async def test_the_guard_is_that_of_write(bench: Bench) -> None:
    target = bench.put("f.py", "a\n")
    await bench.fails("NOT_READ", "Edit", file_path="f.py", old_string="a", new_string="b")
    await bench.ok("Read", file_path="f.py")
    target.write_text("a changed\n")
    await bench.fails("CONFLICT", "Edit", file_path="f.py", old_string="a", new_string="b")
    assert bench.bytes_of("f.py") == b"a changed\n"


async def test_not_unique_names_the_lines_and_replace_all_takes_all(bench: Bench) -> None:
    name = await opened(bench, "x aa\ny\nx aaa\n")
    message = await bench.fails("NOT_UNIQUE", "Edit", file_path=name, old_string="aa", new_string="b")
    assert "2 times" in message and "lines 1, 3" in message
    answer = await bench.ok("Edit", file_path=name, old_string="aa", new_string="b", replace_all=True)
    assert "2 replacements (exact)" in answer
    assert bench.bytes_of(name) == b"x b\ny\nx ba\n"


async def test_expected_replacements_must_be_right(bench: Bench) -> None:
    name = await opened(bench, "a a a\n")
    arguments = {"file_path": name, "old_string": "a", "new_string": "b"}
    message = await bench.fails("NOT_UNIQUE", "Edit", **arguments, expected_replacements=2)
    assert "3 times" in message and "expected_replacements is 2: set it to 3 to replace them all" in message
    await bench.ok("Edit", **arguments, expected_replacements=3)
    assert bench.bytes_of(name) == b"b b b\n"


async def test_lines_that_differ_in_indentation_match_and_the_new_ones_are_indented(bench: Bench) -> None:
    name = await opened(bench, "class A:\n\tdef f(self):\n\t\treturn 1  \n\n\tx = 2\n")
    answer = await bench.ok(
        "Edit",
        file_path=name,
        old_string="def f(self):\n    return 1\n",
        new_string="def f(self):\n    y = 1\n\n    return y\n",
    )
    assert "(line_trimmed)" in answer
    assert bench.bytes_of(name) == b"class A:\n\tdef f(self):\n\t\ty = 1\n\n\t\treturn y\n\n\tx = 2\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (
            "    if a:\n        b\n",
            "if a:\n    b",
            "if a:\n    c\nelse:\n    d",
            "    if a:\n        c\n    else:\n        d\n",
        ),
        ("a\n", "    a", "    b", "b\n"),
        ("  a\n  b\n", "      a\n      b", "      a\n        x\n      b", "  a\n    x\n  b\n"),
        ("\ta\r\n\tb\r\n", "a\nb", "a\nc\nb", "\ta\r\n\tc\r\n\tb\r\n"),
        ("  a\n  b\n  c\n", "a\nb\n", "", "  c\n"),
        ("  a\n  b", "a\nb\n", "x\n", "  x\n"),
    ],
)
async def test_reindenting(bench: Bench, before: str, old: str, new: str, after: str) -> None:
    name = await opened(bench, before)
    await bench.ok("Edit", file_path=name, old_string=old, new_string=new, match_mode="line_trimmed")
    assert bench.bytes_of(name) == after.encode()


FLAT = "    def f(self):\n        if a:\n            b()\n        return 1\n"


async def test_lines_without_any_indentation_keep_the_files_where_they_stay(bench: Bench) -> None:
    name = await opened(bench, FLAT)
    old = "def f(self):\nif a:\nb()\nreturn 1\n"
    await bench.ok("Edit", file_path=name, old_string=old, new_string="def f(self):\nif a:\nb()\n")
    assert bench.bytes_of(name) == b"    def f(self):\n        if a:\n            b()\n"


async def test_where_nobody_can_tell_how_a_new_line_is_indented_the_exact_text_is_offered(bench: Bench) -> None:
    name = await opened(bench, FLAT)
    old = "def f(self):\nif a:\nb()\nreturn 1\n"
    message = await bench.fails("NO_MATCH", "Edit", file_path=name, old_string=old, new_string=old + "print(2)\n")
    assert FLAT.rstrip("\n") in message and "indent new_string like it" in message
    assert bench.bytes_of(name) == FLAT.encode()


@pytest.mark.parametrize("end", ["", "\n"])
async def test_flat_text_of_as_many_lines_takes_the_files_indentation_line_by_line(bench: Bench, end: str) -> None:
    name = await opened(bench, FLAT)
    old, new = "def f(self):\nif a:\nb()\nreturn 1", "def f(self):\nif a:\nb(7)\nreturn 2"
    await bench.ok("Edit", file_path=name, old_string=old + end, new_string=new + end)
    assert bench.bytes_of(name) == FLAT.replace("b()", "b(7)").replace("return 1", "return 2").encode()


@pytest.mark.parametrize("new", ["def f(self):\nb()\nif a:\nc()", "def f(self):\n  if a:\nb()\nreturn 2"])
async def test_flat_text_whose_lines_moved_or_are_indented_otherwise_is_refused(bench: Bench, new: str) -> None:
    name = await opened(bench, FLAT)
    old = "def f(self):\nif a:\nb()\nreturn 1"
    message = await bench.fails("NO_MATCH", "Edit", file_path=name, old_string=old, new_string=new)
    assert "indent new_string like it" in message


async def test_trimmed_lines_must_be_unique_and_exact_is_never_loose(bench: Bench) -> None:
    name = await opened(bench, "  a\n  b\n    a\n    b\n")
    message = await bench.fails("NOT_UNIQUE", "Edit", file_path=name, old_string="a\nb", new_string="c")
    assert "lines 1, 3" in message
    other = await opened(bench, "  a\n  b\n", "g.py")
    await bench.fails("NO_MATCH", "Edit", file_path=other, old_string="a\nb", new_string="c", match_mode="exact")


BLOCK = "def f():\n    one = 1\n    two = 2\n    three = 3\n    return one\n"


async def test_a_block_is_found_by_its_ends_only_when_asked_by_name(bench: Bench) -> None:
    name = await opened(bench, f"x = 0\n{BLOCK}y = 0\n")
    old = BLOCK.replace("two = 2", "two = 22")
    await bench.fails("NO_MATCH", "Edit", file_path=name, old_string=old, new_string="pass\n")
    answer = await bench.ok("Edit", file_path=name, old_string=old, new_string="pass\n", match_mode="block_anchor")
    assert "(block_anchor)" in answer
    assert bench.bytes_of(name) == b"x = 0\npass\ny = 0\n"


async def test_a_block_that_is_not_similar_or_not_unique_is_not_taken(bench: Bench) -> None:
    name = await opened(bench, f"{BLOCK}{BLOCK}")
    old = BLOCK.replace("two", "tvo")
    arguments = {"file_path": name, "new_string": "x\n", "match_mode": "block_anchor"}
    await bench.fails("NOT_UNIQUE", "Edit", **arguments, old_string=old)
    different = "def f():\n    something else entirely\n    return one\n"
    await bench.fails("NO_MATCH", "Edit", **arguments, old_string=different)
    assert bench.bytes_of(name) == f"{BLOCK}{BLOCK}".encode()


async def test_no_match_shows_the_nearest_place_with_its_white_space(bench: Bench) -> None:
    name = await opened(bench, "import os\n\ndef total(x):\n\treturn\u00a0x + 1\r\nlast\n")
    message = await bench.fails(
        "NO_MATCH", "Edit", file_path=name, old_string="def total(x):\n    return x + 2", new_string="y"
    )
    assert "lines 3 to 4" in message
    assert "     3|def total(x):\n     4|→return<U+00A0>x + 1␍" in message
    assert "→ is a tab" in message
    message = await bench.fails("NO_MATCH", "Edit", file_path=name, old_string="qqqq zzzz", new_string="y")
    assert "nor anything like it" in message


async def test_the_nearest_place_of_a_large_block_in_a_large_file_is_found(bench: Bench) -> None:
    lines = [f"    value_{n} = compute({n * 7 % 1000}, mode='{n % 13}')" for n in range(20_000)]
    name = await opened(bench, "\n".join(lines) + "\n")
    old = "\n".join(line.replace("compute", "computed") for line in lines[12_000:12_200])
    message = await bench.fails("NO_MATCH", "Edit", file_path=name, old_string=old, new_string="x")
    assert "lines 12001 to 12200" in message
    old = "\n".join([*lines[500:650], "a line that is not there", *lines[650:700]])
    message = await bench.fails("NO_MATCH", "Edit", file_path=name, old_string=old, new_string="x")
    assert "lines 501 to 701" in message
    arguments = {"file_path": name, "new_string": "x", "match_mode": "block_anchor"}
    assert "block_anchor" in await bench.ok("Edit", **arguments, old_string=old)


async def test_a_file_of_lines_that_are_all_alike_does_not_stall_the_report(bench: Bench) -> None:
    name = await opened(bench, "".join(f"{n:0190d} the same words in each line\n" for n in range(20_000)))
    started = time.monotonic()
    old = "x" + "0" * 189 + " the same words in each line, nearly\n"
    await bench.fails("NO_MATCH", "Edit", file_path=name, old_string=old * 3, new_string="x")
    assert time.monotonic() - started < 60


async def test_the_same_text_is_a_success_that_changes_nothing(bench: Bench) -> None:
    name = await opened(bench, "a\n")
    before = Identity.of((bench.root / name).stat())
    assert "unchanged" in await bench.ok("Edit", file_path=name, old_string="a", new_string="a")
    assert Identity.of((bench.root / name).stat()) == before


async def test_an_empty_old_string_replaces_or_creates_the_whole_file(bench: Bench) -> None:
    answer = await bench.ok("Edit", file_path="new.txt", old_string="", new_string="a\nb\n")
    assert answer == "created `new.txt`\n--- /dev/null\n+++ new.txt\n@@ -0,0 +1,2 @@\n+a\n+b"
    answer = await bench.ok("Edit", file_path="new.txt", old_string="", new_string="a\nc\n")
    assert answer.startswith("replaced the whole of `new.txt`\n")
    assert "-b\n+c" in answer
    assert bench.bytes_of("new.txt") == b"a\nc\n"
    other = bench.put("unread.txt", "x")
    await bench.fails("NOT_READ", "Edit", file_path="unread.txt", old_string="", new_string="y")
    assert other.read_text() == "x"


async def test_a_missing_file_is_not_found(bench: Bench) -> None:
    bench.put("main.py", "")
    message = await bench.fails("NOT_FOUND", "Edit", file_path="mian.py", old_string="a", new_string="b")
    assert "`main.py`" in message


async def test_lf_arguments_match_a_crlf_file_that_stays_crlf(bench: Bench) -> None:
    name = await opened(bench, b"one\r\ntwo\r\nthree\r\n")
    await bench.ok("Edit", file_path=name, old_string="one\ntwo\n", new_string="1\n1.5\n2\n")
    assert bench.bytes_of(name) == b"1\r\n1.5\r\n2\r\nthree\r\n"
    await bench.ok("Edit", file_path=name, old_string="\nthree", new_string="\n3")
    assert bench.bytes_of(name) == b"1\r\n1.5\r\n2\r\n3\r\n"


async def test_a_mixed_file_keeps_each_line_end(bench: Bench) -> None:
    name = await opened(bench, b"a\r\nb\nc\r\nd\n")
    await bench.ok("Edit", file_path=name, old_string="a\nb\nc", new_string="A\nB\nC")
    assert bench.bytes_of(name) == b"A\r\nB\nC\r\nd\n"


async def test_replacements_are_literal(bench: Bench) -> None:
    name = await opened(bench, "a.b\n")
    await bench.ok("Edit", file_path=name, old_string="a.b", new_string="$1 \\1 \\g<0> \\n & %s {}")
    assert bench.bytes_of(name) == b"$1 \\1 \\g<0> \\n & %s {}\n"


async def test_a_dry_run_touches_nothing(bench: Bench) -> None:
    name = await opened(bench, "a\n")
    before = Identity.of((bench.root / name).stat())
    answer = await bench.ok("Edit", file_path=name, old_string="a", new_string="b", dry_run=True)
    assert answer.startswith("dry run, nothing was written: edited `f.py`") and "-a\n+b" in answer
    assert Identity.of((bench.root / name).stat()) == before
    await bench.ok("Edit", file_path="not/there", old_string="", new_string="b", dry_run=True)
    assert not (bench.root / "not").exists()


async def test_an_expected_hash_must_be_that_of_the_file(bench: Bench) -> None:
    name = await opened(bench, "a\n")
    right = hashlib.sha256(b"a\n").hexdigest()
    arguments = {"file_path": name, "old_string": "a", "new_string": "b"}
    message = await bench.fails("CONFLICT", "Edit", **arguments, expected_hash="0" * 64)
    assert right in message
    await bench.fails("INVALID_ARGUMENT", "Edit", **arguments, expected_hash="xyz")
    await bench.ok("Edit", **arguments, expected_hash=right[:12].upper())


async def test_other_encodings_stay_and_unknown_ones_are_refused(bench: Bench) -> None:
    name = await opened(bench, b"\xff\xfe" + "ä=1\r\n".encode("utf-16-le"))
    await bench.ok("Edit", file_path=name, old_string="ä=1\n", new_string="ä=2\nж\n")
    assert bench.bytes_of(name) == b"\xff\xfe" + "ä=2\r\nж\r\n".encode("utf-16-le")
    other = await opened(bench, b"caf\xe9 x\n", "l1.txt")
    await bench.fails("ENCODING", "Edit", file_path=other, old_string="x", new_string="y")
    assert bench.bytes_of(other) == b"caf\xe9 x\n"


async def test_a_long_diff_is_cut_and_the_whole_of_it_kept(bench: Bench) -> None:
    name = await opened(bench, "".join(f"old {n}\n" for n in range(300)))
    new = "".join(f"new {n}\n" for n in range(300))
    message = await bench.call("Edit", file_path=name, old_string="", new_string=new)
    rows = message.text.split("\n")
    assert len(rows) - 1 == 120
    assert message.output_ref is not None
    assert re.match(rf"\[diff cut: 119 of 603 lines .*{message.output_ref.id}", rows[-1])
    tail = await bench.ok("tool_output_cache", ref_id=message.output_ref.id, offset=600)
    assert "+new 299" in tail


async def test_one_very_long_line_does_not_flood_the_answer(bench: Bench) -> None:
    name = await opened(bench, "x" * 100_000 + "needle\n")
    message = await bench.call("Edit", file_path=name, old_string="needle", new_string="pin")
    assert len(message.text) < 3_000
    assert message.output_ref is not None and message.output_ref.byte_size > 200_000


# --- bytes outside the edit, and the diff itself ---

TEXT = st.lists(st.sampled_from(["a", "b", "ж", " ", "\t", "\n", "\r\n", "\r", "日", "$1", "x y"]), max_size=30).map(
    "".join
)


@given(
    before=st.binary(max_size=30) | TEXT.map(str.encode),
    old=st.binary(min_size=1, max_size=3) | TEXT.map(str.encode),
    new=TEXT,
)
@example(before=b"a\xffb", old=b"b", new="c")
def test_whatever_the_bytes_and_the_edit_bytes_outside_it_are_identical(before: bytes, old: bytes, new: str) -> None:
    """The file is a prefix and a suffix around what was replaced, or it is what it was."""
    try:
        asked = old.decode()
        plan = plan_edit(before, EditRequest(asked.encode(), new.encode(), False, "exact", None), None, "f")
    except (ToolError, UnicodeDecodeError):
        return
    after = plan.bytes_of("f")
    if not asked or asked == new:
        return
    if plan.applied_at is not None:
        assert after == before
        return
    (one,) = plan.splices
    mark = len(plan.text.form.bom)
    assert after[: one.start + mark] == before[: one.start + mark]
    assert after[mark + one.start + len(one.new) :] == before[mark + one.end :]
    assert one.new.replace(b"\r\n", b"\n") == new.encode().replace(b"\r\n", b"\n")
    assert before[mark + one.start : mark + one.end].replace(b"\r\n", b"\n") == asked.encode().replace(b"\r\n", b"\n")


@pytest.mark.parametrize(
    ("codec", "mark"), [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff"), ("shift_jis", b"")]
)
@given(before=TEXT, after=TEXT, new=TEXT)
def test_in_other_encodings_too_bytes_outside_the_edit_are_identical(
    codec: str, mark: bytes, before: str, after: str, new: str
) -> None:
    head, old, tail = (text.encode(codec) for text in (before + "ソ", "表\\needle", after))
    wanted = EditRequest("表\\needle".encode(), new.encode(), False, "exact", None)
    plan = plan_edit(mark + head + old + tail, wanted, "shift_jis", "f")
    result = plan.bytes_of("f")
    assert result.startswith(mark + head)
    assert result.endswith(tail)
    middle = result[len(mark + head) : len(result) - len(tail)].decode(codec)
    assert middle.replace("\r\n", "\n") == new.replace("\r\n", "\n")


def applied(before: str, rows: list[str]) -> str:
    """A unified diff applied the way `patch` does it, with every line of context checked."""
    source = re.findall(r"[^\n]*\n|[^\n]+$", before)
    result: list[str] = []
    at, last = 0, ""
    for row in rows[2:]:
        if match := re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", row):
            start = int(match[1]) - (0 if match[2] == "0" else 1)
            result += source[at:start]
            at = start
            assert int(match[3]) - (0 if match[4] == "0" else 1) == len(result)
        elif row.startswith("\\"):
            if last != "-":
                result[-1] = result[-1].removesuffix("\n")
        else:
            last = row[0]
            if last in " -":
                assert source[at].removesuffix("\n") == row[1:]
                at += 1
            if last in " +":
                result.append(row[1:] + "\n")
    return "".join(result + source[at:])


PLAIN = st.lists(st.sampled_from(["a", "b", "cc", "\n", "\n", "\nx\n"]), max_size=60).map("".join)


@given(PLAIN, st.lists(st.tuples(st.integers(0, 80), st.integers(0, 12), PLAIN), max_size=4))
def test_a_diff_built_from_splices_is_a_true_diff(before: str, cuts: list[tuple[int, int, str]]) -> None:
    body, splices, at = before.encode(), list[Splice](), 0
    for skip, length, new in cuts:
        start = min(at + skip, len(body))
        end = min(start + length, len(body))
        if start < at or (splices and start == splices[-1].end):
            continue
        splices.append(Splice(start, end, new.encode()))
        at = end
    after = spliced(body, splices)
    rows = unified(body, splices, "f")
    assert applied(before, rows) == after.decode()
    assert (rows == []) == (after == body)


@given(PLAIN, PLAIN)
def test_a_whole_splice_is_the_difference_of_two_texts(before: str, after: str) -> None:
    one = whole_splice(before.encode(), after.encode())
    assert spliced(before.encode(), [one]) == after.encode()
    assert applied(before, unified(before.encode(), [one], "f")) == after


@given(PLAIN, PLAIN)
def test_added_and_removed_lines_add_up(before: str, after: str) -> None:
    added, removed = counted(before.encode(), after.encode())
    assert added >= 0 and removed >= 0
    lines = [text.count("\n") + (1 if text and not text.endswith("\n") else 0) for text in (before, after)]
    assert lines[0] - removed + added == lines[1]


async def test_every_place_that_matches_by_lines_is_replaced_when_asked_for(bench: Bench) -> None:
    bench.put("a.py", "if a:\n    x = 1\n    y = 2\nif b:\n        x = 1\n        y = 2\n")
    await bench.ok("Read", file_path="a.py")
    arguments = {"file_path": "a.py", "old_string": "x = 1 \ny = 2", "new_string": "x = 3\ny = 4"}
    message = await bench.fails("NOT_UNIQUE", "Edit", **arguments)
    assert "2 times" in message and "(by line_trimmed)" in message
    await bench.fails("NOT_UNIQUE", "Edit", **arguments, expected_replacements=3)
    answer = await bench.ok("Edit", **arguments, replace_all=True)
    assert "2 replacements (line_trimmed)" in answer
    assert bench.bytes_of("a.py") == b"if a:\n    x = 3\n    y = 4\nif b:\n        x = 3\n        y = 4\n"


async def test_places_that_match_by_lines_and_overlap_are_replaced_without_overlap(bench: Bench) -> None:
    bench.put("a.txt", " a\n a\n a\n")
    await bench.ok("Read", file_path="a.txt")
    await bench.ok("Edit", file_path="a.txt", old_string="a \na", new_string="b", replace_all=True)
    assert bench.bytes_of("a.txt") == b" b\n a\n"


async def test_a_file_that_read_file_showed_whole_may_be_edited(bench: Bench) -> None:
    bench.put("a.txt", "one\ntwo\n")
    arguments = {"file_path": "a.txt", "old_string": "one", "new_string": "1"}
    await bench.ok("read_file", path="a.txt", max_lines=1)
    await bench.fails("NOT_READ", "Edit", **arguments)
    await bench.ok("read_file", path="a.txt")
    await bench.ok("Edit", **arguments)


async def test_a_file_that_a_command_of_this_session_made_may_be_edited(bench: Bench) -> None:
    await bench.ok("Bash", command="echo one > made.txt")
    await bench.ok("Edit", file_path="made.txt", old_string="one", new_string="1")
    bench.put("other.txt", "one\n")
    await bench.fails("NOT_READ", "Edit", file_path="other.txt", old_string="one", new_string="1")


# --- Lisp ---


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("(+ a b))", "(+ a b)", "[warning: the edit unbalances the brackets at line 2: 1 closing bracket missing]"),
        ("(+ a b))", "(+ a b)))", "[warning: the edit unbalances the brackets at line 3: an extra closing bracket]"),
        ("(+ a b))", '(+ a "b))', "[warning: the edit unbalances the brackets at line 2: "),
    ],
)
async def test_an_edit_that_unbalances_a_form_says_so(bench: Bench, old: str, new: str, note: str) -> None:
    name = await opened(bench, "(in-package :a)\n(defun f (a b)\n  (+ a b))\n\n(defun g () 1)\n", "f.lisp")
    shown = await bench.ok("Edit", file_path=name, old_string=old, new_string=new, dry_run=True)
    assert shown.split("\n")[1].startswith(note), shown
    assert note in await bench.ok("Edit", file_path=name, old_string=old, new_string=new)
    repaired = await bench.ok("Edit", file_path=name, old_string=new, new_string=old)
    assert "warning" not in repaired


async def test_a_lisp_file_that_stays_balanced_or_was_broken_before_is_edited_without_a_warning(bench: Bench) -> None:
    name = await opened(bench, "(defun f (a)\n  a)\n\n(defun broken (\n", "f.el")
    assert "warning" not in await bench.ok("Edit", file_path=name, old_string="  a)", new_string="  (g a))")
    text = await opened(bench, "(a\n", "f.txt")
    assert "warning" not in await bench.ok("Edit", file_path=text, old_string="(a", new_string="((a")


async def test_an_edit_that_this_session_made_is_no_error_when_it_is_sent_again(bench: Bench) -> None:
    name = await opened(bench, "a\nb = 1\nc\n")
    edit = {"file_path": name, "old_string": "b = 1", "new_string": "b = 2"}
    await bench.ok("Edit", **edit)
    await bench.ok("Edit", file_path=name, old_string="c", new_string="d")
    await bench.ok("Read", file_path=name)
    answer = await bench.ok("Edit", **edit)
    assert answer == "already applied at line 2 of `f.py`: new_string is there, old_string is not; unchanged"
    assert bench.bytes_of(name) == b"a\nb = 2\nd\n"


async def test_a_removal_and_a_reindented_edit_are_known_when_they_are_sent_again(bench: Bench) -> None:
    name = await opened(bench, "a\nb\n    c\n    d\n")
    for edit in ({"old_string": "b\n", "new_string": ""}, {"old_string": "c\nd", "new_string": "c\ne"}):
        await bench.ok("Edit", file_path=name, **edit)
        assert "already applied" in await bench.ok("Edit", file_path=name, **edit)
    assert bench.bytes_of(name) == b"a\n    c\n    e\n"


async def test_a_dry_run_is_no_edit_that_was_made(bench: Bench) -> None:
    name = await opened(bench, "a\nb = 1\n")
    edit = {"file_path": name, "old_string": "b = 1", "new_string": "b = 2"}
    await bench.ok("Edit", **edit, dry_run=True)
    bench.put(name, "b = 2\n")
    await bench.ok("Read", file_path=name)
    await bench.fails("NO_MATCH", "Edit", **edit)


@pytest.mark.parametrize(
    ("content", "old", "new"),
    [
        ("import sys\n\nx = 1\n", "import os", "import sys"),
        ("import sys\n", "import os\n", "import sys\n"),
        ("def f():\n    a()\n    c()\n", "def f():\n    c()", "def f():\n    a()"),
        ("def f():\n    a()\ndef f():\n    c()\n", "def f():\n    b()", "def f():\n    a()"),
        ("}\na()\n", "}\nb()", "}\na()"),
    ],
)
async def test_new_text_that_was_there_by_itself_is_no_edit_that_was_made(
    bench: Bench, content: str, old: str, new: str
) -> None:
    name = await opened(bench, content)
    message = await bench.fails("NO_MATCH", "Edit", file_path=name, old_string=old, new_string=new)
    assert "(new_string is at line 1)" in message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f():\n    b()\n    return 1", "def f():\n    a()\n    return 1"),
        ("def f():\n    b()", "def f():\n    a()"),
        ("    b()\n    return 1", "    a()\n    return 1"),
    ],
)
async def test_new_text_between_the_lines_of_the_old_one_is_an_edit_that_somebody_made(
    bench: Bench, old: str, new: str
) -> None:
    name = await opened(bench, "x = 1\ndef f():\n    a()\n    return 1\ndef g():\n    c()\n")
    answer = await bench.ok("Edit", file_path=name, old_string=old, new_string=new)
    assert answer.startswith(f"already applied at line {2 if new.startswith('def') else 3} of `f.py`")


@pytest.mark.parametrize(
    ("content", "new", "options"),
    [
        ("b = 2\nb = 2\n", "b = 2", {}),
        ("a\n", "", {}),
        ("a\n\n", "\n", {}),
        ("def f():\n  b = 2\n", "def f():\n  b = 2", {"expected_replacements": 1}),
    ],
)
async def test_new_text_that_is_there_twice_or_is_blank_proves_nothing(
    bench: Bench, content: str, new: str, options: dict[str, int]
) -> None:
    name = await opened(bench, content)
    old = "def f():\n  zzz = 1"
    await bench.fails("NO_MATCH", "Edit", file_path=name, old_string=old, new_string=new, **options)


async def test_nearly_the_right_text_is_offered_ready_to_send(bench: Bench) -> None:
    content = "def f(x):\r\n\treturn compute(x, depth=3)\r\n\r\ndef g():\r\n\tpass\r\n"
    name = await opened(bench, content)
    arguments = {"file_path": name, "new_string": "def f(x):\n\treturn 1"}
    wrong = "def f(x):\n    return compute(x, depth=4)"
    message = await bench.fails("NO_MATCH", "Edit", **arguments, old_string=wrong)
    offered = message.split("<old_string>\n")[1].split("\n</old_string>")[0]
    assert offered == "def f(x):\n\treturn compute(x, depth=3)"
    await bench.ok("Edit", **arguments, old_string=offered)
    assert bench.bytes_of(name).startswith(b"def f(x):\r\n\treturn 1\r\n")


@pytest.mark.parametrize("odd", ["\u202e", "</old_string>", "x" * 7_000])
async def test_what_could_not_be_copied_is_not_offered(bench: Bench, odd: str) -> None:
    name = await opened(bench, f"alpha beta gamma delta epsilon zeta {odd}\n" * 3 + "other\n")
    old = f"alpha beta gamma delta epsilon zetA {odd}\n" * 3
    message = await bench.fails("NO_MATCH", "Edit", file_path=name, old_string=old, new_string="y")
    assert "ready" not in message and "<old_string>" not in message and "closest text" in message


@given(
    lines=st.lists(st.sampled_from(["", "  ", "a = 1", "  a = 1", "\tb(2)", "}", "return long_name"]), max_size=8),
    first=st.integers(0, 7),
    height=st.integers(1, 8),
    typo=st.sampled_from(["", "x", " "]),
    mode=st.sampled_from(["auto", "exact", "line_trimmed", "block_anchor"]),
)
@example(["class Rule9(Base):", '    """Rule number 9."""'], 0, 2, "", "block_anchor")
@example(["", "a = 1", "b(2)"], 0, 3, "", "block_anchor")
@example(["a = 1", "a = 1", "a = 1", "  a = 1"], 0, 2, "x", "line_trimmed")
@example(["", "", "a = 1", "  a = 1", "return long_name", "a = 1"], 3, 3, "x", "block_anchor")
def test_a_text_that_is_offered_is_found_in_the_same_mode(
    lines: list[str], first: int, height: int, typo: str, mode: Any
) -> None:
    body = "\n".join(lines).encode()
    old = "\n".join(lines[first : first + height]).encode() + typo.encode()
    try:
        plan_edit(body, EditRequest(old, b"new", False, mode, None), None, "f")
    except ToolError as error:
        offered = error.message.partition("<old_string>\n")[2].removesuffix("\n</old_string>")
        if offered:
            _sent_again(body, offered.encode(), mode)


def _sent_again(body: bytes, offered: bytes, mode: Any) -> None:
    try:
        plan_edit(body, EditRequest(offered, b"new", True, mode, None), None, "f")
    except ToolError as error:
        assert "send it with match_mode exact" in error.message
        plan_edit(body, EditRequest(offered, b"new", True, "exact", None), None, "f")


async def test_a_notebook_without_the_text_names_the_json_and_the_tool_for_cells(bench: Bench) -> None:
    cells: list[dict[str, Any]] = [
        {"cell_type": "code", "source": ["import math\n", "r = 3"], "outputs": [], "metadata": {}}
    ]
    name = await opened(bench, json.dumps({"cells": cells}, indent=1), "a.ipynb")
    arguments = {"file_path": name, "old_string": "import math\nr = 3", "new_string": "r = 4"}
    message = await bench.fails("NO_MATCH", "Edit", **arguments)
    assert message.endswith(
        "\n[Edit sees the notebook's JSON, not the cells as Read shows them; NotebookEdit changes cells]"
    )
    tools = [tool for tool in TOOLS if tool.name in ("Read", "Edit")]
    async with open_session(Scope.workspace(bench.root), builtin=tools) as session:
        await session.call("Read", {"file_path": name})
        answer = await session.call("Edit", arguments)
    assert answer.text.endswith("not the cells as Read shows them]")
