"""The grammar of patches: what is read, what is tolerated, and every fault at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.errors import InvalidArgument
from gripfast.patch.grammar import MOST_BYTES, Chunk, Hunk, Patch, PatchRow, parse

UPDATE = "*** Update File: a\n@@\n-x\n+y\n"


def framed(*hunks: str) -> str:
    return "*** Begin Patch\n" + "".join(hunks) + "*** End Patch\n"


def test_every_kind_of_hunk_is_read_with_its_line() -> None:
    text = framed(
        "*** Add File: new dir/n.txt\n+one\n+\n",
        "*** Delete File: old\n",
        "*** Update File: a\n*** Move to: b\n@@ def f\n x\n-y\n+z\n*** End of File\n",
    )
    rows = (PatchRow(" ", "x"), PatchRow("-", "y"), PatchRow("+", "z"))
    assert parse(text) == Patch(
        (
            Hunk(1, 2, "add", "new dir/n.txt", lines=("one", "")),
            Hunk(2, 5, "delete", "old"),
            Hunk(3, 6, "update", "a", "b", chunks=(Chunk(8, ("def f",), rows, at_end=True),)),
        )
    )


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (f"  *** Begin Patch \n{UPDATE}  *** End Patch\n\n", None),
        (f"*** Begin Patch ***\n{UPDATE}*** End Patch ***", "`*** Begin Patch ***`"),
        (f"```patch\n{framed(UPDATE)}```\n", "a code fence around it"),
        (f"apply_patch <<'EOF'\n{framed(UPDATE)}EOF\n", "a heredoc around it"),
        (f"```\n<<EOF\n{framed(UPDATE)}\nEOF\n```", "a heredoc around it"),
        (framed(UPDATE).replace("\n", "\r\n"), "CR before LF"),
        (framed(UPDATE.replace("@@", "@@ -1,3 +1,4 @@")), "the line numbers of a unified diff"),
        (framed(UPDATE.replace("@@\n", "")), None),
        (framed("  " + UPDATE), None),
        (framed(UPDATE.replace("@@", "\n@@")), None),
    ],
)  # fmt: skip
def test_what_models_put_around_a_patch_is_tolerated(text: str, note: str | None) -> None:
    patch = parse(text)
    (hunk,) = patch.hunks
    (chunk,) = hunk.chunks
    assert (hunk.kind, hunk.path, chunk.rows) == ("update", "a", (PatchRow("-", "x"), PatchRow("+", "y")))
    assert note is None or note in patch.tolerated


def test_stacked_headers_belong_to_one_chunk_and_an_empty_line_is_empty_context() -> None:
    (hunk,) = parse(framed("*** Update File: a\n@@ class A\n@@ def f\n\n-x\n")).hunks
    assert hunk.chunks == (Chunk(3, ("class A", "def f"), (PatchRow(" ", ""), PatchRow("-", "x"))),)


def test_a_marker_as_context_is_context() -> None:
    (hunk,) = parse(framed("*** Update File: a\n@@\n *** Delete File: b\n+*** End Patch\n-y\n")).hunks
    assert [row.text for row in hunk.chunks[0].rows] == ["*** Delete File: b", "*** End Patch", "y"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("hello", "line 1: `hello` is not `*** Begin Patch`"),
        ("*** Begin Patch", "ends in"),
        (f"*** Begin Patch\n{UPDATE}", "line 5: the patch ends in `+y`, not in `*** End Patch`; perhaps it was cut"),
        (framed(), "has no hunk"),
        (framed("*** Update File: a\n"), "line 2: an Update File without a change"),
        (framed("*** Update File: a\n@@ x\n"), "line 3: an `@@` without lines below it"),
        (framed("*** Update File:\n@@\n-x\n"), "line 2: the header names no file"),
        (framed("*** Rename File: a\n"), "line 2: `*** Rename File: a` is outside of any hunk"),
        (framed(UPDATE, "*** Rename File: a\n"), "line 6: `*** Rename File: a` is not a known header"),
        (framed("*** Add File: a\nhello\n"), "line 3: `hello` does not begin with `+`"),
        (framed("*** Update File: a\n@@\nhello\n"), "line 4: `hello` begins with none of"),
        (framed("*** Delete File: a\n-x\n"), "line 3: `-x` follows a Delete File"),
        (framed(UPDATE, framed(UPDATE)), "send one patch, not several"),
        (framed(UPDATE, "*** Move to: b\n"), "belongs directly below its Update File"),
        (framed("*** Update File: a\n*** Move to:\n"), "names no file"),
        (framed("*** Update File: a\n@@\n*** End of File\n"), "follows no line"),
        (framed("*** Add File: a\n+\ud800\n"), "lone surrogate"),
    ],
)
def test_a_faulty_patch_says_what_is_wrong_and_where(text: str, fault: str) -> None:
    with pytest.raises(InvalidArgument) as raised:
        parse(text)
    assert fault in raised.value.message


def test_all_faults_are_told_at_once_and_many_are_counted() -> None:
    with pytest.raises(InvalidArgument) as raised:
        parse(framed("*** Update File: a\n@@\nx\n", "*** Add File: b\ny\n", "*** Add File: c\n" + "z\n" * 100))
    message = raised.value.message
    assert "line 4:" in message and "line 6:" in message and "and 84 more" in message


def test_a_huge_patch_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidArgument, match="at most"):
        parse("x" * (MOST_BYTES + 1))


@given(st.text(alphabet="*+- @\nBeginPatchEdUpF:\r\t`<E'", max_size=200))
def test_whatever_the_text_it_is_read_or_refused(text: str) -> None:
    for given_text in (text, framed(text), framed(UPDATE, text)):
        try:
            assert parse(given_text).hunks
        except InvalidArgument as refused:
            assert len(refused.message) < 5_000
