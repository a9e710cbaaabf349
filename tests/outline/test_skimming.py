"""Leaving out the bodies of functions changes nothing that is found, however a text looks."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.outline import grammar
from gripfast.outline.engine import found_in
from gripfast.outline.languages import language_of, named
from gripfast.outline.skimming import skimmed
from outline.samples import SAMPLES

pytest.importorskip("tree_sitter_python")

TEXTS: dict[str, list[str]] = {
    "Python": [
        "\ndef f():\n    x = '''\ndef g():\n    y'''\n    return x\ndef h():\n    pass\n",
        "\ndef f(a,\n      b=(1,\n         2)):\n    if a:\n        b\n# at the edge\n    return a\n\nx = 1\n",
        "\ndef f():\n    return 1 + \\\n2\nx = 1\n",
        "\ndef f():\n    return (1 +\n2)\nx = 1\n",
        '\ndef f():\n    """\n    def g():\n        y\n        """\n    return 1\n    # after\n\ndef h():\n'
        "    return 2",
        "\nclass A:\n\n    def f(self): return 1\n    if B:\n        x = 1\n\n    async def g(self):\n"
        "        await x\n",
        '\ndef f():\n    x = """\n# no comment"""\n\ny = 1\n',
        "\ndef f():\n    # nothing but words\n\nx = 1\n",
        "\r\ndef f():\r\n    x = 1\r\n\r\n    return x\r\n\r\ndef g():\r\n    pass\r\n",
        "\ndef outer():\n    def inner():\n        x = 1\n        return x\n    return inner\n",
    ],
    "Ruby": [
        "class A\n  def f(a,\n        b)\n    a\n  rescue\n    b\n  end\n  def g = 1\n\n  def h; end\n\nend\n",
        "module B\n  def f\n    x = <<~TEXT\n  end\n    TEXT\n  end\n  def g\n    1\n     end\n   def h\n"
        "     2\n  end\nend\n",
        "\ndef f a\n  a\nend\nprivate def g\n  class << self\n    def h\n      1\n    end\n  end\nend\n",
    ],
    "Go": [
        "package a\n\nfunc f(\n\ta int,\n) int {\n\tx := `\n}\n`\n\treturn a\n}\n\nfunc g() {\n\tgoto end\n"
        "end:\n\tx()\n}\n",
        "package a\n\nfunc f() {\n\t/*\n}\n\t*/\n\tx()\n}\n\nvar s = `\nfunc x() {\n\ty()\n}\n`\n",
        "package a\n\n func f() {\n\tx()\n }\n\nfunc g() {\n\tx()\n\t}\n\n\tfunc h() {\n\tx()\n}\n\n"
        "func (a *A) i() {\n\tx()\n}\n",
    ],
    "Java": [
        "class A {\n    public int f() {\n        return 1;\n     }\n     int g() {\n        return 2;\n"
        "    }\n    int h() { }\n}\n",
        "class A {\n    public B f() {\n        return new B() {\n            int g() {\n                return 1;\n"
        "            }\n        };\n    }\n}\n",
        'class A {\n    static String f() {\n        return """\n    }\n        """;\n    }\n    int g;\n}\n',
        "class A {\n    static void f() {\n        record R(int a) {\n            int g() {\n"
        "                return 1;\n"
        "            }\n        }\n    }\n}\n",
    ],
    "PHP": [
        "<?php\nfunction f()\n{\n    return <<<X\n}\nX;\n}\nfunction g()\n{\n    $a = function () {\n"
        "        return 1;\n    };\n}\n",
        "<?php\nclass A {\n    public function f(): B\n    {\n        return new class {\n"
        "            function g()\n            {\n"
        "                return 1;\n            }\n        };\n    }\n}\n",
        "<?php\nfunction f() {\n    if (true) {\n    ?>\n}\n    <?php\n    }\n}\n",
    ],
    "C": [
        "int f(int a)\n{\n    struct s { int b; } x;\n    if (a) {\n        return 1;\n    }\n    return 0;\n"
        "}\n\nint g(void) {\n"
        "    return 1;\n}\n",
        "int f(a)\n    int a;\n{\n    return a;\n}\n\nint g(void) {\n    {   return 1;\n}   }\n\n"
        "int h(void) {\nout:\n    return 1;\n}\n",
        "int f(void)\n{\n#define A 1\n    return A;\n}\n\nint g(void)\n{\n    /*\n}\n    */\n    return 1;\n}\n",
        "int f(int a)\n{\n#ifdef X\n    if (a) {\n#else\n    if (!a) {\n#endif\n        go();\n    }\n}\n"
        "int g(void)\n{\n}\n",
        "struct s\n{\n    int a;\n};\n\nenum e {\n    A,\n};\n\nstatic int x[] = {\n    1,\n};\n",
    ],
}
# By the grammar, and by Python itself.
UNREADABLE = ("\ndef f():\n    return (1 +\n2)\nx = 1\n", "\ndef f():\n    # nothing but words\n\nx = 1\n")


def _unchanged(source: bytes, _: str) -> bytes:
    return source


