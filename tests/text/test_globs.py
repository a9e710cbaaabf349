"""The glob language: what matches, what is refused, and that no pattern runs away."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.errors import InvalidArgument
from gripfast.text.globs import compile_filter, compile_glob, hiding

MATCHES: list[tuple[str, list[str], list[str]]] = [
    ("*.py", ["a.py", ".py", "é.py"], ["a/b.py", "a.pyc"]),
    ("**/*.py", ["a.py", "a/b.py", "a/b/c.py"], ["a.pyc", "a/b"]),
    ("a/**", ["a/b", "a/b/c", "a/"], ["a", "b", "ab/c"]),
    ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "a/b/c"]),
    ("**", ["a", "a/b", ".hidden/x"], []),
    ("**/node_modules/**", ["node_modules/", "a/node_modules/x"], ["node_modules", "a/node_modules_/x"]),
    ("{a,b}/*.{c,h}", ["a/x.c", "b/y.h"], ["c/x.c", "a/x.o"]),
    ("{a{b,c},d}x", ["abx", "acx", "dx"], ["ax", "abdx"]),
    ("{src,test/unit}/*", ["src/a", "test/unit/a"], ["test/a"]),
    ("[!a]b", ["cb"], ["ab", "/b"]),
    ("[^a-c]", ["d"], ["a", "b", "/"]),
    ("[]a]", ["]", "a"], ["b"]),
    ("[a-]", ["a", "-"], ["b"]),
    ("a?c", ["abc", "aéc"], ["a/c", "ac"]),
    ("a**b", ["ab", "axyb"], ["a/b"]),
    ("\\*\\[x", ["*[x"], ["a[x"]),
    ("./a", ["a"], ["./a"]),
    ("*a*b*c", ["abc", "xaybzc", "abcbc"], ["abcd", "acb"]),
    ("a.b+c(d)|e^$", ["a.b+c(d)|e^$"], ["axb+c(d)|e^$"]),
    ("x\ny*", ["x\nyz"], ["xyz"]),
]


@pytest.mark.parametrize(("pattern", "yes", "no"), MATCHES, ids=[pattern for pattern, _, _ in MATCHES])
def test_a_pattern_matches_whole_paths_and_nothing_else(pattern: str, yes: list[str], no: list[str]) -> None:
    glob = compile_glob(pattern)
    assert [path for path in yes if not glob.matches(path)] == []
    assert [path for path in no if glob.matches(path)] == []


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("", "empty"),
        ("a\0b", "NUL"),
        ("[a", "'['"),
        ("[]", "'['"),
        ("{a,b", "'{'"),
        ("a}", "'}'"),
        ("a\\", "backslash"),
        ("[z-a]", "backwards"),
        ("{a,b}" * 12, "alternatives"),
        ("x" * 5000, "5000"),
    ],
)
def test_a_bad_pattern_is_refused_with_what_is_wrong_with_it(pattern: str, word: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(word)):
        compile_glob(pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 60 + "b", "a" * 255),
        ("**/*a*a*/" * 40 + "b", "/".join(["a" * 60] * 60)),
        ("{a,b}*{a,b}*{a,b}*{a,b}*{a,b}*{a,b}*{a,b}*c", "ab" * 120),
        ("**/" * 300 + "x", "a/" * 1500),
    ],
)
def test_a_hostile_pattern_costs_what_a_harmless_one_costs(pattern: str, path: str) -> None:
    started = time.monotonic()
    assert not compile_glob(pattern).matches(path)
    assert time.monotonic() - started < 20  # without the atomic groups it is centuries


NAMES = st.text("ab.", min_size=1, max_size=4)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PARTS = st.one_of(
    st.just("**"), st.lists(st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[!a]"]), min_size=1).map("".join)
)


@given(st.lists(PARTS, min_size=1, max_size=4), PATHS)
def test_matching_agrees_with_a_naive_matcher(parts: list[str], path: str) -> None:
    parts = [part if part == "**" else re.sub(r"\*+", "*", part) for part in parts]
    while parts[0] == "." and len(parts) > 1:  # "./x" is "x"
        parts = parts[1:]
    assert compile_glob("/".join(parts)).matches(path) == naive(parts, path.split("/"))


@given(st.lists(PARTS, min_size=1, max_size=3), PATHS)
def test_the_hint_for_ripgrep_lets_through_all_that_matches(parts: list[str], path: str) -> None:
    glob = compile_glob("/".join(parts))
    if glob.name_hint is not None and glob.matches(path):
        assert compile_glob(glob.name_hint).matches(path.rpartition("/")[2])


def naive(parts: list[str], names: list[str]) -> bool:
    if not parts:
        return not names
    if parts[0] == "**":
        if len(parts) == 1:
            return bool(names)
        return any(naive(parts[1:], names[skip:]) for skip in range(len(names)))
    return bool(names) and naive_name(parts[0], names[0]) and naive(parts[1:], names[1:])


def naive_name(part: str, name: str) -> bool:
    if not part:
        return not name
    if part[0] == "*":
        return any(naive_name(part[1:], name[skip:]) for skip in range(len(name) + 1))
    end = part.index("]") + 1 if part[0] == "[" else 1
    one = part[:end]
    fits = bool(name) and (
        one == "?" or one == name[0] or (one == "[ab]" and name[0] in "ab") or (one == "[!a]" and name[0] != "a")
    )
    return fits and naive_name(part[end:], name[1:])


def test_a_filter_without_a_slash_matches_at_any_depth() -> None:
    assert compile_filter("*.py").matches("a/b/c.py")
    assert compile_filter("src/*.py").matches("src/c.py")
    assert not compile_filter("src/*.py").matches("a/src/c.py")


def test_a_place_is_hidden_from_ripgrep_only_in_words_it_reads_the_same_way() -> None:
    assert hiding("*.pem") == ["*.pem"]
    assert hiding("secrets/keys") == ["/secrets/keys"]
    assert hiding("/etc") == hiding("~/x") == hiding("[a]") == hiding("{a,{b,c}}") == []


@pytest.mark.parametrize(
    "pattern", ["{a,b}" * 9 + "*a" * 2000, "{a,b}" * 9 + "?" * 4000, "{" * 2000 + "a" + "}" * 2000]
)
def test_a_pattern_that_would_take_long_to_compile_is_refused(pattern: str) -> None:
    started = time.process_time()
    with pytest.raises(InvalidArgument, match="not valid"):
        compile_glob(pattern)
    assert time.process_time() - started < 5
