"""Encodings, line ends and final newlines that survive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.errors import BinaryNotSupported, EncodingProblem, InvalidArgument
from gripfast.host.files.encodings import TextForm, checked_encoding, is_binary, shown_form, text_of
from gripfast.text.line_ends import rewritten
from gripfast.text.match import exact_spans, spliced, splices


@pytest.mark.parametrize(
    ("data", "form", "body"),
    [
        (b"", TextForm(), ""),
        ("é\n".encode(), TextForm(), "é\n"),
        (b"\xef\xbb\xbfa", TextForm("utf-8", b"\xef\xbb\xbf"), "a"),
        (b"\xff\xfea\x00\n\x00", TextForm("utf-16-le", b"\xff\xfe"), "a\n"),
        (b"\xfe\xff\x00a", TextForm("utf-16-be", b"\xfe\xff"), "a"),
    ],
)
def test_the_form_of_a_file_is_detected_and_leads_back(data: bytes, form: TextForm, body: str) -> None:
    text = text_of(data, None, "f")
    assert text.form == form
    assert text.body.decode() == body
    assert text.form.bytes_of(text.body, "f") == data


@pytest.mark.parametrize("codec", ["shift_jis", "euc_jp", "latin-1", "cp1252"])
def test_a_named_encoding_round_trips(codec: str) -> None:
    word = "日本語ソ表" if codec in ("shift_jis", "euc_jp") else "café Ünïcode"
    data = f"{word}\r\nx\n".encode(codec)
    text = text_of(data, checked_encoding(codec), "f")
    assert text.body.decode() == f"{word}\r\nx\n"
    assert text.form.bytes_of(text.body, "f") == data


def test_without_a_name_it_is_shown_but_never_edited() -> None:
    data = "café".encode("latin-1")
    assert shown_form(data, None) == TextForm("utf-8", exact=False)
    with pytest.raises(EncodingProblem, match="offset 3") as caught:
        text_of(data, None, "f")
    assert "names its encoding in gripfast.toml" in caught.value.message


def test_bytes_the_named_encoding_would_not_give_back_are_not_edited() -> None:
    with pytest.raises(EncodingProblem):
        text_of(b"\x81\xff\xfe", "shift_jis", "f")
    with pytest.raises(EncodingProblem):  # decodes, but to a character that is encoded otherwise
        text_of("≒".encode("cp932") + b"\x87\x90", "cp932", "f")


def test_utf16_that_is_broken_is_not_edited() -> None:
    with pytest.raises(EncodingProblem):
        text_of(b"\xff\xfea\x00\x00\xd8", None, "f")
    with pytest.raises(EncodingProblem):
        text_of(b"\xff\xfea", None, "f")


def test_what_an_encoding_has_no_character_for_is_an_error_not_a_question_mark() -> None:
    with pytest.raises(EncodingProblem, match="U\\+65E5"):
        TextForm("latin-1").bytes_of("日".encode(), "f")


@pytest.mark.parametrize("name", ["nonsense", "base64", "rot13"])
def test_an_encoding_that_is_none_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        checked_encoding(name)


@pytest.mark.parametrize(
    "name",
    "utf-7 utf-16 utf-32 utf-8-sig cp037 hz iso2022_jp unicode_escape raw_unicode_escape idna punycode".split(),
)
def test_an_encoding_that_changes_ascii_text_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        checked_encoding(name)


@pytest.mark.parametrize("name", "utf-8 ascii latin-1 cp1252 shift_jis cp932 euc_jp gb18030 big5".split())
def test_an_encoding_that_keeps_ascii_text_is_taken(name: str) -> None:
    assert checked_encoding(name) is not None


@pytest.mark.parametrize(
    ("head", "binary"),
    [
        (b"", False),
        (b"text\twith\r\nends\x0c\x1b[0m", False),
        (b"a\0b", True),
        (b"\x01\x02\x03\x04abc", True),
        (b"\x01" + b"a" * 10, False),
        (b"\xff\xfea\x00b\x00", False),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", True),
        (b"a" * 8192 + b"\0", False),
    ],
)
def test_binary_is_told_by_the_first_8_kib(head: bytes, binary: bool) -> None:
    assert is_binary(head) == binary


def test_binary_has_no_text_to_edit() -> None:
    with pytest.raises(BinaryNotSupported):
        text_of(b"\x89PNG\0", None, "f")


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", b"a\nc\n", b"a\r\nc\r\n"),
        (b"a\nb\n", b"a\nc\n", b"a\nc\n"),
        (b"a\r\nb\nc\r\n", b"a\nX\nc\n", b"a\r\nX\r\nc\r\n"),
        (b"a\nb\r\nc\nd\n", b"a\nb\nnew\nd\n", b"a\nb\r\nnew\nd\n"),
        (b"a\r\nb", b"a\nb\n", b"a\r\nb"),
        (b"a\n", b"b", b"b\n"),
        (b"a", b"b\n", b"b"),
        (b"", b"b", b"b"),
        (b"a\n", b"", b""),
        (b"a\r\n", b"x\r\ny\n", b"x\r\ny\n"),
    ],
)
def test_a_rewritten_file_keeps_its_line_ends_and_final_newline(before: bytes, content: bytes, after: bytes) -> None:
    assert rewritten(before, content) == after


LINES = st.lists(st.tuples(st.sampled_from(["", "a", "bé", "x y"]), st.sampled_from(["\n", "\r\n"])), max_size=12)


@given(LINES, st.booleans())
def test_writing_back_what_was_read_changes_nothing(lines: list[tuple[str, str]], final: bool) -> None:
    before = "".join(text + end for text, end in lines)
    before = before if final else before.rstrip("\r\n") + ("z" if before else "")
    shown = before.replace("\r\n", "\n")
    assert rewritten(before.encode(), shown.encode()) == before.encode()


@given(LINES, st.data())
def test_lf_arguments_find_any_part_of_a_mixed_file_and_nothing_else_changes(
    lines: list[tuple[str, str]], data: st.DataObject
) -> None:
    body = "".join(text + end for text, end in lines).encode()
    plain = body.replace(b"\r\n", b"\n")
    start = data.draw(st.integers(0, len(plain)))
    end = data.draw(st.integers(start, len(plain)))
    old = plain[start:end]
    if not old:
        return
    spans = exact_spans(body, old)
    assert len(spans) >= 1
    for first, last in spans:
        assert body[first:last].replace(b"\r\n", b"\n") == old
        assert not (body[first - 1 : first] == b"\r" and body[first : first + 1] == b"\n")
    same = spliced(body, splices(body, spans, old))
    assert same == body
