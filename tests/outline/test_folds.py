"""Folds in real files end where other programs say that the definitions end."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import pytest

from gripfast.outline.engine import found_in
from gripfast.outline.folds import Fold
from gripfast.outline.language import Language
from gripfast.outline.languages import language_of, named
from gripfast.outline.text import SourceText, lines_of
from gripfast.outline.view import collapsed
from outline.samples import SAMPLES

pytest.importorskip("tree_sitter_python")

PROGRAMS = sorted((Path(__file__).parents[2] / "benchmarks" / "outline_truth").iterdir())
FUNCTIONS = {"function", "method", "member", "func", "singletonMethod"}
Rows = tuple[str, int, int]  # name, first row, last row


def without_an_end(source: str, language: Language, truth: Iterable[Rows]) -> tuple[int, list[Rows]]:
    """How many definitions are shown, and those of them whose last row is neither shown nor the last of a fold."""
    text = SourceText(lines_of(source), language.comment, language.docstring, language.idle)
    view = collapsed(text, found_in(source.encode(), language))
    shown = {row for row in view.rows if isinstance(row, int)}
    ends = {fold.last for fold in view.rows if isinstance(fold, Fold)}
    seen = [each for each in truth if each[1] in shown]
    return len(seen), [each for each in seen if each[2] not in shown | ends]


def test_folds_of_the_standard_library_end_where_ast_says() -> None:
    root = Path(sysconfig.get_path("stdlib"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    compared = 0
    for path in [path for path in sorted(root.glob("*.py"))[1::3] if path.stat().st_size < 100_000]:
        source = path.read_text(encoding="utf-8")
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
        truth = [(node.name, node.lineno, node.end_lineno or 0) for node in nodes]
        count, wrong = without_an_end(source, named("Python"), truth)
        assert wrong == [], path.name
        compared += count
    assert compared > 500


@pytest.mark.skipif(shutil.which("ctags") is None, reason="no universal-ctags on this machine")
def test_folds_of_other_languages_end_where_ctags_says(tmp_path: Path) -> None:
    samples = [tmp_path / f"{name}{named(name).suffixes[0]}" for name in SAMPLES]
    for path in samples:
        path.write_text(SAMPLES[path.stem] + "\n" * 40, encoding="utf-8")
    compared = 0
    for path in [*PROGRAMS, *samples]:
        language = language_of(path.name)
        assert language is not None
        count, wrong = without_an_end(path.read_text(encoding="utf-8"), language, functions(path))
        assert wrong == [], path.name
        compared += count
    assert compared > 20


def functions(path: Path) -> list[Rows]:
    """Those that ctags finds and knows the end of."""
    command = ["ctags", "-f", "-", "--output-format=json", "--fields=+neK", str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("this ctags writes no JSON")
    tags = [json.loads(line) for line in found.stdout.splitlines()]
    return [(tag["name"], tag["line"], tag["end"]) for tag in tags if tag.get("kind") in FUNCTIONS and "end" in tag]
