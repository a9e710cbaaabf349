"""How rules decide: deny first, then the first match, then the default; for files and for commands."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.call.decision import ACTIONS, Action, Decision, PermissionRule
from gripfast.call.rules import Permissions
from gripfast.call.shell.options import Program
from gripfast.text.patterns import path_glob, word_glob

ALLOW_LS = PermissionRule("Bash", "ls *", "allow")


def bash(permissions: Permissions, line: str) -> Decision:
    return permissions.judge(tool="Bash", effect="run", spellings=(line,))


def write(permissions: Permissions, *spellings: str) -> Action:
    return permissions.judge(tool="Write", effect="write", spellings=spellings).action


# --- order ---


def test_a_decision_that_was_made_before_is_made_again_for_exactly_the_same_question() -> None:
    rules = Permissions("ask", [PermissionRule("Write", "*.md", "allow"), PermissionRule("Bash", "ls *", "allow")])
    for _ in range(2):
        assert rules.judge(tool="Write", effect="write", spellings=("a.md",)).action == "allow"
        assert rules.judge(tool="Write", effect="write", spellings=("a.md", "b.py")).action == "ask"
        assert rules.judge(tool="Edit", effect="write", spellings=("a.md",)).action == "ask"
        assert rules.judge(tool="Bash", effect="run", spellings=("ls a",)).action == "allow"


def test_a_deny_wins_wherever_it_stands() -> None:
    permissions = Permissions("allow", [ALLOW_LS, PermissionRule("bash", "ls -R *", "deny")])
    assert bash(permissions, "ls").action == "allow"
    assert bash(permissions, "ls -R src").action == "deny"
    files = Permissions("ask", [PermissionRule("Write", "*", "allow"), PermissionRule("*", "secret/**", "deny")])
    assert write(files, "a") == "allow"
    assert write(files, "secret/a") == "deny"


def test_without_a_deny_the_first_match_decides() -> None:
    first = PermissionRule("Write", "src/**", "ask", source="one")
    permissions = Permissions("deny", [first, PermissionRule("Write", "*", "allow")])
    decision = permissions.judge(tool="Write", effect="write", spellings=("src/a",))
    assert (decision.action, decision.rule) == ("ask", first)
    assert write(permissions, "docs/a") == "allow"
    commands = Permissions("deny", [PermissionRule("Bash", "ls -l *", "ask"), ALLOW_LS])
    assert bash(commands, "ls -l").action == "ask"
    assert bash(commands, "ls -a").action == "allow"
    turned = Permissions("deny", [ALLOW_LS, PermissionRule("Bash", "ls -l *", "ask")])
    assert bash(turned, "ls -l").action == "allow"


@pytest.mark.parametrize("default", ACTIONS)
def test_without_a_match_the_default_decides(default: Action) -> None:
    permissions = Permissions(default, [ALLOW_LS])
    assert write(permissions, "a") == default
    decision = bash(permissions, "mytool x")
    assert (decision.action, decision.rule) == (default, None)
    assert f"the default is {default}" in decision.reason


def test_tool_names_match_in_any_case_and_a_star_matches_all() -> None:
    permissions = Permissions("allow", [PermissionRule("WRITE", "a", "deny"), PermissionRule("*", "b", "deny")])
    assert [write(permissions, path) for path in ("a", "b", "c")] == ["deny", "deny", "allow"]
    assert permissions.judge(tool="Read", effect="read", spellings=("a",)).action == "allow"


def test_a_rule_may_be_about_an_effect() -> None:
    permissions = Permissions("deny", [PermissionRule("effect:read", "*", "allow")])
    assert permissions.judge(tool="Anything", effect="read", spellings=("a",)).action == "allow"
    assert permissions.judge(tool="Anything", effect="write", spellings=("a",)).action == "deny"
    assert permissions.judge(tool="Anything", effect="", spellings=()).action == "deny"


def test_a_tool_without_a_subject_is_matched_by_a_star_only() -> None:
    permissions = Permissions("deny", [PermissionRule("done", "x", "ask"), PermissionRule("done", "*", "allow")])
    assert permissions.judge(tool="done", effect="write", spellings=()).action == "allow"


# --- files ---


@pytest.mark.parametrize(
    ("pattern", "path", "allows", "denies"),
    [
        ("src/**", "src/a/b.py", True, True),
        ("src/*", "src/a.py", True, True),
        ("src/*", "src/a/b.py", False, True),  # what is closed is closed below
        ("src", "src/a.py", False, True),
        ("*.md", "a.md", True, True),
        ("*.md", "docs/a.md", False, True),  # a name: allowed in the root only, denied at any depth
        ("**/*.md", "docs/a.md", True, True),
        ("**/*.md", "a.md", True, True),
        ("**/*.md", "/home/x/a.md", False, True),
        ("*", "/anywhere", True, True),
        ("docs/*.md", "docs/a.md", True, True),
        ("docs/*.md", "a.md", False, False),
        ("**/test/*.py", "a/b/test/x.py", True, True),
        ("{src,tests}/**", "tests/x", True, True),
        ("[ab].txt", "b.txt", True, True),
        ("[!ab].txt", "b.txt", False, False),
        (".git", ".GIT/config", False, True),  # case does not open what is closed
        (".git", ".gi\u200bt/config", False, True),
        (".env", "a/.env", False, True),
        ("/etc/**", "/etc/passwd", True, True),
        ("./src/**", "src/a", True, True),
        ("src/", "src/a", True, True),
        ("src/**", "../src/a", False, False),
        ("a?c", "abc", True, True),
        ("a*b*c", "a--b--c", True, True),
        ("a*b*c", "a--c--b", False, False),
    ],
)
def test_path_patterns_allow_narrowly_and_deny_widely(pattern: str, path: str, allows: bool, denies: bool) -> None:
    assert (write(Permissions("ask", [PermissionRule("Write", pattern, "allow")]), path) == "allow") is allows
    assert (write(Permissions("ask", [PermissionRule("Write", pattern, "deny")]), path) == "deny") is denies


def test_every_spelling_of_a_path_is_judged() -> None:
    permissions = Permissions(
        "ask", [PermissionRule("Write", "src/**", "allow"), PermissionRule("*", ".git", "deny")]
    )
    assert write(permissions, "src/a") == "allow"
    assert write(permissions, "src/link", ".git/config") == "deny"
    assert write(permissions, ".git/link", "src/a") == "deny"
    assert write(permissions, "src/link", "docs/a") == "ask"


def test_inside_only_asks_before_a_path_outside_the_roots() -> None:
    permissions = Permissions("deny", [PermissionRule("*", "*", "allow")], inside_only=True).within(["/w/a", "/w/b"])
    assert write(permissions, "src/a") == "allow"
    assert write(permissions, "/w/b/x") == "allow"
    assert write(permissions, "/w/bb/x") == "ask"
    assert write(permissions, "/etc/passwd") == "ask"


@given(st.text("ab*?/.", min_size=1, max_size=12), st.text("ab/.", max_size=12))
def test_matching_below_includes_matching_exactly(pattern: str, path: str) -> None:
    glob = path_glob(pattern)
    if glob.matches(path):
        assert glob.covers(path)


def test_a_wildcard_that_closes_also_stands_for_a_final_dot() -> None:
    assert path_glob("??").covers("a.")
    assert path_glob("a").covers("a.")


@given(st.text("ab*", max_size=14), st.text("ab", max_size=14))
def test_a_star_matches_as_its_definition_says(pattern: str, word: str) -> None:
    assert word_glob(pattern).matches(word) is _by_definition(pattern, word)


def _by_definition(pattern: str, word: str) -> bool:
    if not pattern:
        return not word
    if pattern[0] == "*":
        return any(_by_definition(pattern[1:], word[at:]) for at in range(len(word) + 1))
    return word[:1] == pattern[0] and _by_definition(pattern[1:], word[1:])


# --- commands ---


@pytest.mark.parametrize(
    ("pattern", "line", "matched"),
    [
        ("rm *", "rm", True),
        ("rm *", "rm -rf x", True),
        ("git status", "git status", True),
        ("git status", "git status -s", False),
        ("git status *", "git status -s", True),
        ("git", "git status", False),
        ("mk*", "mkfs", True),
        ("git *", "git-lfs", False),
        ("*", "anything at all", True),
    ],
)
def test_command_patterns_are_matched_word_by_word(pattern: str, line: str, matched: bool) -> None:
    assert (bash(Permissions("ask", [PermissionRule("Bash", pattern, "deny")]), line).action == "deny") is matched


def test_every_command_of_a_line_must_be_allowed() -> None:
    permissions = Permissions("ask", [ALLOW_LS, PermissionRule("Bash", "cat *", "allow")])
    assert bash(permissions, "ls && cat x | ls").action == "allow"
    for line in ("ls; rm x", "rm x; ls", "ls | rm", "ls && cat x || rm x"):
        decision = bash(permissions, line)
        assert decision.action == "ask"
        assert "`rm" in decision.reason
    assert bash(permissions, "ls; rm x").commands == (("ls",), ("rm", "x"))


def test_a_bare_name_is_the_program_on_the_path_and_no_other() -> None:
    permissions = Permissions("ask", [ALLOW_LS])
    for line in ("./ls", "/tmp/ls", "src/ls", "LS", "'l s'"):
        assert bash(permissions, line).action == "ask"
    spelled = Permissions("ask", [PermissionRule("Bash", "./gradlew *", "allow")])
    assert bash(spelled, "./gradlew build").action == "allow"


def test_a_wildcard_for_a_word_does_not_allow_options_or_paths_to_programs() -> None:
    permissions = Permissions(
        "ask", [PermissionRule("Bash", "* x", "allow"), PermissionRule("Bash", "ls ?*", "allow")]
    )
    assert bash(permissions, "mytool x").action == "allow"
    assert bash(permissions, "./mytool x").action == "ask"
    assert bash(permissions, "ls -l").action == "ask"
    assert bash(permissions, "ls src").action == "allow"


def test_a_rule_vouches_for_the_words_it_spells_out_and_no_others() -> None:
    permissions = Permissions(
        "ask",
        [
            PermissionRule("Bash", "sort -o out.txt *", "allow"),
            PermissionRule("Bash", "python scripts/build.py", "allow"),
            PermissionRule("Bash", "mytool --fast *", "allow"),
            PermissionRule("Bash", "git push origin", "allow"),
        ],
    )
    assert bash(permissions, "sort -o out.txt in.txt").action == "allow"
    assert bash(permissions, "sort -o out.txt -o other in.txt").action == "ask"
    assert bash(permissions, "python scripts/build.py").action == "allow"
    assert bash(permissions, "python scripts/build.py x").action == "ask"
    assert bash(permissions, "mytool --fast x").action == "allow"
    assert bash(permissions, "mytool --fast --slow").action == "ask"
    assert bash(permissions, "git push origin").action == "allow"


def test_a_rule_that_can_not_vouch_leaves_the_word_to_the_next() -> None:
    permissions = Permissions(
        "ask", [PermissionRule("Bash", "ps *", "allow"), PermissionRule("Bash", "ps aux", "allow")]
    )
    assert bash(permissions, "ps aux").action == "allow"
    asked = Permissions("allow", [PermissionRule("Bash", "ps *", "allow"), PermissionRule("Bash", "ps aux", "ask")])
    assert bash(asked, "ps aux").action == "ask"


def test_what_can_run_anything_needs_a_rule_that_spells_all_of_it_out() -> None:
    for program in ("bash", "python", "perl", "sudo", "eval", "source", "declare"):
        permissions = Permissions("ask", [PermissionRule("Bash", f"{program} *", "allow")])
        decision = bash(permissions, f"{program} x")
        assert decision.action == "ask"
        assert "spells out the whole command" in decision.reason


def test_any_options_vouches_for_every_option_but_not_for_what_changes_later_words() -> None:
    permissions = Permissions("ask", [PermissionRule("Bash", "*", "allow", any_options=True)])
    assert bash(permissions, "gcc -O2 -o x x.c && find . -delete").action == "allow"
    for line in ("export PATH=.; ls", "hash -p ./evil ls; ls", "alias ls=rm", ". ./x", "source x", "set -k"):
        assert bash(permissions, line).action == "ask"
    assert bash(permissions, "$EDITOR x").action == "ask"


@pytest.mark.parametrize(
    "line",
    ["bash -c '$x'", "sudo sh -c 'f() { ls; }'", "env bash -c \"sh -c '\\$y a'\"", "find . -exec sh -c '$0 a' x"],
)
def test_a_shell_with_a_text_that_can_not_be_proved_is_asked_about_where_everything_is_allowed(line: str) -> None:
    for permissions in (
        Permissions("allow"),
        Permissions("ask", [PermissionRule("*", "*", "allow", any_options=True)]),
    ):
        assert bash(permissions, line).action == "ask"
        assert bash(permissions, "bash -c 'ls; make' && env A=b nice grep 'a b' x").action == "allow"


def test_harmless_options_before_a_subcommand_are_looked_past() -> None:
    permissions = Permissions("ask", [PermissionRule("Bash", "git log *", "allow")])
    assert bash(permissions, "git --no-pager log -5").action == "allow"
    assert bash(permissions, "git -c a=b log -5").action == "ask"
    assert bash(permissions, "git --paginate log").action == "ask"


def test_a_config_can_add_programs_and_subcommands() -> None:
    rules = [PermissionRule("Bash", "mytool *", "allow"), PermissionRule("Bash", "git *", "allow")]
    programs = {"mytool": Program("-v --level="), "mytool sub": Program("--deep"), "git fetch": Program("", "none")}
    permissions = Permissions("ask", rules, programs=programs)
    assert bash(permissions, "mytool -v --level 3 x").action == "allow"
    assert bash(permissions, "mytool sub --deep").action == "allow"
    assert bash(permissions, "mytool --deep").action == "ask"
    assert bash(permissions, "git fetch").action == "allow"
    assert bash(permissions, "git fetch origin").action == "ask"


# --- what can't be proved ---


@pytest.mark.parametrize("default", ACTIONS)
@pytest.mark.parametrize(
    "line", ["$x", "ls ${!x}", "ls $((a[0]))", "((1))", "x() { ls; }", "coproc ls", "", "  ", "ls '"]
)
def test_what_can_not_be_proved_is_never_allowed(line: str, default: Action) -> None:
    everything = PermissionRule("Bash", "*", "allow", any_options=True)
    assert bash(Permissions(default, [everything]), line).action == "ask"
    assert bash(Permissions(default), line).action == ("deny" if default == "deny" else "ask")


@pytest.mark.parametrize(
    "line",
    [
        "echo $(rm x)",
        "echo `rm x`",
        "\\rm x",
        "$'rm' x",
        "$'\\x72m' x",
        "$'\\u72m' x",
        "$'\\162\\x6d' x",
        "$'r\\U0000006d' x",
        "rm $'\\D\\UFFFFFFFF'",
        "r\\m x",
        "ls > out; rm x",
        "if true; then rm x; fi",
        "f() { rm x; }; f",
        "bash -c 'rm x' > out",
        'eval "rm x" &',
        "bash <<EOF\nrm x\nEOF",
        "sudo -u $USER rm x",
        "A=b rm x",
        "rm $x",
        "(rm x)",
        "ls | while read f; do rm $f; done",
        "cat <(rm x)",
        '"rm" x > y',
        "/bin/rm $x",
        "! rm x",
        "coproc rm x",
        "rm x &",
        "[[ -f x ]] && rm x",
        "for f in *; do rm $f; done",
        "case $x in y) rm x;; esac",
    ],
)
def test_a_denied_name_is_seen_in_a_line_that_can_not_be_proved(line: str) -> None:
    permissions = Permissions("allow", [PermissionRule("Bash", "rm *", "deny")])
    decision = bash(permissions, line)
    assert decision.action == "deny", decision
    assert any("rm" in " ".join(argv) for argv in decision.commands)


@pytest.mark.parametrize(
    "line",
    ["echo rm > out", "cat > a.md <<EOF\nrm x\nEOF", "echo 'rm x' > y", 'git commit -m "rm $x"', "$x", "ls *rm*"],
)
def test_a_denied_name_as_an_argument_or_in_a_text_is_no_command(line: str) -> None:
    assert bash(Permissions("allow", [PermissionRule("Bash", "rm *", "deny")]), line).action != "deny"


@pytest.mark.parametrize(
    "line",
    [
        "sudo rm x",
        "env A=b rm x",
        "timeout -k 5 10 rm x",
        "nohup nice -n 5 rm x",
        "xargs -0 rm",
        "bash -c 'ls; rm x'",
        "sh -c \"sh -c 'rm x'\"",
        "eval 'rm x'",
        "find . -exec rm '{}' ';'",
        "command rm x",
        "/bin/rm x",
        "./rm x",
        "RM x",
        "env -S 'rm x'",
        "ssh host 'rm x'",
        "busybox rm x",
        "ls; ls; rm",
    ],
)
def test_a_denied_name_is_seen_behind_wrappers(line: str) -> None:
    assert bash(Permissions("allow", [PermissionRule("Bash", "rm *", "deny")]), line).action == "deny"
    assert bash(Permissions("allow", [PermissionRule("Bash", "rm *", "ask")]), line).action == "ask"


@pytest.mark.parametrize(
    "line", ["git -C x push", "git -c a=b push origin", "git --no-pager push", "git --git-dir=x push"]
)
def test_options_do_not_hide_a_denied_subcommand(line: str) -> None:
    permissions = Permissions("allow", [PermissionRule("Bash", "git push *", "deny")])
    assert bash(permissions, line).action == "deny"
    assert bash(permissions, "git stash push").action == "allow"


# --- narrowing ---


@pytest.mark.parametrize("mine", ACTIONS)
@pytest.mark.parametrize("theirs", ACTIONS)
def test_a_narrowing_layer_only_takes_away(mine: Action, theirs: Action) -> None:
    layer = Permissions("allow", [PermissionRule("*", "*", theirs)])
    permissions = Permissions(mine, narrowed_by=(layer,))
    stricter = max(mine, theirs, key=ACTIONS.index)
    assert write(permissions, "a") == stricter
    assert bash(permissions, "mytool x").action == stricter


# --- what can't be a rule ---


@pytest.mark.parametrize(
    ("tool", "pattern", "words"),
    [
        ("Bash", "", "empty pattern"),
        ("Bash", "   ", "empty pattern"),
        ("Bash", "ls [a", "not closed by ']'"),
        ("Write", "a{b", "not closed by '}'"),
        ("Write", "a\0b", "control character"),
        ("Write", "../x", "contains `..`"),
        ("Bash", "ls | rm", "one command"),
        ("Bash", "cd x && ls *", "one command"),
        ("Bash", "rm:*", "write `rm *`"),
        ("Bash", "x" * 5000, "at most"),
        ("Bash", "x " * 60, "at most"),
        ("Write", "{a,b}" * 20, "alternatives"),
        ("", "*", "needs a tool"),
        ("effect:fly", "*", "effect:read"),
        ("Write", "[z-a]", "runs backwards"),
    ],
)
def test_a_rule_that_can_mean_nothing_is_refused_when_it_is_made(tool: str, pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("[", r"\[").replace("*", r"\*").replace(".", r"\.")):
        PermissionRule(tool, pattern, "deny")


def test_unknown_actions_are_refused() -> None:
    with pytest.raises(ValueError, match="allow, ask, deny"):
        PermissionRule("Bash", "*", "alow")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="allow, ask, deny"):
        Permissions("yes")  # type: ignore[arg-type]


# --- time ---


@pytest.mark.parametrize(
    "piece",
    [
        "ls -la 'a b' | ",
        "a",
        "'a'",
        "sudo ",
        "git -c a ",
        "$(",
        "a~",
        '"\\\\"',
        "rm ",
        "bash -c ",
        "{ ",
        "((",
        "<<a\n",
    ],
)
def test_time_grows_with_length_and_no_faster(piece: str) -> None:
    """A hang bound, generous: quadratic behaviour on the longest line takes many times as long."""
    rules = [PermissionRule("Bash", f"{word} *", "deny") for word in ("rm", "git push", "x*y*z*w*")]
    permissions = Permissions("ask", [ALLOW_LS, *rules])
    line = piece * (8000 // len(piece)) + "ls"
    bash(permissions, "$x")
    start = time.process_time()
    for _ in range(5):
        bash(permissions, line)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("[--z]", "-5z", "{"),
        ("[a-]", "a-", "b"),
        ("[!a-c]", "d-", "abc"),
        ("[]x-]", "]x-", "y"),
        ("[&~|^]", "&~|^", "\\"),
    ],
)
def test_a_character_class_has_its_members_and_ranges(pattern: str, fits: str, others: str) -> None:
    glob = word_glob(pattern)
    assert all(glob.matches(char) for char in fits)
    assert not any(glob.matches(char) for char in others)


def test_a_pattern_full_of_stars_takes_no_time() -> None:
    start = time.process_time()
    assert not word_glob("*a" * 300 + "b").matches("a" * 4000)
    assert not path_glob("**/a/" * 100 + "b").matches("/".join("a" * 2000))
    assert time.process_time() - start < 5
