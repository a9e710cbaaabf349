"""What a session refuses to start with, and the patterns of a scope."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.errors import InvalidArgument, NotDirectory, NotFound
from gripfast.host.files import patterns
from gripfast.host.files.fs import ScopedFs
from gripfast.host.files.paths import WorkPath
from gripfast.host.files.patterns import Patterns
from gripfast.host.files.scope import Scope
from gripfast.text.fold import folded, foldings
from gripfast.text.patterns import closing


def test_start_refuses_a_root_that_is_empty_missing_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidArgument):
        Scope.workspace("")
    with pytest.raises(InvalidArgument):
        Scope.workspace("a\0b")
    with pytest.raises(NotFound, match="none"):
        Scope.workspace(tmp_path / "none")
    with pytest.raises(NotDirectory, match="file"):
        Scope.workspace(tmp_path / "file")
    with pytest.raises(InvalidArgument, match="at least one"):
        Scope()


def test_start_refuses_home_and_what_holds_it_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "people" / "me" / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "people" / "me"))
    os.symlink(tmp_path / "people" / "me", tmp_path / "alias")
    for root in ("/", "~", tmp_path / "people" / "me", tmp_path / "people", tmp_path / "alias"):
        with pytest.raises(InvalidArgument, match="home directory"):
            Scope.workspace(root)
        with pytest.raises(InvalidArgument, match="home directory"):
            Scope(write=[root])
    assert Scope.workspace("/", wide=True).roots[0].real == "/"
    assert Scope.workspace("~/project").roots[0].real == str(tmp_path / "people" / "me" / "project")


def test_a_text_where_a_list_is_wanted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="`write` is a list"):
        Scope(write=str(tmp_path))
    with pytest.raises(InvalidArgument, match="`deny` is a list"):
        Scope.workspace(tmp_path, deny=".env")


def test_relative_paths_start_at_the_first_root(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name)
    fs = ScopedFs(Scope.workspace(tmp_path / "two", tmp_path / "one"))
    assert fs.read(WorkPath("x")) == "two"
    assert fs.read(WorkPath(f"{tmp_path}/one/x")) == "one"
    assert fs.roots == (str(tmp_path / "two"), str(tmp_path / "one"))
    assert fs.show(WorkPath(f"{tmp_path}/two/x")) == "x"
    assert fs.show(WorkPath("../one/x")) == f"{tmp_path}/one/x"
    (tmp_path / "two" / "sub" / "deep").mkdir(parents=True)
    os.symlink("sub/deep", tmp_path / "two" / "link")
    assert fs.show(WorkPath("link/../x")) == "sub/x"
    assert fs.show(WorkPath("link/y")) == "link/y"


def test_a_root_that_vanished_since_is_said(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    scope = Scope.workspace(tmp_path, tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(NotFound, match="gone"):
        ScopedFs(scope)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (".env", [".env", "a/.env", ".env/x", ".ENV", ".e\u200bnv", ".env."], [".envrc", "a.env", "env"]),
        ("*.pem", ["x.pem", "a/b/x.pem", "x.PEM"], ["x.pem2", "pem"]),
        ("a/b", ["a/b", "a/b/c"], ["x/a/b", "a/bc", "a"]),
        ("a/*/c", ["a/x/c"], ["a/c", "a/x/y/c"]),
        ("a/**/c", ["a/c", "a/x/c", "a/x/y/c"], ["b/c"]),
        ("**/w/x", ["w/x", "a/w/x/y"], ["a/w"]),
        ("{a,b}.txt", ["a.txt", "b.txt"], ["c.txt"]),
        ("x[0-9]", ["x1"], ["xa", "x"]),
        ("x[!0-9]", ["xa"], ["x1", "x/"]),
        ("secrets/", ["secrets/a", "a/secrets"], ["secret"]),
    ],
)
def test_patterns_match_as_they_say(pattern: str, matching: list[str], other: list[str]) -> None:
    patterns = Patterns([pattern])
    assert [path for path in matching if patterns.find(path, f"/root/{path}") is None] == []
    assert [path for path in other if patterns.find(path, f"/root/{path}") is not None] == []


@given(
    st.lists(st.sampled_from([".git", "git~1", "a", "A.b", "*.b", "a/b", "**/a/b", "x."]), min_size=1),
    st.lists(st.sampled_from([".git", ".GIT.", "git~1", "a", "a.b ", "c.b", "b", "x"]), min_size=1, max_size=4),
)
def test_several_patterns_close_what_each_of_them_closes_and_the_first_is_named(
    texts: list[str], names: list[str]
) -> None:
    path = "/".join(names)
    closed = [text for text in texts if any(map(closing(text).fullmatch, foldings(path)))]
    assert Patterns(texts).find(path, f"/root/{path}") == (closed[0] if closed else None)


def test_a_pattern_is_compiled_when_a_place_is_compared_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []

    def counted(glob: str) -> re.Pattern[str]:
        compiled.append(glob)
        return closing(glob)

    monkeypatch.setattr(patterns, "closing", counted)
    found = Patterns([".git", "**/.github/hooks", "{a,b}.yml"])
    assert compiled == ["{a,b}.yml"]
    assert [found.find(".git/config", "/r/.git/config") for _ in range(2)] == [".git"] * 2
    assert compiled == ["{a,b}.yml", ".git"]


@pytest.mark.parametrize("pattern", ["", "/", "[a", "{a", "a\0"])
def test_a_pattern_that_means_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgument):
        Patterns([pattern])


def test_names_fold_as_forgiving_file_systems_fold_them() -> None:
    assert folded(".GIT/x") == folded(".g\u200cit/x") == folded(".git /x") == folded(".git./x") == ".git/x"
    assert folded("..") == ".." and folded("a/../b") == "a/../b"


RUNAWAYS = [
    "*a" * 12 + "b",
    "**a" * 12 + "b",
    "**/" * 30 + "x",
    "[a-z]*" * 15 + "1",
    "?*" * 30 + "b",
    "**/*a" * 8 + "b",
]


@pytest.mark.parametrize("pattern", RUNAWAYS)
def test_a_hostile_pattern_costs_what_a_harmless_one_costs(pattern: str) -> None:
    """A file in the workspace can add patterns; one that takes its time would hold up the whole server."""
    patterns = Patterns([pattern])
    started = time.process_time()
    for path in ("a" * 200, "/".join(["a"] * 100)):
        assert patterns.find(path, f"/root/{path}") is None
    assert time.process_time() - started < 5


@pytest.mark.parametrize("patterns", [["a"] * 1001, ["{a,b}" * 8 + "c"] * 900], ids=["many", "wide"])
def test_patterns_that_would_take_long_to_hold_are_refused(patterns: list[str]) -> None:
    started = time.process_time()
    with pytest.raises(InvalidArgument, match="patterns"):
        Patterns(patterns)
    assert time.process_time() - started < 30
