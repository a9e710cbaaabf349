"""Every language: its query compiles against the pinned grammar, and its definitions have their true rows."""

from __future__ import annotations

import ast
import json
import sysconfig
from pathlib import Path

import pytest

from gripfast.outline.definition import DEEPEST, Parsed
from gripfast.outline.engine import answer, found_in, order_for
from gripfast.outline.language import Language
from gripfast.outline.languages import LANGUAGES, language_of, named
from outline.expected import EXPECTED
from outline.samples import SAMPLES

pytest.importorskip("tree_sitter_python")

GRAMMARS = [language for language in LANGUAGES if language.engine == "grammar"]


def table(found: Parsed) -> list[str]:
    return [f"{'  ' * d.depth}{d.kind} {d.name} {d.start}-{d.head}-{d.end}" for d in found.definitions]


@pytest.mark.parametrize("language", GRAMMARS, ids=lambda language: language.name)
def test_a_query_compiles_against_the_pinned_grammar(language: Language) -> None:
    order = json.loads(json.dumps(order_for(language)))  # as a worker gets it
    assert Language.from_plain(order["language"]) == language
    assert answer(order, b"")["definitions"] == ()


@pytest.mark.parametrize("name", SAMPLES)
def test_definitions_are_found_with_their_names_kinds_and_rows(name: str) -> None:
    found = found_in(SAMPLES[name].encode(), named(name))
    assert found.faults == ()
    assert table(found) == EXPECTED[name]


def test_a_computed_name_is_one_name() -> None:
    source = b"class Box {\n  [Symbol.iterator]() {\n    return 1\n  }\n  size() {}\n}\n"
    found = found_in(source, named("TypeScript")).definitions
    assert [each.own_name for each in found] == ["Box", "[Symbol.iterator]", "size"]


def test_what_lies_deeper_than_anyone_nests_is_folded_with_what_is_around_it() -> None:
    """Qualified names of all levels of hostile nesting would take memory that grows with its square."""
    source = b"".join(b" " * level + b"class a%d:\n" % level for level in range(90)) + b" " * 90 + b"x = 1\n"
    found = found_in(source, named("Python")).definitions
    assert [each.depth for each in found] == list(range(DEEPEST + 1))
    assert {each.end for each in found} == {91}


def test_there_is_a_sample_of_every_language_that_has_a_query() -> None:
    queries = {language.query for language in GRAMMARS}
    assert {named(name).query for name in SAMPLES if named(name).engine == "grammar"} == queries


def test_every_query_file_belongs_to_a_language() -> None:
    place = Path(__file__).parents[2] / "src" / "gripfast" / "outline" / "queries"
    written = {path.stem for path in place.glob("*.scm")}
    assert written == {language.query for language in GRAMMARS} | {"ecmascript"}


def test_no_suffix_belongs_to_two_languages() -> None:
    suffixes = [suffix for language in LANGUAGES for suffix in language.suffixes]
    assert len(suffixes) == len(set(suffixes))


@pytest.mark.parametrize(
    ("path", "first_line", "language"),
    [
        ("a/b.py", "", "Python"),
        ("a/B.PY", "", "Python"),
        ("Makefile", "", "Make"),
        ("run", "#!/usr/bin/env python3.11", "Python"),
        ("run", "#!/bin/sh -e", "Bash"),
        ("a.lisp", "", "Common Lisp"),
        ("a.clj", "", "Clojure"),
        ("run", "#!", None),
        ("a.unknown", "", None),
    ],
)
def test_a_language_is_told_by_name_or_first_line(path: str, first_line: str, language: str | None) -> None:
    found = language_of(path, first_line)
    assert (found and found.name) == language


def test_python_definitions_are_those_that_ast_finds_in_the_standard_library() -> None:
    root = Path(sysconfig.get_path("stdlib"))
    files = [path for path in sorted(root.glob("*.py"))[::3] if path.stat().st_size < 100_000]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    compared = 0
    for path in files:
        source = path.read_bytes()
        truth = {(n.name, n.lineno, n.end_lineno) for n in ast.walk(ast.parse(source)) if isinstance(n, kinds)}
        found = found_in(source, named("Python")).definitions
        ours = {(d.own_name, d.line, d.end) for d in found if d.kind in ("class", "function")}
        assert ours == truth, path.name
        compared += len(truth)
    assert compared > 500
