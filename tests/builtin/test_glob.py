"""Glob, line by line of its contract."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from searching import call, code, make, text


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path, {"src/a.py": "", "src/deep/b.py": "", "src/c.ts": "", "top.py": "", ".env": ""})


def aged(root: Path, **days: int) -> None:
    for name, age in days.items():
        os.utime(root / name.replace("__", "/"), (1_000_000 - age, 1_000_000 - age))


def test_newest_first_then_by_path(tmp_path: Path) -> None:
    make(tmp_path, {"old": "", "b": "", "a": "", "new": ""})
    aged(tmp_path, old=50, b=10, a=10, new=1)
    assert text(tmp_path, "Glob", pattern="*").splitlines() == ["new", "a", "b", "old"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("**/*.py", {"src/a.py", "src/deep/b.py", "top.py"}),
        ("*.py", {"top.py"}),
        ("src/**", {"src/a.py", "src/deep/b.py", "src/c.ts"}),
        ("src/", {"src/a.py", "src/deep/b.py", "src/c.ts"}),
        ("src/*.{py,ts}", {"src/a.py", "src/c.ts"}),
        ("**/[ab].py", {"src/a.py", "src/deep/b.py"}),
        ("src/*/b.py", {"src/deep/b.py"}),
        ("{src/deep,.}/*.py", {"src/deep/b.py"}),
        ("./src/?.ts", {"src/c.ts"}),
        ("**", {"src/a.py", "src/deep/b.py", "src/c.ts", "top.py", ".env"}),
    ],
)
def test_two_stars_braces_and_classes(root: Path, pattern: str, found: set[str]) -> None:
    assert set(text(root, "Glob", pattern=pattern).splitlines()) == found


def test_a_thousand_at_most_with_the_true_total(tmp_path: Path) -> None:
    make(tmp_path, {f"f{number}": "" for number in range(1003)})
    lines = text(tmp_path, "Glob", pattern="*").splitlines()
    assert len(lines) == 1001
    assert lines[-1] == "[truncated: the newest 1000 of 1003 files; narrow the pattern]"


def test_gitignore_is_respected_unless_asked_otherwise(root: Path) -> None:
    make(root, {".gitignore": "*.ts\n"})
    assert "src/c.ts" not in text(root, "Glob", pattern="**/*")
    assert "src/c.ts" in text(root, "Glob", pattern="**/*", include_ignored=True)


def test_dot_files_are_found_and_git_never(root: Path) -> None:
    make(root, {".git/config": "", ".github/x.yml": "", "sub/.git/config": ""})
    found = text(root, "Glob", pattern="**/*", include_ignored=True).splitlines()
    assert {".env", ".github/x.yml"} <= set(found)
    assert not [name for name in found if ".git/" in name]


@pytest.mark.parametrize("pattern", [".env", "src/a.py", "app/[slug]/page.tsx", "[id", "src", "ignored.log", "{x}"])
def test_a_literal_path_that_exists_is_always_returned(root: Path, pattern: str) -> None:
    make(root, {".gitignore": "*.log\n", "ignored.log": "", "app/[slug]/page.tsx": "", "[id": "", "{x}": ""})
    assert pattern in text(root, "Glob", pattern=pattern).splitlines()


def test_a_literal_absolute_path_works_like_a_relative_one(root: Path) -> None:
    assert text(root, "Glob", pattern=f"{root}/src/a.py") == "src/a.py"
    assert text(root, "Glob", pattern=f"{root}/src/*.ts") == "src/c.ts"


def test_the_pattern_starts_in_path_and_answers_are_from_the_workspace(root: Path) -> None:
    assert text(root, "Glob", pattern="*.py", path="src") == "src/a.py"


@pytest.mark.parametrize("pattern", ["", "[a", "{a,b", "a}", "x\0y", "[z-a]", "a\\", "*/../x", "{a,b}" * 12])
def test_a_bad_pattern_is_an_invalid_argument(root: Path, pattern: str) -> None:
    assert code(root, "Glob", pattern=pattern) == "INVALID_ARGUMENT"


@pytest.mark.parametrize("pattern", ["../*", "../out/x", "/etc/*", "/etc/passwd", "src/../../*"])
def test_a_pattern_can_not_leave_the_workspace(root: Path, pattern: str) -> None:
    assert code(root, "Glob", pattern=pattern) == "SANDBOX_VIOLATION"


def test_a_missing_directory_and_a_file_as_directory_are_told_apart(root: Path) -> None:
    assert code(root, "Glob", pattern="*", path="nope") == "NOT_FOUND"
    assert code(root, "Glob", pattern="x", path="nope") == "NOT_FOUND"
    assert code(root, "Glob", pattern="*", path="top.py") == "NOT_DIRECTORY"
    assert text(root, "Glob", pattern="nope/*").startswith("No file matches")


def test_nothing_found_says_what_to_try(root: Path) -> None:
    answer = text(root, "Glob", pattern="*.ts")
    assert answer.startswith("No file matches `*.ts` in `.`")
    assert "`**/*.ts`" in answer and "include_ignored" in answer


def test_odd_names_are_escaped_and_stay_on_one_line(tmp_path: Path) -> None:
    for name in (b"new\nline", b"esc\x1b[31m", b"odd\xff", b"-rf", "bidi\u202e".encode()):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).write_text("")
    lines = text(tmp_path, "Glob", pattern="**/*").splitlines()
    assert sorted(lines) == ["-rf", "bidi\\u202e", "esc\\x1b[31m", "new\\nline", "odd\\xff"]


def test_an_explosive_pattern_ends(root: Path) -> None:
    make(root, {"a" * 200: ""})
    assert call(root, "Glob", pattern="*a" * 80 + "b").error is None


@pytest.mark.parametrize("pattern", [".git/*", ".git/config", "**/.git/*", "a/.git/**"])
def test_git_is_not_listed_even_when_it_is_asked_for(tmp_path: Path, pattern: str) -> None:
    make(tmp_path, {".git/config": "x", "a/.git/config": "x", "a/b.txt": "x"})
    assert text(tmp_path, "Glob", pattern=pattern).startswith("No file matches")
    assert text(tmp_path, "Glob", pattern="*", path=".git").startswith("No file matches")
