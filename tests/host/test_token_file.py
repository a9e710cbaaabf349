"""Token files: what a line may say, and what a broken file is told."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gripfast.errors import InvalidArgument
from gripfast.host.program.token_file import Token, TokenFile, parse_tokens

A, B, C = "a" * 24, "b" * 24, "c" * 24


def test_a_line_has_a_name_a_token_and_what_differs_for_its_owner() -> None:
    text = f"# people\nann {A}\n\nbob {B} profile=agent rules=workspace root=/srv/b readonly # until May\n"
    assert parse_tokens(text) == [
        Token("ann", A, place="line 2"),
        Token("bob", B, "agent", "workspace", ("/srv/b",), True, "line 4"),
    ]


def test_toml_says_the_same() -> None:
    text = f"""[ann]
token = ["{A}", "{C}"]
[bob]
token = "{B}"
profile = "agent"
rules = "workspace"
root = "/srv/b"
readonly = true
"""
    assert parse_tokens(text) == [
        Token("ann", A, place="[ann]"),
        Token("ann", C, place="[ann]"),
        Token("bob", B, "agent", "workspace", ("/srv/b",), True, "[bob]"),
    ]


def test_a_token_may_end_with_an_equals_sign() -> None:
    assert parse_tokens(f"ann {A}==\n{B}=\n")[0].token == f"{A}=="


def test_a_token_without_a_name_is_called_the_same_wherever_it_stands() -> None:
    first, moved = parse_tokens(f"{A}\n")[0], parse_tokens(f"{B}\n\n{A}\n")[1]
    assert first.name == moved.name
    assert A not in first.name and len(first.name) < 16


FAULTS: dict[str, tuple[str, str]] = {
    "nothing": ("", "no token"),
    "only comments": ("# soon\n", "no token"),
    "a short token": (f"ann {A}\nbob short\n", "line 2: a token has at least 16 characters"),
    "an unknown option": (f"ann {A} admin=yes\n", "line 1: after NAME TOKEN only"),
    "three words": (f"ann smith {A}\n", "line 1"),
    "an option twice": (f"ann {A} rules=workspace rules=trusted\n", "line 1"),
    "an option without a value": (f"ann {A} rules=\n", "line 1"),
    "a relative root": (f"ann {A} root=here\n", "line 1: root must be an absolute path"),
    "one token for two": (f"ann {A}\nbob {A}\n", "line 2: the same token as in line 1"),
    "two choices for one": (f"ann {A}\nann {B} readonly\n", "line 2: the options of ann differ from those in line 1"),
    "an odd name": (f"an/n {A}\n", "line 1: a name is"),
    "a token beyond ASCII": (f"ann {A}é\n", "line 1: a token is ASCII"),
    "TOML cut in a token": (f'[ann]\ntoken = "{A}\n', "line 2: not valid TOML"),
    "TOML with a word too many": (f'[ann]\ntoken = "{A}"\nadmin = true\n', "[ann]: only token"),
    "TOML without a token": ("[ann]\nreadonly = true\n", "[ann]: token is missing"),
    "TOML with a text for yes": (f'[ann]\ntoken = "{A}"\nreadonly = "no"\n', "[ann]: readonly is true or false"),
    "TOML with a number": ("[ann]\ntoken = 1234567890123456789\n", "[ann]: token must be a string"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_broken_file_is_refused_with_its_line_and_without_a_token(kind: str) -> None:
    text, message = FAULTS[kind]
    with pytest.raises(InvalidArgument) as fault:
        parse_tokens(text)
    assert message in fault.value.message
    assert not any(secret in fault.value.message for secret in (A, B, "short", "smith"))


PIECES = [*string.ascii_letters, *' ="[]#\n\t\r\0é', "readonly", "root=/", "token = ", A, "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    text = "".join(pieces)
    try:
        found = parse_tokens(text)
    except InvalidArgument as fault:
        assert A not in fault.message
    else:
        assert found and all(len(one.token) >= 16 for one in found)


def test_a_file_that_lost_the_end_of_its_last_line_is_half_written(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_text(f"ann {A} readonly\n", encoding="utf-8")
    file = TokenFile(path)
    assert file.read()[0].readonly
    path.write_text(f"ann {A}", encoding="utf-8")  # without its newline it may be the start of the line above
    with pytest.raises(InvalidArgument, match="in the middle of a line"):
        file.read()
    path.write_text(f"ann {A}\n", encoding="utf-8")
    assert not file.read()[0].readonly


def test_a_file_that_is_not_text_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_bytes(f"ann {A}\nbob ".encode() + b"\xff" * 20)
    with pytest.raises(InvalidArgument, match="line 2: not UTF-8"):
        TokenFile(path).read()
