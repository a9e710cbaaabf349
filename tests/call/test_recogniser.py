"""What the recogniser proves is what bash runs, and it takes no longer for trying."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from call.bash_oracle import BASH, differences, generated, observable, ran_by_bash
from call.shell_lines import FAMILIES, attacks, lines_of
from gripfast.call.shell.recogniser import LONGEST_LINE, NotProvable, Proved, recognise

STRINGS = int(os.environ.get("GRIPFAST_BASH_STRINGS", "2000"))
needs_bash = pytest.mark.skipif(BASH is None, reason="needs bash")


def commands(line: str) -> list[list[str]]:
    proof = recognise(line)
    assert isinstance(proof, Proved), proof
    return [list(argv) for argv in proof.commands]


def reason(line: str) -> str:
    proof = recognise(line)
    assert isinstance(proof, NotProvable), proof
    return proof.reason


@pytest.mark.parametrize(
    ("line", "argvs"),
    [
        ("ls -la", [["ls", "-la"]]),
        ("  ls\t-la  ", [["ls", "-la"]]),
        ("a; b && c || d | e\nf", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("ls;", [["ls"]]),
        ("ls\n\n", [["ls"]]),
        ("a &&\n\n b", [["a"], ["b"]]),
        ("echo 'a b'\"c d\"e", [["echo", "a bc de"]]),
        ("echo '' \"\"", [["echo", "", ""]]),
        ("grep 'a|b;c&d' x", [["grep", "a|b;c&d", "x"]]),
        (r'grep "foo\.bar\"\\" x', [["grep", r"foo\.bar" + '"\\', "x"]]),
        (r'echo "\$HOME \`x\`"', [["echo", "$HOME `x`"]]),
        ("git diff HEAD~1 HEAD^ main..x", [["git", "diff", "HEAD~1", "HEAD^", "main..x"]]),
        ("git show HEAD~2:src/a.py", [["git", "show", "HEAD~2:src/a.py"]]),
        ("cat 日本.txt", [["cat", "日本.txt"]]),
        ("echo if then", [["echo", "if", "then"]]),
        ("x --opt=value a=b", [["x", "--opt=value", "a=b"]]),
    ],
)
def test_plain_lines_are_proved_word_by_word(line: str, argvs: list[list[str]]) -> None:
    assert commands(line) == argvs


@pytest.mark.parametrize("char", list("$`<>&\\*?[]{}()#!~"))
def test_one_character_with_a_meaning_makes_a_line_unprovable(char: str) -> None:
    assert recognise("ls a") == Proved((("ls", "a"),))
    assert isinstance(recognise(f"ls {char}a"), NotProvable)
    assert commands(f"ls '{char}a'") == [["ls", f"{char}a"]]


@pytest.mark.parametrize("char", [chr(code) for code in (0, 1, 7, 8, 11, 12, 13, 27, 127, 0x85, 0x9B, 0xAD, 0x200B)])
def test_characters_that_cannot_be_shown_are_never_proved_even_quoted(char: str) -> None:
    assert f"U+{ord(char):04X}" in reason(f"echo '{char}'")


def test_a_reason_names_the_character_and_where_it_stands() -> None:
    assert reason("ls $x") == "`$` expands variables or runs commands (character 4)"
    assert reason('echo "a $x"') == "`$` inside double quotes is expanded (character 6)"
    assert reason("ls 'x") == "a quote is not closed (character 4)"
    assert reason("ls   > x") == "`>` redirects, and may write files (character 6)"
    assert "no command before it" in reason("ls ;; x")
    assert "no command after it" in reason("ls &&\n")
    assert "may set a variable" in reason("A=b ls")


def test_a_line_is_proved_up_to_the_cap_and_not_a_byte_beyond() -> None:
    longest = "ls " + "a" * (LONGEST_LINE - 3)
    assert isinstance(recognise(longest), Proved)
    assert "bytes" in reason(longest + "a")
    assert "bytes" in reason("ls '" + "あ" * (LONGEST_LINE // 3) + "'")


@given(st.text(max_size=60))
def test_any_text_gets_an_answer(line: str) -> None:
    proof = recognise(line)
    assert isinstance(proof, NotProvable) or all(argv and argv[0] for argv in proof.commands)


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=8), min_size=1, max_size=5))
def test_single_quoted_words_come_out_as_they_went_in(words: list[str]) -> None:
    words = [word.replace("'", "") for word in words]
    assert commands(" ".join(["x", *(f"'{word}'" for word in words)])) == [["x", *words]]


@needs_bash
def test_bash_runs_exactly_what_was_proved() -> None:
    assert differences(STRINGS, seed=20_000) == []


@needs_bash
def test_bash_runs_exactly_what_was_proved_in_the_plain_locale() -> None:
    assert differences(STRINGS // 4, seed=7, locale="C") == []


@needs_bash
def test_bash_runs_what_was_proved_of_the_lines_kept_as_data() -> None:
    kept = [line for family in FAMILIES for line in attacks(family)] + lines_of("harmless")
    proved = [(line, recognise(line)) for line in kept]
    checked = [(line, proof) for line, proof in proved if isinstance(proof, Proved) and observable(proof)]
    assert len(checked) > 500
    for (line, proof), (succeeding, failing) in zip(checked, ran_by_bash([x for x, _ in checked]), strict=True):
        assert set(succeeding) | set(failing) == set(proof.commands), line


@needs_bash
def test_the_oracle_sees_what_a_careless_reader_would_miss() -> None:
    """The oracle can fail: it sees commands that a split at blanks does not."""
    lines = ["ls $'\\x3b' x", "echo $(id)", "echo a\\\nb", "A=1 ls", "l''s"]
    ran = [both[0] for both in ran_by_bash(lines)]
    assert ran == [[("ls", ";", "x")], [("id",), ("echo",)], [("echo", "ab")], [("ls",)], [("ls",)]]


def test_the_generator_reaches_both_answers() -> None:
    lines = generated(random.Random(1))
    answers = [isinstance(recognise(next(lines)), Proved) for _ in range(2000)]
    assert 300 < sum(answers) < 1900