def found(source: bytes, name: str, monkeypatch: pytest.MonkeyPatch, *, whole: bool) -> object:
    with monkeypatch.context() as patch:
        if whole:
            patch.setattr(grammar, "skimmed", _unchanged)
        return found_in(source, named(name))


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_what_is_found_is_the_same_as_in_the_whole_text(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = text.encode()
    parsed = found(source, name, monkeypatch, whole=True)
    assert found(source, name, monkeypatch, whole=False) == parsed
    assert found_in(source, named(name)).definitions


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_found_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SAMPLES[name].encode()
    assert found(source, name, monkeypatch, whole=False) == found(source, name, monkeypatch, whole=True)


@pytest.mark.parametrize("text", [text for text in TEXTS["Python"] if text not in UNREADABLE])
def test_functions_of_python_end_where_ast_says(text: str) -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    truth = {(n.name, n.lineno, n.end_lineno) for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)}
    ours = found_in(text.encode(), named("Python")).definitions
    assert {(d.own_name, d.line, d.end) for d in ours if d.kind in ("class", "function")} == truth


def test_the_programs_of_this_project_are_found_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    files = [*(root / "benchmarks").rglob("*"), *(root / "src/gripfast/outline").glob("*.py")]
    for path in files:
        language = language_of(path.name)
        if language is not None and language.query in TEXTS_BY_QUERY:
            source = path.read_bytes()
            whole = found(source, language.name, monkeypatch, whole=True)
            assert found(source, language.name, monkeypatch, whole=False) == whole, path.name


TEXTS_BY_QUERY = {named(name).query for name in TEXTS}


@pytest.mark.parametrize("name", TEXTS)
def test_most_of_a_plain_text_is_left_out(name: str) -> None:
    plain = {
        "Python": "\ndef f(a):\n" + "    x = 1\n" * 20,
        "Ruby": "\ndef f(a)\n" + "  x = 1\n" * 20 + "end\n",
        "Go": "\nfunc f(a int) {\n" + "\tx = 1\n" * 20 + "}\n",
        "Java": "class A {\n    public int f() {\n" + "        x = 1;\n" * 20 + "    }\n}\n",
        "PHP": "<?php\nfunction f()\n{\n" + "    $x = 1;\n" * 20 + "}\n",
        "C": "\nint f(int a)\n{\n" + "    x = 1;\n" * 20 + "}\n",
    }[name].encode()
    text = skimmed(plain, named(name).query)
    assert text.count(b"\n") == plain.count(b"\n") and b"x" not in text


def test_a_fault_outside_of_a_body_is_found_and_one_inside_is_not_looked_for() -> None:
    good = b"\nfunc f() {\n\tx = = 1\n}\n"
    assert found_in(b"package a\n" + good, named("Go")).faults == ()
    assert found_in(b"package a\n" + good + b"func (\n", named("Go")).faults[0] == (4, 4)


PIECES = [
    *(
        b"\n",
        b"\n    ",
        b"\n\t",
        b"\n        ",
        b"{\n",
        b"\n}",
        b"}",
        b"\n    }\n",
        b"\n\n",
        b"\r\n",
        b"\\",
        b"\n  end\n",
        b"\nend\n",
    ),
    *(b"\ndef f(a):\n", b"\n    def g():\n", b"\nfunc f() {\n", b"\n    public int f() {\n", b"\nfunction f()\n{\n"),
    *(
        b"int f(a)\n{\n",
        b"'''",
        b'"""',
        b"`",
        b"/*",
        b"*/",
        b"# x",
        b"<<~X",
        b"x = 1",
        b"class ",
        b"\n  def f\n",
        b"\xff",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.sampled_from(sorted(TEXTS)))
def test_no_row_moves(pieces: list[bytes], name: str) -> None:
    source = b"\n" + b"".join(pieces)
    text = skimmed(source, named(name).query)
    assert text.count(b"\n") == source.count(b"\n")
    kept = [(row, line) for row, line in enumerate(text.split(b"\n")) if line.strip() not in (b"", b"0")]
    lines = source.split(b"\n")
    assert all(lines[row] == line or lines[row].endswith(line) for row, line in kept)


HOSTILE = {
    "Python": ["\ndef f(a,", "\ndef f(a,\n" + ")" * 50, "\ndef f():\n    x"],
    "Ruby": ["\ndef f", "\ndef f\n  x"],
    "Go": [
        "\nfunc f() {\n\t" + "{" * 500_000 + "}" * 500_000 + "\n}\n",
        "\nfunc f(a,",
        "\nfunc f() {\n",
        "\nfunc f() {\n\tx{",
    ],
    "Java": ["\n    public a(b)", "\n    public f() {\n      {"],
    "PHP": ["\nfunction a(b)", "\nfunction f() {\n  {"],
    "C": ["\nint f(a)", ")\n{\n", "\nint f(\n  a", "\n a)", "a "],
}


@pytest.mark.parametrize(
    ("name", "piece"),
    [pytest.param(name, piece, id=f"{name} {piece[:20]!r}") for name, pieces in HOSTILE.items() for piece in pieces],
)
def test_hostile_text_does_not_hold_it_up(name: str, piece: str) -> None:
    source = (piece * (400_000 // len(piece)) if len(piece) < 100_000 else piece).encode()
    began = time.monotonic()
    assert skimmed(source, named(name).query).count(b"\n") == source.count(b"\n")
    assert time.monotonic() - began < 60  # it would take minutes if each head were followed to the end
