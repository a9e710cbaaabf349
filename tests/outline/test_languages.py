"""Every language: its query compiles against the pinned grammar, and its definitions have their true rows."""

from __future__ import annotations

import ast
import json
import sysconfig
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.outline.definition import DEEPEST, Parsed
from gripfast.outline.engine import answer, found_in, order_for
from gripfast.outline.language import Language
from gripfast.outline.languages import LANGUAGES, language_of, named
from gripfast.outline.mending import attempts, bodies, emptied
from outline.expected import EXPECTED
from outline.samples import SAMPLES

pytest.importorskip("tree_sitter_python")

PIECES = [
    *(b"\n", b"\n\n", b" ", b"{\n", b"\n}", b"}", b"(", b")", b";", b",", b"*", b"/* x */", b"\\\n", b"// y"),
    *(b"#if A\n", b"#else\n", b"#endif\n", b"#define A(x) ", b"#ifdef __cplusplus\n", b'extern "C" {\n', b"\n#endif"),
    *(
        b"LUA_API ",
        b"int ",
        b"char *",
        b"f(a)",
        b"OF((int a));",
        b"64 KB",
        b"local ",
        b"struct s FAR *",
        b"A_RESTRICT",
    ),
    *(b"<in out T", b", out A>", b"\n  <A>(", b"type extends ", b"\n in:", b"\\`", b"\xc3\xa9", b"\r\n"),
]
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


@pytest.mark.parametrize("name", ["C", "C++"])
def test_tables_and_constants_of_c_are_found_but_no_include_guards(name: str) -> None:
    source = b"#ifndef A_H\n#define A_H\n#endif\n#define LIMIT 3\nstatic const int *table[] = {\n  1,\n};\nint x;\n"
    assert table(found_in(source, named(name))) == ["constant LIMIT 4-4-4", "variable table 5-5-7"]


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


MENDED: dict[str, tuple[str, str, list[str]]] = {
    "K&R definitions that return a pointer": (
        "C",
        "const char * ZEXPORT name(file, number)\n    gzFile file;\n    int *number;\n{\n    return 0;\n}\n",
        ["function name 1-3-6"],
    ),
    "brackets that open in two branches and close once": (
        "C",
        "int f(int a)\n{\n#ifdef X\n    if (a) {\n#else\n    if (!a) {\n#endif\n        go();\n    }\n}\n"
        "int g(void)\n{\n}\n",
        ["function f 1-1-10", "function g 11-11-13"],
    ),
    "a body that does not parse": (
        "C",
        "int f(int a)\n{\n    if (a) {\n    go();\n}\n\nint g(void)\n{\n    go();\n}\n\n"
        "int h(void) {\n    OPEN({ if (1) {\n}   }\nint i(void) { return 1; }\n",
        ["function f 1-1-5", "function g 7-7-10", "function h 12-12-14", "function i 15-15-15"],
    ),
    'brackets of extern "C"': (
        "C",
        '#ifdef __cplusplus\nextern "C" {\n#endif\nint f(int a);\n#ifdef __cplusplus\n}\n#endif\nint g(int a);\n',
        ["declaration f 4-4-4", "declaration g 8-8-8"],
    ),
    "macros that stand alone or hide a prototype": (
        "C",
        "DEFINE_ALL(sse2, TARGET)\n#undef DEFINE_ALL\n\n"
        "local void f OF((int a));\nsize_t g(void* A_RESTRICT, size_t);\n",
        ["declaration f 4-4-4", "declaration g 5-5-5"],
    ),
    "comments in the text of a macro": (
        "C",
        "#define A(x) \\\n  ((x) ? /* one */ \\\n   1 : 2)\nint f(int a) { return 64 KB; }\n",
        ["macro A 1-1-3", "function f 4-4-4"],
    ),
    "macros that C++ classes have": (
        "C++",
        "class LIB_API Box : public Base {\n    Q_OBJECT\n  public:\n    int size() const LIB_NOEXCEPT {\n"
        "        return 1;\n    }\n    _LIB_CONSTEXPR\n    void\n    open(int a)\n    _LIB_NOEXCEPT;\n};\n",
        ["class Box 1-1-11", "  function Box.size 4-4-6", "  method Box.open 8-10-10"],
    ),
    "variance, and members that begin with <": (
        "TypeScript",
        "interface A<in out T, out B = never> {\n  f: Op\n  <R = never>(\n    a: R\n  ): void\n\n"
        "  <Q>(b: Q): void\n}\nconst x = 1\n",
        ["interface A 1-1-8", "variable x 9-9-9"],
    ),
    "names that are words of the language": (
        "TypeScript",
        'type A<\n  type extends B = B,\n> =\n  | (type extends "x" ? C : never)\n'
        'interface D {\n  name: string\n  in: "query"\n}\n',
        ["type A 1-1-4", "interface D 5-5-8"],
    ),
    "quotes in template types": (
        "TypeScript",
        'type A<B extends string = ""> =\n  `x \\`y\\` ${B}{ ... }`\nclass C {\n  f() {}\n}\n',
        ["type A 1-1-2", "class C 3-3-5", "  method C.f 4-4-4"],
    ),
}


@pytest.mark.parametrize("what", MENDED)
def test_rows_are_true_where_the_grammar_alone_is_lost(what: str) -> None:
    name, source, expected = MENDED[what]
    assert table(found_in(source.encode(), named(name))) == expected


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.sampled_from(["c", "c++", "ts"]))
def test_mending_moves_nothing(pieces: list[bytes], mend: str) -> None:
    source = b"".join(pieces)
    for attempt in attempts(source, mend):
        for text in (attempt.source, emptied(attempt.source, bodies(attempt.source))):
            assert len(text) == len(source)
            assert [at for at, byte in enumerate(text) if byte == 10] == [
                at for at, byte in enumerate(source) if byte == 10
            ]
