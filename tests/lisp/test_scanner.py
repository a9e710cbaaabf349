"""Where units begin and end: the traps of Lisp syntax, broken files, and input made to hurt."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gripfast.lisp.dialects import COMMON_LISP, DIALECTS, Dialect
from gripfast.lisp.scanner import Unit, scan

GENEROUS_SECONDS = 20  # of processor time: what is linear takes one, what is quadratic minutes or hours


def pieces(text: str, dialect: Dialect = COMMON_LISP) -> list[str]:
    units = list(scan(text, dialect))
    assert not [unit.fault for unit in units if unit.fault]
    return [text[unit.start : unit.end] for unit in units]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a) b\n'c", ["(a)", "b", "'c"]),
        ("foo#|x| y", ["foo#|x|", "y"]),
        ("(foo#|)| a) b", ["(foo#|)| a)", "b"]),
        ("(#.#|)|#x) z", ["(#.#|)|#x)", "z"]),
        ("(,@#|)|#x) z", ["(,@#|)|#x)", "z"]),
        ("(#1=#|)|#x) z", ["(#1=#|)|#x)", "z"]),
        ("(#:#|)|a) z", ["(#:#|)|a)", "z"]),
        (r"(#\( #\) #\; #\" #\| a) b", [r"(#\( #\) #\; #\" #\| a)", "b"]),
        (r"#\( #\space #\( ", [r"#\(", r"#\space", r"#\("]),
        (r"#\x#|a| b", [r"#\x#|a|", "b"]),
        (r"(a\) b) c", [r"(a\) b)", "c"]),
        ("(|a)b| c) d", ["(|a)b| c)", "d"]),
        (r"|a\|b| c", [r"|a\|b|", "c"]),
        ('"a\\"b" c', ['"a\\"b"', "c"]),
        ('#"a)" b', ['#"a)"', "b"]),
        ("#| a #| b |# ) |# c", ["c"]),
        ("#|| a ||# b", ["b"]),
        ("(a #| ) #| ) |# ) |# b) c", ["(a #| ) #| ) |# ) |# b)", "c"]),
        ("(a ; )\n b) c", ["(a ; )\n b)", "c"]),
        ("#+sbcl (a) b", ["#+sbcl (a)", "b"]),
        ("#+(or a b)\n; why\n(c) d", ["#+(or a b)\n; why\n(c)", "d"]),
        ("#+a #-b c d", ["#+a #-b c", "d"]),
        ("#!+sb-unicode (a) b", ["#!+sb-unicode (a)", "b"]),
        ("#'a #:b #*01 #(c) #3(d)", ["#'a", "#:b", "#*01", "#(c)", "#3(d)"]),
        ('#2A((e)) #S(f) #P"g"', ["#2A((e))", "#S(f)", '#P"g"']),
        ("#1=(a . #1#) #1#", ["#1=(a . #1#)", "#1#"]),
        ("`(a ,b ,@c ,.d) e", ["`(a ,b ,@c ,.d)", "e"]),
        ("[a] {b} c^ @d", ["[a]", "{b}", "c^", "@d"]),
        ("a\u00a0b c", ["a\u00a0b", "c"]),
        ("(a)\r\n(b)\r\n", ["(a)", "(b)"]),
        ("a\fb", ["a", "b"]),
        ("#;(a) b", ["#;(a)", "b"]),
        ("#_foo bar", ["#_foo", "bar"]),
        ("", []),
        (" ; nothing\n#| at all |#\n", []),
    ],
)
def test_units_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_a_byte_order_mark_and_a_line_for_the_shell_are_no_forms() -> None:
    assert pieces("\ufeff#!/usr/bin/sbcl --script\n(a)") == ["(a)"]
    assert pieces("#!/bin/sh\n#|-*- mode:lisp -*-|#\n(a)") == ["(a)"]


def test_nothing_that_reads_as_code_is_run() -> None:
    assert pieces("#.(error 1) (a #.(sb-ext:quit)) no-such-package::x #=1") == [
        "#.(error 1)",
        "(a #.(sb-ext:quit))",
        "no-such-package::x",
        "#=1",
    ]


def test_the_datum_is_past_conditions_and_quotes() -> None:
    text = "#+(and a b) '(c)"
    assert [text[unit.datum :] for unit in scan(text)] == ["(c)"]


# --- broken files ---


def faults(text: str) -> list[tuple[str, str]]:
    return [(text[unit.start : unit.end].strip(), unit.fault.message) for unit in scan(text) if unit.fault]


def whole(text: str) -> list[str]:
    return [text[unit.start : unit.end] for unit in scan(text) if not unit.fault]


def test_an_unclosed_form_ends_before_the_next_line_that_begins_with_a_paren() -> None:
    text = "(a)\n(defun b (x)\n  (c x)\n(d)\n(e)\n"
    assert faults(text) == [("(defun b (x)\n  (c x)", "1 closing bracket missing")]
    assert whole(text) == ["(a)", "(d)", "(e)"]


def test_a_form_closed_too_early_is_folded_back_and_the_rest_is_read() -> None:
    text = "(a)\n(defun b (x))\n  (c x)\n  d)\n(e)\n"
    assert faults(text) == [("(defun b (x))\n  (c x)\n  d)", "an extra closing bracket")]
    assert whole(text) == ["(a)", "(e)"]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ('(a "b)', "a string is not closed"),
        ("(a |b)", "a |symbol| is not closed"),
        ("(a #| b)", "a #| comment is not closed"),
        ("(a #| #| |# b)", "a #| comment is not closed"),
        ("#| a", "a #| comment is not closed"),
        ('"a', "a string is not closed"),
        ("|a", "a |symbol| is not closed"),
        ("(a \\", "nothing follows the backslash"),
        ("a\\", "nothing follows the backslash"),
        ("'", "nothing follows a quote or condition"),
        ("#+x", "nothing follows a quote or condition"),
        ("(a # b)", "a lone #"),
        ("# a", "a lone #"),
        (")", "an extra closing bracket"),
    ],
)
def test_every_kind_of_breakage_is_named_and_what_follows_is_read(broken: str, message: str) -> None:
    text = f"(first)\n{broken}"
    assert [found for _, found in faults(text)] == [message]
    assert whole(text)[:1] == ([] if message.startswith("an extra") else ["(first)"])


def test_column_0_is_not_believed_while_nothing_is_broken() -> None:
    text = '(a "\n(b)" #|\n(c |#\n(d))\n(e)'
    assert len(pieces(text)) == 2


# --- input made to hurt ---


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_000_000,
        ")" * 1_000_000,
        "(" * 500_000 + ")" * 500_000,
        "(\n" * 25_000,
        "(a\n" * 25_000,
        ") \n" * 25_000,
        "(a)) " * 25_000,
        "(a))\n" * 25_000,
        '"' * 199_999,
        '(a "b)\n' * 25_000,
        "#|" * 500_000,
        "(#| \n" * 25_000,
        "\\" * 1_000_001,
        '"' + "\\a" * 1_000_000,
        "|" + "\\a" * 1_000_000,
        "'" * 1_000_000,
        "#+" * 500_000,
        "#+a " * 100_000,
        "#" * 200_000,
        "# " * 25_000,
        ";\n" * 200_000,
        "a" * 2_000_000,
        "a#" * 1_000_000,
        "a " * 50_000,
        "(a" + " (b" * 25_000,
        "\n(" + "#.#|" * 25_000,
        "[{" * 500_000,
        "?" * 500_000,
    ],
    ids=lambda text: text[:8].encode("unicode_escape").decode(),
)
@pytest.mark.parametrize("dialect", [DIALECTS[0], DIALECTS[-1]], ids=lambda dialect: dialect.name)
def test_nothing_crashes_and_nothing_is_quadratic(text: str, dialect: Dialect) -> None:
    start = time.process_time()
    tiles(text, dialect)
    assert time.process_time() - start < GENEROUS_SECONDS


def test_units_are_given_away_as_they_are_found() -> None:
    text = "a " * 30_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in scan(text)) == 30_000
        assert tracemalloc.get_traced_memory()[1] < 2_500_000
    finally:
        tracemalloc.stop()


SOUP = st.text(
    st.sampled_from("()[]{}\"'`,;|\\#?@.+-ab1 \n\t\r\f\u00a0é") | st.characters(codec="utf-8"), max_size=60
)


@settings(max_examples=300, deadline=None)
@given(SOUP, st.sampled_from(DIALECTS))
def test_units_of_any_text_follow_each_other_and_leave_out_only_space_and_comments(
    text: str, dialect: Dialect
) -> None:
    units = tiles(text, dialect)
    if not any(unit.fault for unit in units):
        again = "".join(text[unit.start : unit.end] + "\n" for unit in units)
        assert pieces(again, dialect) == [text[unit.start : unit.end] for unit in units]


def tiles(text: str, dialect: Dialect) -> list[Unit]:
    units = list(scan(text, dialect))
    at = 0
    for unit in units:
        assert at <= unit.start <= unit.datum <= unit.end <= len(text)
        assert unit.start < unit.end
        at = unit.end
    return units
