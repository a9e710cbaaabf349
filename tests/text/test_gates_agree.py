"""The rules' gate and the scope's gate agree on every name: what a pattern closes in one, it closes in the other."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast import PermissionRule, Permissions
from gripfast.errors import InvalidArgument
from gripfast.host.files.patterns import Patterns
from gripfast.text.fold import folded
from gripfast.text.patterns import check_pattern, path_glob
from gripfast.text.unseen import is_invisible


def rules_close(rules: Permissions, path: str) -> bool:
    return rules.judge(tool="Write", effect="write", spellings=(path,)).action == "deny"


def scope_closes(patterns: Patterns, path: str) -> bool:
    return patterns.find(path, f"/root/{path}") is not None


def denying(pattern: str) -> Permissions:
    return Permissions("allow", [PermissionRule("*", pattern, "deny")])


def test_both_gates_agree_on_a_name_with_any_code_point_in_it() -> None:
    rules, patterns = denying("{.env,[a-zß-ÿ]}"), Patterns(["{.env,[a-zß-ÿ]}"])
    apart: list[str] = []
    empty = range(0x40000, 0xE0000)  # ten planes without a character: one of each 64 stands for them
    codes = [code for code in range(sys.maxunicode + 1) if code not in empty or code % 64 == 0]
    for code in codes:
        char = chr(code)
        for name in (char, f".e{char}nv"):
            closed = scope_closes(patterns, name)
            if rules_close(rules, name) != closed or (is_invisible(char) and name != char and not closed):
                apart.append(name)
    assert apart == []


NAMES = st.lists(
    st.one_of(
        st.sampled_from("aAbB.. -éÉ\u0301ß\u200b\u202e\ufe0f\U000e0041İı"), st.characters(exclude_characters="/\0")
    ),
    min_size=1,
    max_size=6,
).map("".join)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
WILD = st.sampled_from(
    ["a", "A", "b", ".", "é", "*", "**", "?", "[ab]", "[!a]", "{a,b}", "{a,b/c}", "/", "\\a", "\u200b"]
)
PATTERNS = st.one_of(st.lists(WILD, min_size=1, max_size=6).map("".join), PATHS)


@given(PATTERNS, PATHS)
def test_both_gates_agree_on_every_pattern_and_path(pattern: str, path: str) -> None:
    try:
        rules, patterns = denying(pattern), Patterns([pattern])
    except (InvalidArgument, ValueError):
        return
    if not pattern.startswith(("/", "~")) and pattern not in ("*", "**", "**/*"):
        assert rules_close(rules, path) == scope_closes(patterns, path)


@given(NAMES)
def test_a_name_closed_as_it_is_written_is_closed_in_every_spelling(name: str) -> None:
    literal = "".join(f"\\{char}" if char in "*?[]{}\\" else char for char in name)
    try:
        rules, patterns = denying(literal), Patterns([literal])
    except (InvalidArgument, ValueError):
        return
    if literal.startswith("~") or not folded(name):
        return
    for spelling in (name, name.upper(), unicodedata.normalize("NFD", name), f"{name}.", f"{name} ", f"\u200b{name}"):
        if folded(spelling) == folded(name):
            assert rules_close(rules, f"d/{spelling}/x") and scope_closes(patterns, f"d/{spelling}/x")


@pytest.mark.parametrize("spelling", [".GIT", ".g\u200cit", ".git.", ".git ", ".gi\U000e0041t", ".g\ufe0fit"])
def test_a_closed_name_is_closed_however_it_is_dressed_up(spelling: str) -> None:
    assert rules_close(denying(".git"), f"a/{spelling}/x") and scope_closes(Patterns([".git"]), f"a/{spelling}/x")


@given(st.text(st.characters(exclude_categories=[]), max_size=12))
def test_folding_a_folded_name_changes_nothing(name: str) -> None:
    assert folded(folded(name)) == folded(name)


@pytest.mark.parametrize("pattern", ["secrets/**", "secrets/", "secrets"])
def test_a_closed_directory_is_closed_itself_and_below_in_both_gates(pattern: str) -> None:
    for path in ("secrets", "secrets/a", "secrets/a/b"):
        assert rules_close(denying(pattern), path) and scope_closes(Patterns([pattern]), path)


def test_a_pattern_is_refused_by_both_gates_in_the_same_words() -> None:
    for pattern in ("[a", "{a", "a}", "a\\", "[z-a]", "x" * 5000, "{a,b}" * 12):
        with pytest.raises(InvalidArgument) as by_rules:
            denying(pattern)
        with pytest.raises(InvalidArgument) as by_scope:
            Patterns([pattern])
        assert by_scope.value.message.endswith(by_rules.value.message)


@given(st.text(st.sampled_from("ab0Z *._/+-"), min_size=1, max_size=30).filter(str.strip))
def test_a_pattern_that_is_accepted_without_compiling_it_can_be_compiled(pattern: str) -> None:
    check_pattern(pattern)
    path_glob(pattern)


def test_the_ready_made_rules_are_compiled_only_when_they_are_used() -> None:
    path_glob.cache_clear()
    PermissionRule("effect:run", "git push *", "ask")
    assert path_glob.cache_info().currsize == 0
