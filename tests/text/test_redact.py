"""Known secrets are replaced by their names, in every form in which programs write them."""

from __future__ import annotations

import base64
import json
import re
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gripfast.text.redact import Redactor, assignments, secrets_in
from gripfast.text.terminal import plain

slowly = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
values = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="«»"), min_size=8, max_size=40)
around = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="«»"), max_size=30)


@slowly
@given(values, around, around)
def test_no_written_form_of_a_value_is_left(value: str, before: str, after: str) -> None:
    redactor = Redactor({"API_KEY": value})
    lower = re.sub("%..", lambda code: code[0].lower(), quote(value, safe=""))
    forms = [value, json.dumps(value)[1:-1], quote(value, safe=""), quote_plus(value), lower]
    for form in forms:
        done = redactor(f"{before}{form}{after}")
        assert form not in done.replace("«API_KEY»", "") or form in f"{before}{after}"
        assert "«API_KEY»" in done


@slowly
@given(values, st.binary(max_size=9), st.binary(max_size=9), st.booleans())
def test_no_base64_of_anything_around_a_value_tells_it(value: str, before: bytes, after: bytes, url: bool) -> None:
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    done = Redactor({"API_KEY": value})(encode(before + value.encode() + after).decode())
    assert "«API_KEY»" in done


@slowly
@given(values, around, around, st.lists(st.integers(0, 200), max_size=6))
def test_a_stream_is_redacted_like_the_whole_wherever_it_is_cut(
    value: str, before: str, after: str, cuts: list[int]
) -> None:
    redactor = Redactor({"API_KEY": value})
    data = f"{before}{value}{after}{value}".encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    done, waiting = b"", b""
    for start, end in pairwise(places):
        passed, waiting = redactor.split(waiting + data[start:end])
        done += passed
    assert done + redactor.bytes(waiting) == redactor.bytes(data)


ESCAPES = [b"\x1b[31m", b"\x1b[0m", b"\x1b[38;2;1;22;133m", b"\x1b]0;title\x07", b"\x1b(B", "\x9b1m".encode()]
tokens = st.text(st.sampled_from("abc123-_"), min_size=8, max_size=12)
fillings = st.lists(st.lists(st.sampled_from(ESCAPES), max_size=3).map(b"".join), min_size=13, max_size=13)


def in_colour(value: str, filling: list[bytes]) -> bytes:
    return b"".join(escape + char.encode() for escape, char in zip(filling, value, strict=False)) + filling[-1]


@slowly
@given(tokens, tokens, fillings)
def test_escape_sequences_hide_no_value_and_stay(value: str, other: str, filling: list[bytes]) -> None:
    data = f"{other} ".encode() + in_colour(value, filling) + b" " + in_colour(other, filling)
    done = Redactor({"API_KEY": value}).bytes(data)
    assert value not in plain(done.decode())
    assert "«API_KEY»" in done.decode()
    assert [*re.findall(b"\x1b|\xc2\x9b", done)] == [*re.findall(b"\x1b|\xc2\x9b", data)]


@slowly
@given(tokens, fillings, st.lists(st.integers(0, 400), max_size=6))
def test_a_stream_in_colour_is_redacted_wherever_it_is_cut(value: str, filling: list[bytes], cuts: list[int]) -> None:
    redactor = Redactor({"API_KEY": value})
    data = b"one " + in_colour(value, filling) + b"two " + in_colour(value, filling)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    done, waiting = b"", b""
    for start, end in pairwise(places):
        passed, waiting = redactor.split(waiting + data[start:end])
        done += passed
    assert value not in plain((done + redactor.bytes(waiting)).decode())


def test_a_stream_of_nothing_but_escape_sequences_does_not_wait_for_ever() -> None:
    passed, waiting = Redactor({"API_KEY": "s3cr3t-value"}).split(b"s3c" + b"\x1b[1m" * 100_000)
    assert len(passed) + len(waiting) == 400_003
    assert len(waiting) <= 1 << 16


@slowly
@given(tokens, around, around, fillings, st.integers(0, 300))
def test_what_is_shown_of_an_output_so_far_never_ends_inside_a_value(
    value: str, before: str, after: str, filling: list[bytes], at: int
) -> None:
    redactor = Redactor({"API_KEY": value})
    data = before.encode() + value.encode() + in_colour(value, filling) + after.encode()
    so_far = data[:at]
    cut = len(so_far) - redactor.begun_secret(so_far)
    shown = redactor.bytes(data[:cut]) + redactor.bytes(data[cut:])
    assert value not in plain(shown.decode("utf-8", "replace"))


def test_what_may_be_the_beginning_of_a_value_waits_and_nothing_else_does() -> None:
    redactor = Redactor({"API_KEY": "s3cr3t-s3c"})
    assert redactor.begun_secret(b"the key is s3cr\x1b[31m3t") == len(b"s3cr\x1b[31m3t")
    for ended in (b"the key is s3cr3t-s3c", b"s3cr3t or not", b"Password: ", b""):
        assert redactor.begun_secret(ended) == 0
    assert Redactor({}).begun_secret(b"s3cr") == 0


@slowly
@given(around)
def test_a_text_without_a_secret_is_the_same_object(text: str) -> None:
    redactor = Redactor({"API_KEY": "Zq81-never-in-it-99"})
    assert redactor(text) is text
    assert Redactor({})(text) is text


def test_of_two_values_the_longer_one_is_found_first() -> None:
    redactor = Redactor({"SHORT_KEY": "abcdefgh", "LONG_KEY": "abcdefgh-ijkl"})
    assert redactor("abcdefgh-ijkl abcdefgh") == "«LONG_KEY» «SHORT_KEY»"


SECRET = {
    "API_KEY": "12345678",
    "gh_token": "12345678",
    "MY_SECRET_ONE": "12345678",
    "DB_PASSWORD": "12345678",
    "AWS_CREDENTIALS_X": "12345678",
}


@pytest.mark.parametrize("name", SECRET)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert secrets_in({name: SECRET[name]}) == {name: SECRET[name]}


def test_short_values_and_other_names_are_no_secrets_but_passwords_in_urls_are() -> None:
    plain = {
        "API_KEY": "1234567",
        "PATH": "/usr/bin:/bin",
        "KEYBOARD": "12345678",
        "URL": "https://example.org/abcdefgh",
    }
    assert secrets_in(plain) == {}
    assert secrets_in({"DB": "postgres://me:p%40ssw0rd!@db/x"}) == {"DB": "p@ssw0rd!"}
    assert secrets_in({"DB": "http://[bad"}) == {}


def test_env_files_are_read_as_shells_read_them() -> None:
    text = "# no\nA=1\nexport B='two # 2' # c\nC=\"three\"\n D = four # d\nE=\nnot a line\n"
    assert assignments(text) == {"A": "1", "B": "two # 2", "C": "three", "D": "four", "E": ""}
