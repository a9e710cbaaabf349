"""The collapsed view: numbers, expansion, comments, cuts, broken files."""

from __future__ import annotations

from textwrap import dedent

from hypothesis import given, settings
from hypothesis import strategies as st

from gripfast.lisp.forms import Form
from gripfast.lisp.view import MAX_CHARACTERS, Problem, Wanted, collapse

SOURCE = dedent(
    """\
    ;;;; A licence,
    ;;;; many lines of it.

    (in-package :demo)

    ;;; Section

    ;; Adds.
    ;; Slowly.
    (defun add (a b)
      "Adds two numbers.
    Really."
      (+ a b)) ; trailing

    (eval-when (:execute)
      (defun inner (x)
        (frob x))
      (defvar *v* (make-hash-table)))
    (setf *x* 1)
    """
)


def named(*names: str):
    def wanted(form: Form, source: str) -> bool:
        return form.name in names

    return wanted


def having(text: str) -> Wanted:
    def wanted(form: Form, source: str) -> bool:
        return text in source

    return wanted


def test_a_view_has_a_numbered_line_for_each_form_and_the_comment_right_before_it() -> None:
    view = collapse(SOURCE)
    assert view.content.split("\n") == [
        "     4\t(in-package :demo)",
        "     8\t;; Adds.",
        "     9\t;; Slowly.",
        '    10\t(defun add (a b) "Adds two numbers. ..." ...)',
        "    15\t(eval-when ...)",
        "    16\t  (defun inner (x) ...)",
        "    18\t  (defvar *v* (make-hash-table))",
        "    19\t(setf *x* 1)",
    ]
    assert (view.total_forms, view.expanded_forms, view.truncated) == (4, 0, False)


def test_a_wanted_form_is_its_exact_source_with_true_numbers() -> None:
    view = collapse(SOURCE, wanted=named("add"))
    assert view.content.split("\n")[3:7] == [
        "    10\t(defun add (a b)",
        '    11\t  "Adds two numbers.',
        '    12\tReally."',
        "    13\t  (+ a b))",
    ]
    assert view.expanded_forms == 1


def test_a_wanted_definition_inside_a_wrapper_is_expanded_alone() -> None:
    view = collapse(SOURCE, wanted=having("frob"))
    assert view.content.split("\n")[4:8] == [
        "    15\t(eval-when ...)",
        "    16\t  (defun inner (x)",
        "    17\t    (frob x))",
        "    18\t  (defvar *v* (make-hash-table))",
    ]
    assert (view.total_forms, view.expanded_forms) == (4, 1)


def test_what_matches_in_a_wrapper_outside_its_definitions_expands_the_wrapper() -> None:
    view = collapse(SOURCE, wanted=having(":execute"))
    assert view.content.split("\n")[4:8] == [f"{n:6d}\t{SOURCE.splitlines()[n - 1]}" for n in range(15, 19)]


def test_a_licence_at_the_head_of_a_file_is_left_out_even_without_an_empty_line() -> None:
    form = "(defun f (x)\n  (g x x x x x x x))\n"
    assert collapse(";; 1\n;; 2\n" + form).content.startswith("     1\t;; 1\n     2\t;; 2\n     3\t(defun")
    assert collapse(";; licence\n" * 4 + form).content == "     5\t(defun f (x) ...)"


def test_in_package_is_whole_and_not_counted() -> None:
    view = collapse("(in-package\n  :demo)\n(defun f (x) (g x))\n", wanted=having("demo"))
    assert view.content == "     1\t(in-package\n     2\t  :demo)\n     3\t(defun f (x) ...)"
    assert view.expanded_forms == 0


def test_a_file_whose_view_would_be_no_shorter_is_shown_whole() -> None:
    source = "; only this\n\n(in-package :x)\n\n(setf a 1)\n"
    small = "(defun f () 1)\n"
    assert collapse(small).content == "     1\t(defun f () 1)"
    assert collapse(small, wanted=named("g")).content == "     1\t(defun f () ...)"
    assert "only this" not in collapse(source).content
    assert collapse("; no forms\n").content == "     1\t; no forms"
    assert collapse("").content == ""


def test_limit_bounds_the_lines_and_tells_what_was_wanted_past_the_cut() -> None:
    source = "".join(f"(defun f{n} (x)\n  (g x))\n" for n in range(100))
    view = collapse(source, wanted=named("f2", "f90"), limit=4)
    assert view.content.count("\n") == 3
    assert view.truncated
    assert view.total_forms == 100
    assert view.expanded_forms == 1
    assert [(unseen.line, unseen.name) for unseen in view.unseen] == [(181, "f90")]


def test_a_limit_that_just_fits_cuts_nothing() -> None:
    source = "(defun f (x)\n  (g x))\n" * 3
    assert not collapse(source, limit=3).truncated
    assert collapse(source, limit=2).truncated


def test_an_endless_line_is_cut() -> None:
    view = collapse(f"(defun f (x)\n {'x' * 1_000_000})", wanted=named("f"))
    assert view.truncated
    assert len(view.content) < MAX_CHARACTERS + 100


def test_many_long_lines_are_cut_at_a_line() -> None:
    lines = "\n".join(["x" * 1_000] * 1_000)
    view = collapse(f"(defun f (x)\n{lines})", wanted=named("f"))
    assert view.truncated
    assert 250 < view.content.count("\n") < 270


def test_crlf_files_have_the_same_view() -> None:
    assert collapse(SOURCE.replace("\n", "\r\n")) == collapse(SOURCE)
    crlf = collapse(SOURCE.replace("\n", "\r\n"), wanted=named("add"))
    assert crlf == collapse(SOURCE, wanted=named("add"))


def test_a_broken_file_has_a_partial_view_and_the_place_of_each_fault() -> None:
    source = dedent(
        """\
        (defun a (x)
          (g x))
        (defun b (x)
          (g x)))
        (defun c (x)
          (g x)

        (defun d (x)
          (g x))
        """
    )
    view = collapse(source)
    assert view.content.split("\n") == [
        "     1\t(defun a (x) ...)",
        "     3\t(defun b (x) ...) ; broken: an extra closing bracket",
        "     5\t(defun c (x) ...) ; broken: 1 closing bracket missing",
        "     8\t(defun d (x) ...)",
    ]
    assert view.problems == (
        Problem(4, 9, "an extra closing bracket"),
        Problem(5, 1, "1 closing bracket missing"),
    )


def test_problems_are_capped() -> None:
    view = collapse("(a\n" * 5_000)
    assert len(view.problems) == 50


PIECES = ["(defun f (x)\n x)", "(progn\n(defvar a 1))", ";c\n", "\n", "(", ")", '"', "#|", "a", " "]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES)),
    st.integers(1, 12),
    st.booleans(),
)
def test_any_text_has_a_view_whose_numbers_rise_and_whose_lines_fit(
    pieces: list[str], limit: int, expand: bool
) -> None:
    text = "".join(pieces)
    view = collapse(text, wanted=(lambda form, source: True) if expand else None, limit=limit)
    rows = view.content.split("\n") if view.content else []
    numbers = [int(row.split("\t")[0]) for row in rows]
    assert numbers == sorted(numbers)
    assert len(rows) <= limit
    assert all(1 <= number <= text.count("\n") + 1 for number in numbers)
    if expand:
        source = text.split("\n")
        exact = [row for row in rows if "(progn ...)" not in row]
        assert all(row[7:] in source[int(row[:6]) - 1] for row in exact)
